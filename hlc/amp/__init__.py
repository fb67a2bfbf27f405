"""AMP: one policy for one task, learned from scratch with a style reward (Peng et al. 2021). What a
controller over published skills is compared with."""

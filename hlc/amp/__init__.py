"""AMP (Peng et al. 2021): one policy for one task, trained from scratch with a style reward. The
baseline for controllers over published skills."""

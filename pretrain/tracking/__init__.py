"""Motion tracking: one policy that follows reference clips, by DeepMimic (Peng et al. 2018), ADD
(Zhang et al. 2025) or AWR (Peng et al. 2019). The baseline for what a body can do of its clips."""

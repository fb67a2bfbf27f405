"""The tasks as gymnasium environments, whose action is a skill z. Needs the extra `rl`.

    import gymnasium
    import hlc.gym

    env = gymnasium.make("repertoire/Reach-v0", skill="humanoid@latest")
    envs = gymnasium.make_vec("repertoire/Reach-v0", num_envs=64, skill="humanoid@latest")

Importing this package registers one environment for each task. Without the import,
`gymnasium.make("hlc.gym:repertoire/Reach-v0")` does it.
"""

from __future__ import annotations

from gymnasium.envs.registration import register, registry

from hlc.gym.single_env import SingleEnv
from hlc.gym.vector_env import SkillVectorEnv
from hlc.tasks import TASKS

__all__ = ["SingleEnv", "SkillVectorEnv", "register_envs"]


def register_envs() -> None:
    """One id for each task that has none yet: `repertoire/Reach-v0`."""
    for task in TASKS:
        name = f"repertoire/{task.capitalize()}-v0"
        if name not in registry:
            register(
                id=name,
                entry_point="hlc.gym.single_env:SingleEnv",
                vector_entry_point="hlc.gym.vector_env:SkillVectorEnv",
                kwargs={"task": task},
            )


register_envs()

"""The tasks there are. A task's parameters stand in the configuration under its name: `reach.height_max=1.8`."""

from hlc.tasks.reach import Reach

TASKS = {"reach": Reach}

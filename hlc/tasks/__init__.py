"""Registry of tasks: a new one is a file here and a line below.

A task's parameters are keys under its name: `reach.height_max=1.8`.
"""

from hlc.tasks.reach import Reach

TASKS = {"reach": Reach}

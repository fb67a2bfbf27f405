"""Registry of tasks. A new task needs a file here and a line below.

A task's parameters are keys under its name: `reach.height_max=1.8`.
"""

from hlc.tasks.getup import Getup
from hlc.tasks.heading import Heading
from hlc.tasks.location import Location
from hlc.tasks.path import Path
from hlc.tasks.reach import Reach
from hlc.tasks.speed import Speed
from hlc.tasks.stand import Stand
from hlc.tasks.strike import Strike

TASKS = {
    "reach": Reach,
    "speed": Speed,
    "heading": Heading,
    "location": Location,
    "path": Path,
    "stand": Stand,
    "getup": Getup,
    "strike": Strike,
}

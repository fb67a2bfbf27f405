#!/usr/bin/env bash
# pin 4.1.0 (Pinocchio, coal 3.0.3) and yourdfpy 0.0.60: a COLLADA mesh in centimetres becomes 100 times as large.
#
# A COLLADA file names its unit, as in <unit meter="0.01"/>, and modelling programs write it. A URDF is in metres, so
# one would guess that a loader that reads such a file as the shape of a link scales it, as pybullet does, or says that
# it does not. These two take the numbers as metres, without a warning: a link of 1.8 m is one of 180 m, and Pinocchio
# sees it meet what is 10 m away, which planners and rewards for distance then avoid. trimesh, by which yourdfpy reads,
# keeps the unit in `units` and leaves the rest to it. A file in metres is right with all.
#
# Seen (trimesh 5.2.0, Python 3.11, Linux), the height of a link that is 1.8 m high and 0.2 m wide, and whether it
# meets a small ball 10 m beside it:
#                 meter="1"      meter="0.01"
#   pybullet      1.8 m          1.8 m
#   pin           1.8 m, no      180 m, yes
#   yourdfpy      1.8 m          180 m
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check 'pin==4.1.0' 'coal==3.0.3' 'yourdfpy==0.0.60' 'trimesh==5.2.0' \
    'pycollada==0.9.3' 'lxml==6.1.3' 'pybullet==3.2.7' 'numpy==2.4.6'

cat > height.py <<'PY'
import itertools

import coal
import numpy as np
import pinocchio
import pybullet
import yourdfpy

SIZE = 0.2, 0.4, 1.8
COLLADA = """<?xml version="1.0" encoding="utf-8"?>
<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
  <asset>
    <created>2020-01-01T00:00:00</created>
    <modified>2020-01-01T00:00:00</modified>
    <unit name="unit" meter="{unit}"/>
    <up_axis>Z_UP</up_axis>
  </asset>
  <library_geometries>
    <geometry id="box">
      <mesh>
        <source id="corners">
          <float_array id="numbers" count="24">{corners}</float_array>
          <technique_common>
            <accessor source="#numbers" count="8" stride="3">
              <param name="X" type="float"/><param name="Y" type="float"/><param name="Z" type="float"/>
            </accessor>
          </technique_common>
        </source>
        <vertices id="vertices"><input semantic="POSITION" source="#corners"/></vertices>
        <triangles count="12"><input semantic="VERTEX" source="#vertices" offset="0"/><p>{triangles}</p></triangles>
      </mesh>
    </geometry>
  </library_geometries>
  <library_visual_scenes>
    <visual_scene id="scene"><node id="node"><instance_geometry url="#box"/></node></visual_scene>
  </library_visual_scenes>
  <scene><instance_visual_scene url="#scene"/></scene>
</COLLADA>"""
URDF = """<robot name="robot">
  <link name="trunk">
    <inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><geometry><mesh filename="box.dae"/></geometry></collision>
  </link>
</robot>"""
SIDES = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]


def write(unit):
    """Write the robot, and its box in this unit."""
    signs = itertools.product((-1, 1), repeat=3)
    corners = [side / unit / 2 * sign for corner in signs for side, sign in zip(SIZE, corner)]
    triangles = [corner for a, b, c, d in SIDES for corner in (a, b, c, a, c, d)]
    with open("box.dae", "w") as file:
        file.write(
            COLLADA.format(
                unit=unit,
                corners=" ".join(f"{number:g}" for number in corners),
                triangles=" ".join(map(str, triangles)),
            )
        )
    with open("robot.urdf", "w") as file:
        file.write(URDF)


def by_pybullet():
    pybullet.connect(pybullet.DIRECT)
    low, high = pybullet.getAABB(pybullet.loadURDF("robot.urdf"))
    pybullet.disconnect()
    return high[2] - low[2]


def geometry():
    model = pinocchio.buildModelFromUrdf("robot.urdf")
    return pinocchio.buildGeomFromUrdf(model, "robot.urdf", pinocchio.GeometryType.COLLISION, package_dirs=["."])


def by_pin():
    box = geometry().geometryObjects[0].geometry
    box.computeLocalAABB()
    return box.aabb_local.max_[2] - box.aabb_local.min_[2]


def by_yourdfpy():
    robot = yourdfpy.URDF.load("robot.urdf", build_collision_scene_graph=True, load_collision_meshes=True)
    return robot.collision_scene.extents[2]


def meets():
    """Whether Pinocchio's robot meets a ball of 10 cm that is 10 m beside it."""
    shapes = geometry()
    place = pinocchio.SE3(np.eye(3), np.array([10.0, 0, 0]))
    shapes.addGeometryObject(pinocchio.GeometryObject("ball", 0, 0, place, coal.Sphere(0.1)))
    shapes.addCollisionPair(pinocchio.CollisionPair(0, 1))
    model = pinocchio.buildModelFromUrdf("robot.urdf")
    data, shape_data = model.createData(), shapes.createData()
    return pinocchio.computeCollisions(model, data, shapes, shape_data, np.zeros(0), True)


for unit in 1, 0.01:
    write(unit)
    for measure in by_pybullet, by_pin, by_yourdfpy:
        print(f"{unit}, {measure.__name__[3:]}: {measure():.1f}")
    print(f"{unit}, meets: {'yes' if meets() else 'no'}")
PY
env/bin/python height.py > said 2>&1 || { cat said; exit 1; }
# nothing is said but the day of pybullet's build
grep -v '^pybullet build time' said | tee seen
diff seen - <<'EXPECTED'
1, pybullet: 1.8
1, pin: 1.8
1, yourdfpy: 1.8
1, meets: no
0.01, pybullet: 1.8
0.01, pin: 180.0
0.01, yourdfpy: 180.0
0.01, meets: yes
EXPECTED

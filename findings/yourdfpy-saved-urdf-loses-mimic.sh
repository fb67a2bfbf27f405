#!/usr/bin/env bash
# yourdfpy 0.0.60: a URDF that it has read and written again has lost <mimic>, so coupled joints become free ones.
#
# Reading respects <mimic>: a gripper whose right finger follows its left one has one degree of freedom, and the right
# finger moves by multiplier and offset. One would guess that write_xml_file saves what was read, since limits, axes and
# dynamics come back. A joint is written without <mimic> and <safety_controller>, without a warning and with validate()
# true before and after; methods that write both elements exist and are not called. A hand of 12 joints with 6 motors
# comes back with 12, and a policy or a dataset of 6 actions no longer fits, or, where both sides were made from the
# saved file, drives fingers apart that are coupled on the robot. In the source: _write_joint of yourdfpy/urdf.py.
#
# Seen (Python 3.11, Linux), before and after write_xml_file, the actuated joints, whether the file is valid, and how far
# the right finger is when the left one is at 0.04 m and, where it is free, the right one at its own zero:
#   read     left             valid   0.030 m
#   saved    left, right      valid   0.000 m
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check 'yourdfpy==0.0.60' 'numpy==2.4.6' 'trimesh==5.2.0' 'lxml==6.1.3'

cat > gripper.urdf <<'XML'
<robot name="gripper">
  <link name="palm"/>
  <link name="left_finger"/>
  <link name="right_finger"/>
  <joint name="left" type="prismatic">
    <parent link="palm"/>
    <child link="left_finger"/>
    <axis xyz="0 1 0"/>
    <limit lower="0" upper="0.04" effort="20" velocity="0.2"/>
  </joint>
  <joint name="right" type="prismatic">
    <parent link="palm"/>
    <child link="right_finger"/>
    <axis xyz="0 -1 0"/>
    <limit lower="0" upper="0.04" effort="20" velocity="0.2"/>
    <mimic joint="left" multiplier="0.5" offset="0.01"/>
  </joint>
</robot>
XML
cat > save.py <<'PY'
from yourdfpy import URDF


def show(name, file):
    """Print the joints that a user drives, and where the right finger is when the left one is open."""
    robot = URDF.load(file)
    open_left = [0.04 if joint == "left" else 0.0 for joint in robot.actuated_joint_names]
    robot.update_cfg(open_left)
    moved = abs(robot.get_transform("right_finger", "palm")[1, 3])
    valid = "valid" if robot.validate() else "not valid"
    print(f"{name}: {', '.join(robot.actuated_joint_names)}; {valid}; {moved:.3f} m")
    return robot


show("read", "gripper.urdf").write_xml_file("saved.urdf")
show("saved", "saved.urdf")
PY
env/bin/python save.py | tee seen
diff seen - <<'EXPECTED'
read: left; valid; 0.030 m
saved: left, right; valid; 0.000 m
EXPECTED

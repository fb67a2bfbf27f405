#!/usr/bin/env bash
# ezc3d 1.7.2 and c3d 0.6.0: a recording of 65535 frames or more comes back shorter, longer or empty.
#
# C3D, the file format of marker-based motion capture, has 16 bits for the number of frames; at 120 frames per second
# that is 9 minutes. Parameters for a larger number were added later. Both libraries write files that are long enough
# for all frames, but ezc3d does not write the number, and reads 65535 frames of its own file. c3d reads none of that
# file, and none of one by ezc3d with 65535 frames, as its sum of 65535 and 1 goes beyond 16 bits. Of a file by c3d,
# ezc3d reads more frames than there are, since it counts by the size of the file, whose last block of 512 bytes is
# filled up with zeros. Nothing is raised; there is a warning by numpy of the overflow. One would guess that a writer
# refuses what its reader cannot read. In the source: c3d/c3d.py, read_frames and last_frame.
#
# Seen (Python 3.11, Linux), of a marker whose x is the number of the frame, the frames that come back and the last x:
#                    by ezc3d, in ezc3d   by ezc3d, in c3d   by c3d, in ezc3d   by c3d, in c3d
#   65534 frames     65534, 65533         65534, 65533       65534, 65533       65534, 65533
#   65535 frames     65535, 65534         0                  65536, 0           65535, 65534
#   70000 frames     65535, 65534         0                  70016, 0           70000, 69999
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check 'ezc3d==1.7.2' 'c3d==0.6.0' 'numpy==2.4.6'

cat > frames.py <<'PY'
import warnings

import c3d
import ezc3d
import numpy as np

warnings.simplefilter("ignore")


def write_by_ezc3d(count):
    """Write a recording of one marker."""
    file = ezc3d.c3d()
    file["parameters"]["POINT"]["RATE"]["value"] = [120.0]
    file["parameters"]["POINT"]["LABELS"]["value"] = ["head"]
    points = np.ones((4, 1, count))
    points[0] = np.arange(count)
    file["data"]["points"] = points
    file.write("recording.c3d")


def write_by_c3d(count):
    """Write the same recording."""
    writer = c3d.Writer(point_rate=120.0)
    no_analog = np.zeros((0, 1))
    writer.add_frames([(np.array([[frame, 1, 1, 0, 0]], np.float32), no_analog) for frame in range(count)])
    writer.set_point_labels(["head"])
    with open("recording.c3d", "wb") as file:
        writer.write(file)


def read_by_ezc3d():
    """The x of each frame."""
    return ezc3d.c3d("recording.c3d")["data"]["points"][0, 0]


def read_by_c3d():
    """The x of each frame."""
    with open("recording.c3d", "rb") as file:
        return [points[0, 0] for _, points, _ in c3d.Reader(file).read_frames()]


for count in (65534, 65535, 70000):
    for write in (write_by_ezc3d, write_by_c3d):
        write(count)
        for read in (read_by_ezc3d, read_by_c3d):
            x = read()
            print(count, write.__name__, read.__name__, len(x), *(f"{last:.0f}" for last in x[-1:]))
PY
env/bin/python frames.py | tee seen
diff seen - <<'EXPECTED'
65534 write_by_ezc3d read_by_ezc3d 65534 65533
65534 write_by_ezc3d read_by_c3d 65534 65533
65534 write_by_c3d read_by_ezc3d 65534 65533
65534 write_by_c3d read_by_c3d 65534 65533
65535 write_by_ezc3d read_by_ezc3d 65535 65534
65535 write_by_ezc3d read_by_c3d 0
65535 write_by_c3d read_by_ezc3d 65536 0
65535 write_by_c3d read_by_c3d 65535 65534
70000 write_by_ezc3d read_by_ezc3d 65535 65534
70000 write_by_ezc3d read_by_c3d 0
70000 write_by_c3d read_by_ezc3d 70016 0
70000 write_by_c3d read_by_c3d 70000 69999
EXPECTED

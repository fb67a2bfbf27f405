#!/usr/bin/env bash
# trimesh 5.2.0: the parts, hull or sum of meshes with a density have the density 1, and so a wrong mass and inertia.
#
# `density` is what the mass, inertia and center of mass of a mesh are computed with. copy(), apply_transform() and a
# scene keep it. split(), +, concatenate, convex_hull and subdivide() give meshes without, for which 1 is taken, and say
# nothing. A link of a robot that is joined from steel parts is 7850 times too light, and parts that differ in density
# are joined to a mesh with one density, whose center of mass is elsewhere.
#
# Seen (Python 3.11, Linux), of a cube of density 7850 at x = 0 and one of density 1000 at x = 2, each 1 m wide:
#   mass of the first, copied or moved            7850
#   mass of it subdivided, or of its hull         1
#   mass and center of both, joined               2 at x = 1 (8850 at x = 0.23 in truth)
#   parts of the joined mesh, of density 7850     1 and 1
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check 'trimesh==5.2.0' 'scipy==1.17.1' \
    'networkx==3.6.1' 'numpy==2.4.6'

cat > masses.py <<'PY'
import trimesh

steel = trimesh.creation.box((1, 1, 1))
steel.density = 7850
water = trimesh.creation.box((1, 1, 1))
water.apply_translation((2, 0, 0))
water.density = 1000


def show(name, mesh):
    inertia = mesh.moment_inertia[0, 0]
    print(f"{name}: mass {mesh.mass:.0f}, center {mesh.center_mass[0]:.2f}, inertia {inertia:.2f}")


show("steel", steel)
show("copied", steel.copy())
show("moved", steel.copy().apply_translation((0, 0, 1)))
show("subdivided", steel.subdivide())
show("hull", steel.convex_hull)
show("joined", steel + water)
print("scene:", *(f"{mesh.mass:.0f}" for mesh in trimesh.Scene([steel, water]).dump()))
both = trimesh.util.concatenate([steel, water])
both.density = 7850
show("joined, then density", both)
print("parts:", *(f"{part.mass:.0f}" for part in both.split()))
PY
env/bin/python masses.py | tee seen
diff seen - <<'EXPECTED'
steel: mass 7850, center 0.00, inertia 1308.33
copied: mass 7850, center 0.00, inertia 1308.33
moved: mass 7850, center 0.00, inertia 1308.33
subdivided: mass 1, center 0.00, inertia 0.17
hull: mass 1, center 0.00, inertia 0.17
joined: mass 2, center 1.00, inertia 0.33
scene: 7850 1000
joined, then density: mass 15700, center 1.00, inertia 2616.67
parts: 1 1
EXPECTED

"""A perturbed body differs from the published one in friction, mass and inertia alone."""

from __future__ import annotations

import numpy as np
import pytest

from pretrain.characters.perturbation import perturb
from pretrain.sim.mujoco_cpu import compile_model

SAME = (
    "actuator_gainprm",
    "actuator_biasprm",
    "actuator_forcerange",
    "dof_damping",
    "dof_armature",
    "jnt_range",
    "body_pos",
    "geom_size",
    "geom_solref",
)


@pytest.mark.parametrize(("friction", "mass"), [(1.0, 1.0), (0.5, 1.0), (1.0, 1.2), (1.5, 0.8)])
def test_perturbation_scales_friction_mass_and_inertia_only(humanoid, friction, mass):
    before = compile_model(humanoid)
    after = compile_model(perturb(humanoid, friction, mass))
    np.testing.assert_allclose(after.geom_friction, friction * before.geom_friction)
    np.testing.assert_allclose(after.body_mass, mass * before.body_mass, rtol=1e-5)
    np.testing.assert_allclose(after.body_inertia, mass * before.body_inertia, rtol=1e-5)
    for name in SAME:
        np.testing.assert_allclose(getattr(after, name), getattr(before, name), rtol=1e-5)
    assert after.opt.timestep == pytest.approx(before.opt.timestep, rel=1e-5)
    assert after.opt.integrator == before.opt.integrator
    assert perturb(humanoid, friction, mass).skeleton == humanoid.skeleton

"""The privileged observation of an assisted episode, an input of the value net alone."""

from __future__ import annotations

import torch
from torch import Tensor

from pretrain.ase.env import AseEnv
from pretrain.ase.symmetry import style_mirror
from pretrain.assist.reference_tracker import ReferenceTracker
from pretrain.assist.tracking_termination import TrackingTermination
from pretrain.assist.velocity_tracker import VelocityTracker
from pretrain.characters.skeleton import Skeleton
from pretrain.rl.mirror import Mirror, concatenate_mirrors, make_identity_mirror
from pretrain.sim.env import Rows

PRIVILEGED_SCALARS = 5  # numbers beside the reference frame


def privileged_mirror(skeleton: Skeleton) -> Mirror:
    """Of the privileged observation, (F + PRIVILEGED_SCALARS)."""
    return concatenate_mirrors(style_mirror(skeleton), make_identity_mirror(PRIVILEGED_SCALARS))


def observe_privileged(
    ase_env: AseEnv,
    tracker: ReferenceTracker,
    velocity: VelocityTracker,
    termination: TrackingTermination,
    ids: Rows,
) -> Tensor:
    """Of worlds `ids` (n,): (n, F + PRIVILEGED_SCALARS).

    The reference frame, the tracking error, in units of the std over the clips, the velocity
    excess, the share of the grace period that is left, whether the world is down, and the share of
    its time to get up that is left. Zeros until the reference of a new skill is set, in the next
    step."""
    env = ase_env.env
    falls = env.falls
    is_down = falls.is_down[ids]
    clip = tracker.clip[ids]
    error = tracker.tracking_error(env.windows(ids), ids)
    excess = velocity.excess(ids)
    steps_left = (falls.max_steps_down - falls.steps_down)[ids]
    time_left = is_down * steps_left / max(falls.recovery.steps, 1)
    scalars = torch.stack(
        [error, excess, termination.grace_share[ids], is_down.float(), time_left], -1
    )
    is_set = (clip == ase_env.z_clip[ids]) | is_down & tracker.has_reference[ids]
    return is_set[:, None] * torch.cat([tracker.reference_frame(ids), scalars], -1)

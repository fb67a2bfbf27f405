"""References: which clips are cyclic, and where their laps are."""

from __future__ import annotations

import pytest
import torch

from pretrain.characters.rotations import angle_between, heading_direction
from pretrain.motion.clip import CONTROL_RATE
from pretrain.tracking.config import TrackingConfig
from pretrain.tracking.references import References, make_references
from pretrain.tracking.training import make_env
from pretrain.training_data import TrainingData


@pytest.fixture(scope="module")
def references(every_clip: TrainingData) -> References:
    return make_references(every_clip.library, every_clip.character.skeleton, 10.0)


def number(references: References, name: str) -> torch.Tensor:
    return torch.tensor([references.library.names.index(name)])


def test_walks_and_turns_are_cyclic_a_kick_and_getting_up_are_not(
    references: References,
) -> None:
    cyclic = {
        name: bool(flag)
        for name, flag in zip(references.library.names, references.cyclic, strict=True)
    }
    walks = ("walk", "0walk_forward", "turn_left0", "turn_left1", "turn_right1")
    assert all(cyclic[name] for name in walks)
    assert not any(cyclic[name] for name in ("run", "kick", "punch", "crawl", "getup_faceup"))


def test_there_are_laps_for_the_longest_episode_and_the_steps_ahead_of_its_end(
    training_data: TrainingData,
) -> None:
    cfg = TrackingConfig(threads=1, tar_obs_steps=(1, 300))
    env = make_env(cfg, training_data, 1, torch.Generator().manual_seed(0))
    library = training_data.library
    longer = make_references(library, training_data.character.skeleton, 100.0)
    clips = torch.arange(len(library.names))
    last = library.durations + cfg.episode_length + 300 / CONTROL_RATE
    for field in ("root_pos", "joint_pos"):
        torch.testing.assert_close(
            getattr(env.references.at(clips, last), field), getattr(longer.at(clips, last), field)
        )


def test_within_a_clip_the_reference_is_the_clip(references: References) -> None:
    clips, times = references.library.sample(50, torch.Generator().manual_seed(0))
    for field in ("root_pos", "root_rot", "root_vel", "joint_pos"):
        torch.testing.assert_close(
            getattr(references.at(clips, times), field),
            getattr(references.library.at(clips, times), field),
        )


@pytest.mark.parametrize("clip", ["walk", "turn_left0", "turn_right1"])
def test_root_moves_across_the_seams_of_a_cyclic_clip_as_within_it(
    references: References, clip: str
) -> None:
    ids = number(references, clip).expand(240)
    states = references.at(ids, torch.arange(240) / CONTROL_RATE)
    level = states.root_pos[:, :2]
    steps = (level[1:] - level[:-1]).norm(dim=-1)
    per_lap = int(references.library.lengths[ids[0]]) - 1
    assert steps.max() < 1.2 * steps[:per_lap].max()
    turns = angle_between(states.root_rot[1:], states.root_rot[:-1])
    assert turns.max() < turns[:per_lap].max() + 0.15
    # it moves along its velocity, also after several turns
    velocity = states.root_vel[:-1, :2] / CONTROL_RATE
    assert (level[1:] - level[:-1] - velocity).norm(dim=-1).max() < 0.05


def test_a_lap_of_a_turn_turns_by_as_much_as_the_one_before(references: References) -> None:
    ids = number(references, "turn_left0").expand(4)
    duration = float(references.library.durations[ids[0]])
    heading = heading_direction(references.at(ids, duration * (torch.arange(4) + 0.5)).root_rot)
    cosines = (heading[1:] * heading[:-1]).sum(-1)
    assert cosines.max() < 0.99
    torch.testing.assert_close(cosines, cosines[:1].expand(3), atol=1e-4, rtol=0)


def test_other_clips_hold_their_last_frame(references: References) -> None:
    kick = number(references, "kick")
    end = references.library.durations[kick]
    held = references.at(kick, end + 3)
    assert torch.equal(held.flatten(), references.library.at(kick, end).flatten())
    assert references.ended(kick, end).all()
    assert not references.ended(kick, end - 0.01).any()
    assert not references.ended(number(references, "walk"), end + 3).any()

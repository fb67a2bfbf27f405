"""Ground contacts and postures of the default clips."""

from __future__ import annotations

import torch

from pretrain.motion.library import MotionLibrary
from pretrain.sim.ground import Ground, read_ground
from pretrain.training_data import load_training_data


def bodies(ground: Ground, skeleton, library: MotionLibrary, clip: str) -> set[str]:
    allowed = ground.allowed[library.names.index(clip)].tolist()
    return {body for body, may in zip(skeleton.bodies, allowed, strict=True) if may}


def named(mask: torch.Tensor, library: MotionLibrary) -> set[str]:
    return {name for name, yes in zip(library.names, mask.tolist(), strict=True) if yes}


def test_only_feet_touch_ground_in_locomotion_clips(library, skeleton):
    ground = read_ground(library, skeleton)
    for clip in library.names:
        assert bodies(ground, skeleton, library, clip) == set(skeleton.feet)
    assert ground.upright.all()
    assert named(~ground.steady, library) == {"run", "run_mirror"}  # which lean
    assert not ground.rising.any()


def test_ground_contact_bodies_match_each_clip(every_clip, skeleton):
    library = every_clip.library
    ground = read_ground(every_clip.library, skeleton)
    hands = {"left_hand", "right_hand"}
    assert bodies(ground, skeleton, library, "cartwheel") == hands | set(skeleton.feet)
    for clip in ("crawl", "roll"):
        assert bodies(ground, skeleton, library, clip) == set(skeleton.bodies)
    for clip in ("walk", "kick", "punch", "jump", "backflip", "dance_b", "getup_faceup"):
        assert bodies(ground, skeleton, library, clip) == set(skeleton.feet)


def test_getup_clips_rise_and_leaning_clips_are_not_upright(every_clip, skeleton):
    library = every_clip.library
    ground = read_ground(every_clip.library, skeleton)
    rising = {"getup_facedown", "getup_faceup"}
    assert named(ground.rising, library) == rising | {f"{clip}_mirror" for clip in rising}
    assert {"crawl", "roll", "backflip", "cartwheel", *rising} <= named(~ground.upright, library)
    assert {"walk", "run", "jump", "punch"} <= named(ground.upright, library)
    assert (ground.lowest[ground.rising] > 0.8 * ground.standing).all()  # of them, the end counts


def test_only_walks_move_on_steadily(every_clip, skeleton):
    library = every_clip.library
    steady = named(read_ground(library, skeleton).steady, library)
    assert {name.removesuffix("_mirror") for name in steady} == {
        "walk",
        "0walk_forward",
        *(f"turn_{side}{index}" for side in ("left", "right") for index in (0, 1)),
    }
    assert all(f"{name}_mirror" in steady for name in steady if not name.endswith("_mirror"))


def test_steps_on_the_spot_are_no_steady_walk(skeleton):
    data = load_training_data("humanoid", "mobility", 3)
    steady = named(read_ground(data.library, skeleton).steady, data.library)
    assert "0walk_forward" in steady
    assert not steady & {"stand", "turn", "turn_slow", "side", "back_slow"}


def test_mirrored_clips_have_mirrored_ground_contacts(every_clip, skeleton):
    library = every_clip.library
    ground = read_ground(every_clip.library, skeleton)
    other = list(skeleton.mirrored_bodies)
    for index, name in enumerate(library.names):
        if name.endswith("_mirror"):
            original = library.names.index(name.removesuffix("_mirror"))
            assert torch.equal(ground.allowed[index], ground.allowed[original][other])
            torch.testing.assert_close(
                ground.lowest[index], ground.lowest[original], atol=1e-4, rtol=0
            )

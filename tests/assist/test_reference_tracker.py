"""The reference motion: its phase, its anchor, and the wrench towards it in acrobatic clips."""

from __future__ import annotations

import torch

from pretrain.assist.curriculum import AssistSchedule, Curriculum
from pretrain.assist.forces import AssistForces
from pretrain.assist.reference_tracker import ReferenceTracker
from pretrain.characters.rotations import conjugate, from_axis_angle, log, multiply, rotate
from pretrain.sim.backend import make_backend
from pretrain.sim.env import CharacterEnv, EpisodeConfig
from pretrain.sim.features import style_frame
from pretrain.sim.ground import read_ground
from pretrain.sim.start_states import read_start_states
from pretrain.training_data import load_training_data
from tests.assist.assistances import make_assistance, make_tracker

FOLLOWED = ("kick", "cartwheel", "roll")


def make(every_clip, humanoid, strength: float) -> tuple[CharacterEnv, AssistForces, torch.Tensor]:
    """Four worlds at the beginning of each clip that is FOLLOWED, their assistance, and the
    clips."""
    library = every_clip.library
    clips = torch.tensor([library.names.index(name) for name in FOLLOWED]).repeat_interleave(4)
    every = torch.arange(len(clips))
    env = CharacterEnv(
        make_backend("mujoco", humanoid, len(clips), 1),
        humanoid.skeleton,
        library,
        EpisodeConfig(window=3, length=300),
        rng=torch.Generator().manual_seed(0),
    )
    env.begin(every, clips, torch.zeros(len(clips)))
    curriculum = Curriculum(
        library.weights, episode_length=300, schedule=AssistSchedule(strength, 1.0, 0.0)
    )
    tracker = make_tracker(library, env.starts, env.falls.ground.rising, len(clips))
    tracker.start(every, clips, torch.zeros(len(clips)))
    return env, AssistForces(env, make_assistance(curriculum, len(clips)), tracker), clips


def step(
    env: CharacterEnv, forces: AssistForces, targets: torch.Tensor, clips: torch.Tensor
) -> None:
    forces.tracker.advance(clips, env.falls.is_down, env.windows(), env.state())
    forces.apply(clips)
    env.step(targets, clips)


def off_course(env: CharacterEnv, aim: torch.Tensor) -> torch.Tensor:
    """Angle between each root and where it should be (N, 4), (N,) rad."""
    return log(multiply(aim, conjugate(env.state().root_rot))).norm(dim=-1)


def test_body_stays_on_course_with_assistance_and_not_without(every_clip, humanoid):
    furthest = {}
    for strength in (0.0, 1.0):
        env, forces, clips = make(every_clip, humanoid, strength)
        time = torch.zeros(len(clips))
        worst = torch.zeros(len(clips))
        for _ in range(40):
            step(env, forces, every_clip.library.at(clips, time + 0.07).joint_pos, clips)
            time += 1 / 30
            worst = torch.maximum(
                worst, off_course(env, every_clip.library.at(clips, time).root_rot)
            )
        furthest[strength] = worst.view(len(FOLLOWED), -1).amax(1)
    assert (furthest[1.0] < 0.8).all()
    assert (furthest[0.0] > 1.2).all()


def elsewhere(there):
    """A state turned about z and moved along the ground, and by how much."""
    turned = from_axis_angle("z", torch.tensor([2.0]))
    moved = torch.tensor([[3.0, -4.0, 0.0]])
    state = there.map(torch.clone)
    state.root_pos[:] = rotate(turned, there.root_pos) + moved
    state.root_rot[:] = multiply(turned, there.root_rot)
    state.root_vel[:] = rotate(turned, there.root_vel)
    state.root_ang_vel[:] = rotate(turned, there.root_ang_vel)
    return state, moved


def one_world(every_clip, skeleton) -> ReferenceTracker:
    library = every_clip.library
    return make_tracker(
        library, read_start_states(library, skeleton, 3), read_ground(library, skeleton).rising, 1
    )


ONE = torch.tensor([0])
STANDS = torch.tensor([False])


def test_clip_restarts_at_its_end_anchored_at_the_character(every_clip, skeleton):
    library = every_clip.library
    tracker = one_world(every_clip, skeleton)
    kick = torch.tensor([library.names.index("kick")])
    ending = style_frame(skeleton, library.windows(kick, library.durations[kick], 3)).flatten(1)
    restart = torch.zeros(1)
    for _ in range(2):
        state, moved = elsewhere(library.at(kick, restart))
        tracker.start(ONE, kick, library.durations[kick])
        tracker.advance(kick, STANDS, ending, state)
        restart = tracker.phase.clone()
    assert restart < library.durations[kick] / 2
    assert tracker.wrench(ONE, state).norm() < 0.1
    torch.testing.assert_close(tracker.anchor_pos, moved, atol=1e-4, rtol=0)


def test_a_clip_that_ends_in_a_stride_continues_in_it(tmp_path, skeleton):
    recipe = tmp_path / "walk.yaml"
    motion = '{file: "everyday:cmu_02_02.npz", name: walk}'
    recipe.write_text(f"name: walk\nmirror: false\nmotions: [{motion}]\n")
    walk = load_training_data("humanoid", str(recipe), 3)
    library = walk.library
    tracker = one_world(walk, skeleton)
    end = library.at(ONE, library.durations)
    ending = style_frame(skeleton, library.windows(ONE, library.durations, 3)).flatten(1)
    tracker.start(ONE, ONE, torch.zeros(1))
    error_from_zero = tracker.tracking_error(ending)
    tracker.start(ONE, ONE, library.durations)
    tracker.advance(ONE, STANDS, ending, end)
    assert 0 < tracker.phase < library.durations / 2
    assert tracker.tracking_error(ending) < 0.4 * error_from_zero


def test_getup_clip_holds_its_final_pose_after_rising(every_clip, skeleton):
    library = every_clip.library
    tracker = one_world(every_clip, skeleton)
    rise = torch.tensor([library.names.index("getup_faceup")])
    standing = library.windows(rise, library.durations[rise], 3)
    window = style_frame(skeleton, standing).flatten(1)
    state = standing.map(lambda x: x[:, -1])
    tracker.start(ONE, rise, library.durations[rise] - 0.1)
    for _ in range(30):
        tracker.advance(rise, STANDS, window, state)
    assert tracker.tracking_error(window) < 0.1
    assert tracker.wrench(ONE, state).norm() < 30  # N and N m; lying down again takes hundreds


def test_the_reference_frame_is_the_clips_at_the_phase(every_clip, skeleton):
    library = every_clip.library
    tracker = make_tracker(
        library,
        read_start_states(library, skeleton, 3),
        read_ground(library, skeleton).rising,
        len(library.names),
    )
    clips = torch.arange(len(library.names))
    frames_seen = []
    for share in (0.2, 0.8):
        tracker.start(clips, clips, share * library.durations)
        frames_seen.append(tracker.reference_frame())
    frames = [
        style_frame(skeleton, library.at(clips, share * library.durations)) for share in (0.2, 0.8)
    ]
    std = tracker._scale[-frames[0].shape[-1] :]
    torch.testing.assert_close(
        frames_seen[1] - frames_seen[0], (frames[1] - frames[0]) / std, atol=0.3, rtol=0.1
    )


def test_new_reference_clip_starts_at_the_nearest_phase(every_clip, skeleton):
    library = every_clip.library
    tracker = one_world(every_clip, skeleton)
    walk, roll = (torch.tensor([library.names.index(name)]) for name in ("walk", "roll"))
    tracker.start(ONE, walk, torch.zeros(1))
    time = torch.tensor([1.0])  # upside down
    window = library.windows(roll, time, 3)
    tracker.advance(
        roll, STANDS, style_frame(skeleton, window).flatten(1), window.map(lambda x: x[:, -1])
    )
    assert tracker.clip == roll
    torch.testing.assert_close(tracker.phase, time, atol=0.02, rtol=0)
    assert tracker.tracking_error(style_frame(skeleton, window).flatten(1)) < 0.3


def test_phase_follows_a_slow_body_and_runs_ahead_of_a_still_one(every_clip, skeleton):
    library = every_clip.library
    walk = torch.tensor([library.names.index("walk")])
    steps = 24
    late = {}
    for pace in (1.0, 0.8, 0.0):
        tracker = one_world(every_clip, skeleton)
        tracker.start(ONE, walk, torch.tensor([0.1]))
        for k in range(steps):
            window = library.windows(walk, torch.tensor([0.1 + k * pace / 30]), 3)
            tracker.advance(
                walk,
                STANDS,
                style_frame(skeleton, window).flatten(1),
                window.map(lambda x: x[:, -1]),
            )
        late[pace] = tracker.phase.item() - (0.1 + steps * pace / 30)
    assert abs(late[1.0]) < 0.04
    assert abs(late[0.8]) < 0.06
    assert late[0.0] > 0.5


def test_restored_snapshot_continues_identically(every_clip, humanoid):
    def run(env: CharacterEnv, forces: AssistForces, clips: torch.Tensor) -> torch.Tensor:
        for _ in range(50):
            step(env, forces, torch.zeros(len(clips), 28), clips)
        return env.state().flatten()

    (first, pushes, clips), (second, others, _) = (
        make(every_clip, humanoid, 1.0) for _ in range(2)
    )
    run(first, pushes, clips)
    second.restore(first.snapshot())
    others.tracker.restore(pushes.tracker.snapshot())
    others.restore(pushes.snapshot())
    assert torch.equal(run(first, pushes, clips), run(second, others, clips))


def blending_tracker(training_data, skeleton, steps: int) -> tuple[ReferenceTracker, torch.Tensor]:
    """The tracker of one env just after a change from a walk to a run, blended over `steps`."""
    library = training_data.library
    starts = read_start_states(library, skeleton, 3)
    rising = read_ground(library, skeleton).rising
    tracker = make_tracker(library, starts, rising, 1, blend_steps=steps)
    walk, run = (torch.tensor([library.names.index(name)]) for name in ("walk", "run"))
    half = library.durations[walk] / 2
    tracker.start(ONE, walk, half)
    window = style_frame(skeleton, library.windows(walk, half, 3)).flatten(1)
    tracker.advance(run, STANDS, window, library.at(walk, half))
    return tracker, window


def test_blended_reference_goes_from_the_previous_to_the_new_clip(training_data, skeleton):
    library = training_data.library
    steps = 10
    blended, window = blending_tracker(training_data, skeleton, steps)
    at_once, _ = blending_tracker(training_data, skeleton, 0)
    run = torch.tensor([library.names.index("run")])
    assert blended.tracking_error(window) < 0.3 * at_once.tracking_error(window)
    state = library.at(run, torch.zeros(1))
    distances = []
    for _ in range(steps):
        distances.append(float((blended.pose() - at_once.pose()).norm()))
        for tracker in (blended, at_once):
            tracker.advance(run, STANDS, window, state)
    assert distances[0] > 2 * distances[-1] > 0
    for read in ("pose", "target", "reference_frame", "rows"):
        assert torch.equal(getattr(blended, read)(), getattr(at_once, read)())
    assert blended.tracking_error(window) == at_once.tracking_error(window)


def test_an_episode_that_begins_ends_a_blend(training_data, skeleton):
    library = training_data.library
    tracker, window = blending_tracker(training_data, skeleton, 10)
    walk = torch.tensor([library.names.index("walk")])
    half = library.durations[walk] / 2
    tracker.start(ONE, walk, half)
    assert tracker.blend.share == 1
    assert tracker.tracking_error(window) < 0.1


def test_getup_clips_are_not_blended(every_clip, skeleton):
    library = every_clip.library
    starts = read_start_states(library, skeleton, 3)
    rising = read_ground(library, skeleton).rising
    tracker = make_tracker(library, starts, rising, 1, blend_steps=10)
    walk, rise = (torch.tensor([library.names.index(n)]) for n in ("walk", "getup_faceup"))
    window = style_frame(skeleton, library.windows(rise, torch.zeros(1), 3)).flatten(1)
    for first, then in ((walk, rise), (rise, walk)):
        tracker.start(ONE, first, torch.zeros(1))
        tracker.advance(then, STANDS, window, library.at(rise, torch.zeros(1)))
        assert tracker.blend.share == 1


def test_a_restored_tracker_continues_as_the_original(training_data, skeleton):
    library = training_data.library
    original, window = blending_tracker(training_data, skeleton, 10)
    copy, _ = blending_tracker(training_data, skeleton, 10)
    copy.start(ONE, ONE, torch.zeros(1))
    copy.restore(original.snapshot())
    run = torch.tensor([library.names.index("run")])
    for tracker in (original, copy):
        for _ in range(3):
            tracker.advance(run, STANDS, window, library.at(run, torch.zeros(1)))
    assert torch.equal(original.pose(), copy.pose())
    assert torch.equal(original.tracking_error(window), copy.tracking_error(window))

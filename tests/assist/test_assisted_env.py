"""The training aids around the ASE environment: observations, terminations and extras."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch

from pretrain.ase.env import AseEnv
from pretrain.ase.latents import LatentSampling, sample_on_sphere
from pretrain.ase.nets import Sizes, make_nets
from pretrain.ase.reference_windows import (
    ReferenceWindows,
    make_reference_windows,
    window_normalizer,
)
from pretrain.ase.symmetry import make_symmetry
from pretrain.assist.assisted_env import AssistedEnv
from pretrain.assist.curriculum import Curriculum, NearLatents
from pretrain.assist.foot_swing import FootSwing
from pretrain.assist.privileged_observation import PRIVILEGED_SCALARS, privileged_mirror
from pretrain.assist.reference_tracker import NONE
from pretrain.assist.tracking_termination import CHECK_EVERY, TrackingLimits, TrackingTermination
from pretrain.sim.backend import make_backend
from pretrain.sim.env import ActionScale, CharacterEnv, EpisodeConfig, pd_target
from pretrain.sim.falls import NO_RECOVERY, Recovery
from pretrain.sim.start_states import read_start_states
from pretrain.sim.velocity_range import read_velocity_ranges
from tests.assist.assistances import PERIOD, make_assistance, make_switches, make_tracker

GRACE = 3
ANYWHERE = NearLatents(prob=0.0, steps=150, after=0.0)


@pytest.fixture
def demos(training_data, skeleton):
    return make_reference_windows(training_data.library, skeleton, 3, rate=30.0)


@dataclass(frozen=True)
class Settings:
    max_error: float = 1e9
    longest: int = 3  # control steps of a latent
    recovery: Recovery = NO_RECOVERY
    max_velocity_excess: float | None = None
    near: NearLatents = ANYWHERE
    assisted: bool = False
    feet: bool = False
    switch_start: float = 0.0
    default_reset_prob: float = 0.0


def make(training_data, humanoid, demos: ReferenceWindows, **settings: Any) -> AssistedEnv:
    """An assisted environment of 256 worlds, with `Settings`."""
    chosen = Settings(**settings)
    rng = torch.Generator().manual_seed(0)
    library = training_data.library
    curriculum = Curriculum(library.weights, episode_length=300, near=chosen.near)
    curriculum.assist_strength[:] = 0.02 * chosen.assisted
    env = CharacterEnv(
        make_backend("mujoco", humanoid, 256, 1),
        humanoid.skeleton,
        library,
        EpisodeConfig(
            window=3,
            length=300,
            recovery=chosen.recovery,
            clip_weights=lambda: curriculum.weights,
            default_reset_prob=chosen.default_reset_prob,
        ),
        rng=torch.Generator().manual_seed(1),
    )
    skills = AseEnv(
        env,
        ActionScale.from_library(library),
        LatentSampling(8, chosen.longest, chosen.longest, 0.5),
        sample_on_sphere(len(library.names), 8, rng),
        rng=rng,
        near_probs=curriculum.near_probs,
    )
    limits = TrackingLimits(
        chosen.max_error,
        grace_period=GRACE,
        recovery_window=GRACE,
        std_factor=0.0,
        max_velocity_excess=chosen.max_velocity_excess,
    )
    termination = TrackingTermination(demos, window_normalizer(demos).std, limits, curriculum, 256)
    switches = make_switches(len(library.names), 256, chosen.switch_start)
    return AssistedEnv(
        skills,
        make_assistance(curriculum, 256, switches=switches),
        termination,
        feet=FootSwing(humanoid.skeleton, env.starts) if chosen.feet else None,
    )


def begin(assisted: AssistedEnv, clips: torch.Tensor, times: torch.Tensor) -> None:
    """All worlds in clips (256,) at times (256,) s, their references with them."""
    assisted.env.begin(torch.arange(256), clips, times)
    assisted._start_tracker(torch.arange(256))


def test_the_default_pose_has_the_grace_period_and_counts_for_no_clip(
    training_data, humanoid, demos
):
    assisted = make(
        training_data,
        humanoid,
        demos,
        max_error=0.1,
        longest=300,
        default_reset_prob=1.0,
    )
    assisted.reset(torch.arange(256))
    before = assisted.curriculum.snapshot()
    hold = assisted.ase_env.action_scale.action(torch.zeros(256, 28))
    for step in range(GRACE + 2):
        resets = assisted.step(hold).resets
        assert resets is not None
        assert bool(resets.any()) == (step >= GRACE), step
    after = assisted.curriculum.snapshot()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_a_broken_world_counts_as_a_failure_of_the_clip_it_began_in(training_data, humanoid, demos):
    assisted = make(training_data, humanoid, demos, longest=300)
    env = assisted.env
    walk = torch.full((256,), training_data.library.names.index("walk"))
    begin(assisted, walk, torch.zeros(256))
    assisted.ase_env.z_clip[:] = walk
    state = env.state()
    env.backend.place(torch.arange(256), replace(state, root_vel=state.root_vel + 2e3))
    outcome = assisted.step(torch.zeros(256, 28))
    assert outcome.terminated.all()
    assert env.num_broken == 256
    assert (env.clip != walk).any()  # new episodes
    failures = assisted.curriculum.failures
    assert failures[walk[0]] == assisted.curriculum.steps[walk[0]] == failures.sum() == 256


def test_latents_lie_near_a_clip_until_it_is_mastered(training_data, humanoid, demos):
    assisted = make(
        training_data, humanoid, demos, near=NearLatents(prob=1.0, steps=150, after=0.0)
    )
    curriculum = assisted.curriculum
    run = training_data.library.names.index("run")

    def astray() -> torch.Tensor:  # clips that worlds begin in with another's latent
        assisted.reset(torch.arange(256))
        return assisted.env.clip[assisted.ase_env.z_clip != assisted.env.clip].unique()

    curriculum.steps[:] = 1000
    curriculum.failures[:] = 5
    curriculum.failures[run] = 10  # 100 steps between them
    curriculum.assist_strength[:] = 0.02
    assert not len(astray())
    curriculum.assist_strength[:] = 0
    others = torch.arange(len(training_data.library.names))
    assert torch.equal(astray(), others[others != run])
    curriculum.failures[run] = 5
    assert torch.equal(astray(), others)


@pytest.mark.parametrize(
    ("left", "bounds"), [(0.0, (0.38, 0.55)), (0.5, (0.15, 0.31)), (1.0, (0.0, 0.0))]
)
def test_a_share_of_latents_stays_near_mastered_clips(training_data, humanoid, demos, left, bounds):
    least, most = bounds
    assisted = make(
        training_data, humanoid, demos, near=NearLatents(prob=1.0, steps=150, after=left)
    )
    assisted.curriculum.steps[:] = 1000
    assisted.curriculum.failures[:] = 5
    assisted.reset(torch.arange(256))
    # half of the latents are a clip's own; of the others that lie anywhere, one in 14 is near by
    # chance
    assert least <= (assisted.ase_env.z_clip != assisted.env.clip).float().mean() <= most


def test_a_world_far_from_its_clip_ends_after_its_grace_period(training_data, humanoid, demos):
    assisted = make(training_data, humanoid, demos, max_error=1e-3, longest=100, assisted=True)
    near = assisted.ase_env.z_clip == assisted.env.clip
    assert near.any()
    assert not near.all()
    first = [assisted.step(torch.zeros(256, 28)).terminated for _ in range(CHECK_EVERY)]
    # no env is that near: only those with a grace period continue
    assert torch.equal(torch.stack(first).any(0), near)
    last = [assisted.step(torch.zeros(256, 28)).terminated for _ in range(GRACE)]
    assert torch.stack(last).any(0).all()


def test_curriculum_records_falls_under_the_starting_clip(training_data, humanoid, demos):
    assisted = make(training_data, humanoid, demos, max_error=1e-3, longest=100, assisted=True)
    near = assisted.ase_env.z_clip == assisted.env.clip
    assisted.ase_env.steps_to_resample.fill_(CHECK_EVERY)  # all are checked in the next step
    assisted.step(torch.zeros(256, 28))
    counts = torch.bincount(assisted.env.clip, minlength=len(training_data.library.names)).float()
    torch.testing.assert_close(assisted.curriculum.steps, counts)
    strays = torch.bincount(assisted.env.clip[near], minlength=len(counts)).float()
    torch.testing.assert_close(assisted.curriculum.failures, strays)


def test_nearer_reward_sums_to_the_change_in_distance(training_data, humanoid, demos):
    assisted = make(training_data, humanoid, demos, longest=300)
    before = assisted.termination.distance_to_mean(assisted.env.windows(), assisted.ase_env.z_clip)
    total = sum(assisted.step(torch.zeros(256, 28)).extras["nearer"] for _ in range(10))
    after = assisted.termination.distance_to_mean(assisted.env.windows(), assisted.ase_env.z_clip)
    torch.testing.assert_close(total, before - after, atol=1e-4, rtol=0)


def test_a_new_skill_of_the_same_clip_gives_no_new_grace(training_data, humanoid, demos):
    assisted = make(training_data, humanoid, demos, longest=1, assisted=True)
    for _ in range(GRACE + 2):
        before = assisted.ase_env.z_clip.clone()
        assisted.step(torch.zeros(256, 28))
    same = assisted.ase_env.z_clip == before
    assert (assisted.termination.grace_steps[~same] == GRACE).all()
    assert (assisted.termination.grace_steps[same] < GRACE).all()


def test_fallen_env_tracks_a_getup_clip_and_is_not_terminated(every_clip, humanoid):
    recovery = Recovery(90, fall_init_prob=0.5)
    assisted = make(
        every_clip, humanoid, every_clip.demos, max_error=1.3, longest=300, recovery=recovery
    )
    falls = assisted.env.falls
    ground = falls.ground
    for _ in range(20):
        held = assisted.ase_env.z_clip.clone()
        step = assisted.step(torch.zeros(256, 28))
        down = falls.is_down
        since = falls.steps_down > 1  # references have it from the step before
        assert ground.rising[step.extras["z_clip"][since]].all()
        assert torch.equal(step.extras["z_clip"][~down], held[~down])
        resets = step.resets
        assert resets is not None
        assert not (resets & down & (falls.max_steps_down == 90) & (falls.steps_down <= 90)).any()
        assisted.reset(resets.nonzero()[:, 0])
    assert down.sum() > 32


def test_env_reset_after_nan_into_lying_keeps_its_skill_clip(every_clip, humanoid):
    assisted = make(
        every_clip,
        humanoid,
        every_clip.demos,
        recovery=Recovery(90, fall_init_prob=1.0),
    )
    assisted.env.falls.ground.rising[-1] = True  # the clip that NONE would index
    every = torch.arange(256)
    held = assisted.ase_env.z_clip.clone()
    assisted.env.backend.place(every, assisted.env.state().map(lambda x: x * float("nan")))
    step = assisted.step(torch.zeros(256, 28))
    assert assisted.env.falls.is_down.any()
    assert torch.equal(step.extras["z_clip"], held)


def test_curriculum_counts_lying_starts_under_their_skill_only(every_clip, humanoid):
    assisted = make(
        every_clip, humanoid, every_clip.demos, longest=300, recovery=Recovery(90, after_falls=True)
    )
    library = every_clip.library
    ground = assisted.env.falls.ground
    crawl, walk = (library.names.index(name) for name in ("crawl", "walk"))
    every = torch.arange(256)
    begin(assisted, torch.full((256,), crawl), torch.rand(256))
    assisted.ase_env.z_clip[:] = torch.tensor([crawl, walk]).repeat(128)
    assisted.env.falls.allow_recovery(every, torch.full((256,), crawl), assisted.ase_env.z_clip)
    for _ in range(2):  # an episode has no contacts at its start
        assisted.step(torch.zeros(256, 28))
    assert not ground.upright[crawl]
    assert (assisted.env.falls.steps_down[1::2] == 3).sum() > 32
    assert assisted.curriculum.steps[crawl] == 2 * 128
    assert not assisted.curriculum.failures.any()


@pytest.mark.parametrize(("aided", "share"), [(False, 1.0), (True, 0.0)])
def test_phase_locked_standing_during_a_roll_terminates(every_clip, humanoid, aided, share):
    assisted = make(
        every_clip, humanoid, every_clip.demos, max_error=1.0, longest=300, assisted=aided
    )
    library = every_clip.library
    roll, walk = (library.names.index(name) for name in ("roll", "walk"))
    walking = (torch.full((256,), walk), torch.linspace(0, 1, 256))
    begin(assisted, *walking)
    assisted.ase_env.z_clip[:] = roll
    assisted.ase_env.steps_to_resample[:] = 300
    assisted.termination.grace_steps[:] = 0
    ended = torch.zeros(256, dtype=torch.bool)
    # the character is put back into the walk after each step, and only its reference advances
    for _ in range(40):
        ended |= assisted.step(torch.zeros(256, 28)).terminated
        assisted.env.begin(torch.arange(256), *walking)
    assert ended.float().mean() == pytest.approx(share, abs=0.1)


@pytest.mark.parametrize("aided", [False, True])
@pytest.mark.parametrize("bounded", [False, True])
def test_phase_locked_velocity_bound_terminates_a_slow_body(
    training_data, humanoid, demos, aided, bounded
):
    most = 1.0 if bounded else None
    assisted = make(
        training_data,
        humanoid,
        demos,
        longest=300,
        max_velocity_excess=most,
        assisted=aided,
    )
    ended = torch.zeros(256, dtype=torch.bool)
    for _ in range(GRACE + 2):
        clips, times = assisted.env.clip.clone(), assisted.env.clip_time.clone()
        assisted.ase_env.z_clip[:] = clips
        assisted.velocity.mean.zero_()
        ended |= assisted.step(torch.zeros(256, 28)).terminated
        begin(assisted, clips, times)
    terminates = bounded and not aided
    assert ended.float().mean() == pytest.approx(float(terminates), abs=0.05)


def test_learned_clips_start_unassisted_and_count_as_progress(training_data, humanoid, demos):
    assisted = make(training_data, humanoid, demos)
    names = training_data.library.names
    learned = torch.arange(len(names)) < len(names) // 2
    assisted.curriculum.assist_strength[:] = 1.0
    assisted.getup.strength[:] = 0.5
    assisted.assistance.begin_unassisted(learned)
    for strength in (assisted.curriculum.assist_strength, assisted.getup.strength):
        assert (strength[learned] == 0).all()
        assert (strength[~learned] > 0).all()
    assert assisted.curriculum.progress == pytest.approx(float(learned.float().mean()))


def test_foot_match_is_recorded_under_the_own_latent(training_data, humanoid, demos):
    assisted = make(training_data, humanoid, demos, feet=True)
    assisted.ase_env.z_clip[:] = assisted.env.clip
    assisted.ase_env.z_clip[::2] = (assisted.env.clip[::2] + 1) % len(training_data.library.names)
    match = assisted.step(torch.zeros(256, 28)).extras["foot_match"]
    assert match[1::2].mean() > 0.6  # one step after the clip's state
    assert assisted.curriculum.compared.sum() == 128
    assert assisted.curriculum.matched.sum() == pytest.approx(float(match[1::2].sum()), rel=1e-4)


def test_foot_match_is_not_recorded_in_a_clips_rests(training_data, humanoid, demos):
    assisted = make(training_data, humanoid, demos, feet=True)
    assert assisted.feet is not None
    walk = training_data.library.names.index("walk")
    first = int(assisted.env.starts.counts[:walk].sum())
    assisted.feet.stepping[first : first + int(assisted.env.starts.counts[walk])] = False
    assisted.ase_env.z_clip[:] = assisted.env.clip
    walking = assisted.env.clip == walk
    assert walking.any()
    match = assisted.step(torch.zeros(256, 28)).extras["foot_match"]
    assert match[walking].mean() > 0.6
    assert assisted.curriculum.compared[walk] == 0
    assert assisted.curriculum.compared.sum() == (~walking).sum()


def test_a_skill_of_another_velocity_begins_a_switch(training_data, humanoid, demos):
    assisted = make(training_data, humanoid, demos, switch_start=0.8, longest=300)
    names = training_data.library.names
    run = names.index("run")
    walk = names.index("walk")
    every = torch.arange(256)
    begin(assisted, torch.full((256,), run), torch.zeros(256))
    assisted.ase_env.z_clip[:] = run
    assisted.velocity.start(every, assisted.env.clip, assisted.env.state())
    assisted.switches.start(every, assisted.env.clip, every < 0)
    changed = every % 2 == 0
    assisted.ase_env.z_clip[changed] = walk
    away = assisted.velocity.distance(assisted.ase_env.z_clip) > 1
    assert torch.equal(away, changed)  # a run is faster than a walk may be
    assisted.switches.change_skill(changed, assisted.env.clip, away)
    strengths = assisted.switches.strengths(assisted.ase_env.z_clip)
    assert torch.equal(strengths > 0, changed)
    assisted.step(torch.zeros(256, 28))
    assert (assisted.switches.steps[changed] == 1).float().mean() > 0.9  # but where it fell


def test_switch_succeeds_if_it_ends_on_the_clip(training_data, humanoid, demos):
    assisted = make(training_data, humanoid, demos, switch_start=0.8, longest=300, max_error=1.3)
    every = torch.arange(256)
    walk = training_data.library.names.index("walk")
    for arrives in (True, False):
        begin(assisted, torch.full((256,), walk), torch.zeros(256))
        assisted.ase_env.z_clip[:] = walk
        assisted.velocity.start(every, assisted.env.clip, assisted.env.state())
        if not arrives:
            assisted.velocity.mean[:, 0] += 5.0
        assisted.switches.steps[:] = PERIOD - 1
        assisted.switches.switches.zero_()
        assisted.switches.successes.zero_()
        assisted.step(torch.zeros(256, 28))  # one step from a state of the clip
        success = assisted.switches.success[walk, walk]
        assert success == pytest.approx(float(arrives), abs=0.1)


def test_extras_have_the_reference_action_and_the_assistance(every_clip, humanoid):
    assisted = make(every_clip, humanoid, every_clip.demos, longest=300)
    library = every_clip.library
    ground = assisted.env.falls.ground
    every = torch.arange(256)
    clips = every % len(library.names)
    begin(assisted, clips, torch.zeros(256))
    assisted.ase_env.z_clip[:] = clips
    assisted.curriculum.assist_strength = torch.linspace(0, 1, len(library.names))
    assisted.getup.strength = torch.full((len(library.names),), 0.25)
    seen = assisted.step(torch.zeros(256, 28)).extras
    standing = ~ground.rising[clips]
    assert torch.equal(
        seen["assist_strength"][standing], assisted.curriculum.assist_strength[clips[standing]]
    )
    assert (seen["assist_strength"][~standing] == 0.25).all()
    ahead = pd_target(library.at(clips, torch.full((256,), 1 / 30)))
    aimed = assisted.ase_env.action_scale.target(seen["reference_action"])
    assert (aimed - ahead)[standing].abs().mean() < 0.02
    assert (aimed - ahead.roll(7, 0))[standing].abs().mean() > 0.2


def test_pose_error_is_reference_minus_pose_and_zero_when_down(every_clip, humanoid):
    assisted = make(
        every_clip, humanoid, every_clip.demos, longest=300, recovery=Recovery(90, after_falls=True)
    )
    assisted.ase_env.z_clip[:] = assisted.env.clip
    missed = assisted.step(torch.zeros(256, 28)).extras["pose_error"]
    env = assisted.env
    down = env.falls.is_down
    assert down.any()
    assert not missed[down].any()
    there = env.library.at(assisted.tracker.clip, assisted.tracker.phase).joint_pos
    short = (there - env.state().joint_pos) / assisted.ase_env.action_scale.scale
    # stored phases are 1/120 s apart
    torch.testing.assert_close(missed[~down], short[~down], atol=0.2, rtol=0)
    assert (missed * short)[~down].sum() > 0.9 * short[~down].square().sum()


def test_privileged_obs_has_reference_errors_and_remaining_time(every_clip, humanoid):
    assisted = make(
        every_clip, humanoid, every_clip.demos, longest=300, recovery=Recovery(90, after_falls=True)
    )
    assisted.ase_env.z_clip[:] = assisted.env.clip
    assisted.ase_env.steps_to_resample[:] = 300
    assisted.termination.grace_steps[:] = GRACE
    assisted.step(torch.zeros(256, 28))
    seen = assisted.observe()["privileged"]
    falls = assisted.env.falls
    tracker = assisted.tracker
    lies = falls.is_down
    slack = assisted.termination.grace_steps / GRACE
    time_left = lies * (90 - falls.steps_down) / 90
    error = tracker.tracking_error(assisted.env.windows())
    excess = assisted.velocity.excess()
    expected = torch.stack([error, excess, slack, lies, time_left], -1)
    is_set = lies | (tracker.clip == assisted.ase_env.z_clip)
    assert is_set.float().mean() > 0.9
    assert lies.any()
    assert torch.equal(seen[is_set, :-PRIVILEGED_SCALARS], tracker.reference_frame()[is_set])
    torch.testing.assert_close(seen[is_set, -PRIVILEGED_SCALARS:], expected[is_set])
    assisted.ase_env.z_clip[:] = (assisted.ase_env.z_clip + 2) % len(every_clip.library.names)
    anew = ~lies & (
        tracker.clip != assisted.ase_env.z_clip
    )  # its reference is set in the next step
    assert anew.float().mean() > 0.5
    assert not assisted.observe()["privileged"][anew].any()


def test_reset_does_not_modify_tensors_returned_by_step(training_data, humanoid, demos):
    assisted = make(training_data, humanoid, demos)
    step = assisted.step(torch.zeros(256, 28))
    tensors = {**step.extras, **{f"next {name}": x for name, x in step.next_obs.items()}}
    before = {name: x.clone() for name, x in tensors.items()}
    assisted.reset(torch.arange(256))
    assert not torch.equal(assisted.env.windows(), before["window"])
    assert [name for name in tensors if not torch.equal(tensors[name], before[name])] == []


@pytest.mark.parametrize("own_return", [False, True])
def test_next_obs_equals_observe_unless_the_episode_ended(every_clip, humanoid, own_return):
    assisted = make(every_clip, humanoid, every_clip.demos, longest=8)
    assisted.ase_env.sampling = replace(assisted.ase_env.sampling, own_return=own_return)
    some = torch.tensor([3, 1, 200])
    ends = 0
    for _ in range(20):
        step = assisted.step(torch.zeros(256, 28))
        over = step.terminated | step.truncated
        assert step.resets is not None
        assisted.reset(step.resets.nonzero()[:, 0])
        now = assisted.observe()
        of_some = assisted.observe(some)
        for name, seen in now.items():
            assert torch.equal(seen[~over], step.next_obs[name][~over]), name
            torch.testing.assert_close(of_some[name], seen[some])
        ends += int(over.sum())
    assert ends > 0


@pytest.mark.parametrize("own_return", [False, True])
def test_own_return_truncates_at_z_change_and_episode_continues(
    training_data, humanoid, demos, own_return
):
    assisted = make(training_data, humanoid, demos, longest=3)
    assisted.ase_env.sampling = replace(assisted.ase_env.sampling, own_return=own_return)
    for left in (2, 1, 0):
        z = assisted.ase_env.z.clone()
        still = torch.zeros(256, 28)
        step = assisted.step(still)
        over = torch.full((256,), left == 0)
        assert not (assisted.ase_env.z != z).any(-1)[~over].any()
        assert torch.equal(step.truncated, over & ~step.terminated & own_return)
        assert step.resets is not None
        assert torch.equal(step.resets, step.terminated)
        # the z that the next state is valued under
        seen = z if own_return else assisted.ase_env.z
        torch.testing.assert_close(step.next_obs["z"], seen, rtol=0, atol=0)
        assisted.reset(step.resets.nonzero()[:, 0])


def test_the_privileged_observation_is_mirrored_with_the_character(
    training_data, library, skeleton, rng
):
    clips = torch.arange(len(library.names))
    tracker = make_tracker(
        library,
        read_start_states(library, skeleton, 3),
        torch.zeros(len(clips), dtype=torch.bool),
        len(clips),
    )
    tracker.start(clips, clips, 0.3 * library.durations)
    seen = torch.cat([tracker.reference_frame(), torch.ones(len(clips), PRIVILEGED_SCALARS)], -1)
    image = privileged_mirror(skeleton)
    torch.testing.assert_close(image(seen[0::2]), seen[1::2], atol=0.05, rtol=1e-2)
    both = make_symmetry(skeleton, library.images, 8, 3, privileged=image)
    assert both.value
    sizes = Sizes(
        8, (32,), (32,), (64,), (64,), action_std=0.1, average_decay=0.9, privileged=len(image)
    )
    nets = make_nets(
        sizes, library, training_data.demos, skeleton.num_hinges, symmetry=both, rng=rng
    )
    assert set(nets.value.inputs.names) - set(nets.policy.inputs.names) == {"privileged"}
    x = torch.randn(16, len(both.value), generator=rng)
    torch.testing.assert_close(nets.value.body(both.value(x)), nets.value.body(x))


def test_lying_start_has_no_reference_clip_until_the_first_step(every_clip, humanoid):
    assisted = make(
        every_clip,
        humanoid,
        every_clip.demos,
        recovery=Recovery(90, fall_init_prob=0.5),
    )
    lies = assisted.env.began_lying
    assert 0.3 < lies.float().mean() < 0.7
    assert torch.equal(assisted.tracker.clip == NONE, lies)
    assert torch.equal(assisted.tracker.clip[~lies], assisted.env.clip[~lies])
    assert torch.equal(assisted.tracker.phase[~lies], assisted.env.clip_time[~lies])
    assisted.step(torch.zeros(256, 28))
    assert not (assisted.tracker.clip == NONE).any()


def test_aids_at_zero_strength_leave_plain_ase_unchanged(training_data, humanoid, demos):
    """No assistance, no error limit, no falls recorded yet: the same characters under the same
    latents."""
    assisted, plain = (make(training_data, humanoid, demos) for _ in range(2))
    for _ in range(5):
        action = torch.full((256, 28), 0.1)
        one = assisted.step(action)
        other = plain.ase_env.step(action)
        assert torch.equal(one.next_obs["obs"], other.next_obs["obs"])
        assert torch.equal(one.next_obs["z"], other.next_obs["z"])
        assert torch.equal(one.terminated, other.terminated)


def test_restored_snapshot_continues_bit_identical(every_clip, humanoid):
    recovery = Recovery(90, after_falls=True, fall_init_prob=0.2)
    first, second = (
        make(every_clip, humanoid, every_clip.demos, max_error=1.3, recovery=recovery)
        for _ in range(2)
    )
    first.curriculum.assist_strength[:] = 0.5

    def run(assisted: AssistedEnv) -> torch.Tensor:
        for _ in range(10):
            step = assisted.step(torch.zeros(256, 28))
            assert step.resets is not None
            assisted.reset(step.resets.nonzero()[:, 0])
            assisted.step_schedule()
        seen = assisted.observe()
        return torch.cat([seen["obs"], seen["z"], seen["privileged"]], -1)

    run(first)
    snapshot = first.snapshot()
    ahead = run(first)
    second.restore(snapshot)
    assert torch.equal(run(second), ahead)


def test_without_a_blend_the_velocity_ranges_are_those_of_the_skill(training_data, humanoid, demos):
    assisted = make(training_data, humanoid, demos)
    ranges = read_velocity_ranges(training_data.library)
    assert torch.equal(assisted.velocity.low, ranges.of(assisted.ase_env.z_clip).low)
    before = assisted.ase_env.z_clip.clone()
    assisted.ase_env.steps_to_resample[:] = 1
    assisted.step(torch.zeros(256, 28))
    assert (assisted.ase_env.z_clip != before).any()
    assert torch.equal(assisted.velocity.low, ranges.of(assisted.ase_env.z_clip).low)

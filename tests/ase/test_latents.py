"""Latents: where they lie, how long they last, which clip each belongs to, and how far from it a world may move."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from pretrain.ase.latents import LOOK, PRIVILEGED_SCALARS, LatentSchedule, SkillEnv, nearest_to, sphere
from pretrain.ase.style import Demos, demonstrations, window_normalizer
from pretrain.assist.reference_tracker import aim
from pretrain.assist.tracking_termination import LEAST, TrackingTermination
from pretrain.sim.backend import make_backend
from pretrain.sim.env import ActionScale, CharacterEnv
from pretrain.sim.falls import NOBODY, Protection

GRACE = 3


@pytest.fixture
def demos(material, skeleton):
    return demonstrations(material.library, skeleton, 3, rate=30.0)


def make(
    material, humanoid, demos: Demos, *, leash: float = 1e9, longest: int = 3, protection: Protection = NOBODY
) -> SkillEnv:
    rng = torch.Generator().manual_seed(0)
    env = CharacterEnv(
        make_backend("mujoco", humanoid, 256, 1),
        humanoid.skeleton,
        material.library,
        window=3,
        episode_length=300,
        rng=torch.Generator().manual_seed(1),
        protection=protection,
    )
    latents = sphere(len(material.library.names), 8, rng)
    schedule = LatentSchedule(8, longest, longest, 0.5)
    held = TrackingTermination(demos, window_normalizer(demos).std, leash, GRACE, lag=GRACE)
    return SkillEnv(env, ActionScale.of(material.library), schedule, latents, held, rng)


def test_latents_are_unit_and_lifetimes_in_range(rng):
    torch.testing.assert_close(sphere(100, 16, rng).norm(dim=-1), torch.ones(100))
    lifetimes = LatentSchedule(16, 1, 150, 0.5).lifetimes(5000, rng)
    assert lifetimes.min() == 1
    assert lifetimes.max() == 150


def test_directions_drawn_near_a_clip_are_those_that_belong_to_it(rng):
    latents = sphere(6, 8, rng)
    clips = torch.arange(6).repeat(200)
    z = nearest_to(clips, latents, rng)
    torch.testing.assert_close(z.norm(dim=-1), torch.ones(1200))
    assert torch.equal((z @ latents.T).argmax(-1), clips)
    anywhere = sphere(20_000, 8, rng)
    belong = anywhere[(anywhere @ latents.T).argmax(-1) == 0]
    torch.testing.assert_close(z[clips == 0].mean(0), belong.mean(0), atol=0.1, rtol=0)  # all of them, not the nearest


def test_where_hardly_any_direction_belongs_to_a_clip_its_own_latent_stands_in(rng):
    angles = torch.tensor([0.0, 0.001, -0.001])
    latents = torch.stack([angles.cos(), angles.sin()], -1)
    z = nearest_to(torch.zeros(50, dtype=torch.long), latents, rng)
    assert (z == latents[0]).all(-1).sum() > 40
    assert ((z @ latents.T).argmax(-1) == 0).all()


def test_every_latent_belongs_to_a_clip_and_a_share_are_its_own(material, humanoid, demos):
    skills = make(material, humanoid, demos)
    env, latents = skills.env, skills.clip_latents

    def own() -> torch.Tensor:
        return (skills.z == latents[skills.z_clip]).all(-1)

    assert torch.equal(skills.z_clip[own()], env.clip[own()])  # an episode begins with the skill it begins in
    for _ in range(4):
        before = skills.z_clip.clone()
        step = skills.step(torch.zeros(256, 28))
        assert torch.equal(step.extras["z_clip"], before)  # of the latent that was acted under, not of the next
        assert 0.35 < own().float().mean() < 0.65
        assert torch.equal(skills.z_clip, (skills.z @ latents.T).argmax(-1))
    torch.testing.assert_close(skills.z.norm(dim=-1), torch.ones(256))


def test_where_an_episode_begins_all_latents_can_be_near_its_clip(material, humanoid, demos):
    skills = make(material, humanoid, demos)
    assert not torch.equal(skills.z_clip, skills.env.clip)
    skills.schedule = replace(skills.schedule, near_prob=1.0)
    skills.reset(torch.arange(256))
    assert torch.equal(skills.z_clip, skills.env.clip)
    own = (skills.z == skills.clip_latents[skills.z_clip]).all(-1)
    assert 0.3 < own.float().mean() < 0.7
    skills.step(torch.zeros(256, 28))
    skills.left[:] = 1
    skills.step(torch.zeros(256, 28))  # a skill that is asked for later lies anywhere
    assert (skills.z_clip != skills.env.clip).float().mean() > 0.3
    skills.schedule = replace(skills.schedule, near_prob=0.5)
    skills.reset(torch.arange(256))
    assert 0.1 < (skills.z_clip != skills.env.clip).float().mean() < 0.35  # of half the latents half lie anywhere


def test_latents_lie_near_a_clip_until_it_stays_up_for_so_long_without_the_hand(material, humanoid, demos):
    skills = make(material, humanoid, demos)
    skills.schedule = replace(skills.schedule, near_prob=1.0, near_steps=150)
    curriculum, run = skills.env.curriculum, material.library.names.index("run")

    def astray() -> torch.Tensor:  # clips that worlds begin in with another's latent
        skills.reset(torch.arange(256))
        return skills.env.clip[skills.z_clip != skills.env.clip].unique()

    curriculum.steps[:], curriculum.falls[:] = 1000, 5
    curriculum.falls[run] = 10  # 100 steps between them
    curriculum.assist[:] = 0.02
    assert not len(astray())
    curriculum.assist[:] = 0
    others = torch.arange(len(material.library.names))
    assert torch.equal(astray(), others[others != run])
    curriculum.falls[run] = 5
    assert torch.equal(astray(), others)


@pytest.mark.parametrize(("left", "least", "most"), [(0.0, 0.38, 0.55), (0.5, 0.15, 0.31), (1.0, 0.0, 0.0)])
def test_a_share_of_latents_stays_near_a_clip_that_stays_up(material, humanoid, demos, left, least, most):
    skills = make(material, humanoid, demos)
    skills.schedule = replace(skills.schedule, near_prob=1.0, near_steps=150, near_after=left)
    skills.env.curriculum.steps[:], skills.env.curriculum.falls[:], skills.env.curriculum.assist[:] = 1000, 5, 0
    skills.reset(torch.arange(256))
    # half of the latents are a clip's own; of the others that lie anywhere, one in 14 is near by chance
    assert least <= (skills.z_clip != skills.env.clip).float().mean() <= most


def test_a_reset_writes_into_nothing_that_a_step_has_said(material, humanoid, demos):
    skills = make(material, humanoid, demos)
    step = skills.step(torch.zeros(256, 28))
    said = {**step.extras, **{f"next {name}": x for name, x in step.next_obs.items()}}
    before = {name: x.clone() for name, x in said.items()}
    skills.reset(torch.arange(256))
    assert not torch.equal(skills.env.windows(), before["window"])
    assert [name for name in said if not torch.equal(said[name], before[name])] == []


def test_distance_is_nothing_on_the_clip_and_one_a_spread_away(material, demos):
    scale = window_normalizer(demos).std
    leash = TrackingTermination(demos, scale, 1.0, GRACE, lag=GRACE)
    assert leash.distance(demos.windows, demos.clip).max() < 0.05
    one = demos.windows[:1]
    assert leash.distance(one + scale, demos.clip[:1]) == pytest.approx(1.0, abs=0.5)
    other = torch.full_like(demos.clip, material.library.names.index("run"))
    walking = demos.clip == material.library.names.index("walk")
    assert leash.distance(demos.windows, other)[walking].min() > 1.3  # a walk is no run


def test_to_hold_a_lively_clips_mean_pose_is_one_away_from_it_on_a_timed_leash(every_clip):
    demos, scale = every_clip.demos, window_normalizer(every_clip.demos).std
    leash = TrackingTermination(demos, scale, 1.2, GRACE, lag=GRACE)
    assert (leash.lengths == 1.2).all()
    leash.timed = True
    for clip, name in enumerate(every_clip.library.names):
        windows = demos.windows[demos.clip == clip] / scale
        apart = float((windows - windows.mean(0)).square().mean().sqrt())
        assert leash.lengths[clip] == pytest.approx(1.2 * max(apart, LEAST), rel=1e-4), name


def test_a_run_among_walks_can_be_held_to_its_moments_as_closely_as_a_lively_clip(material, demos):
    run = material.library.names.index("run")
    for liveliest, long in ((None, 1.47), (1.0, 1.0)):
        leash = TrackingTermination(demos, window_normalizer(demos).std, 1.2, GRACE, lag=GRACE, liveliest=liveliest)
        leash.timed = True
        assert leash.lengths[run] == leash.lengths.max() == pytest.approx(1.2 * long, rel=0.01)


def test_a_world_that_strays_ends_but_not_before_it_had_time_to_come_near(material, humanoid, demos):
    skills = make(material, humanoid, demos, leash=1e-3, longest=100)
    near = skills.z_clip == skills.env.clip
    assert near.any()
    assert not near.all()
    first = [skills.step(torch.zeros(256, 28)).terminated for _ in range(LOOK)]
    # Nobody is that near: only who had to come from elsewhere goes on.
    assert torch.equal(torch.stack(first).any(0), near)
    last = [skills.step(torch.zeros(256, 28)).terminated for _ in range(GRACE)]
    assert torch.stack(last).any(0).all()


def test_the_curriculum_hears_of_falls_and_of_strays_from_the_clip_that_was_begun_in(material, humanoid, demos):
    skills = make(material, humanoid, demos, leash=1e-3, longest=100)
    near = skills.z_clip == skills.env.clip
    skills.left.fill_(LOOK)  # all are looked at in the next step
    skills.step(torch.zeros(256, 28))
    counts = torch.bincount(skills.env.clip, minlength=len(material.library.names)).float()
    torch.testing.assert_close(skills.env.curriculum.steps, counts)
    strays = torch.bincount(skills.env.clip[near], minlength=len(counts)).float()
    torch.testing.assert_close(skills.env.curriculum.falls, strays)


def test_coming_nearer_to_the_clip_pays_what_going_away_costs(material, humanoid, demos):
    skills = make(material, humanoid, demos, longest=300)
    before = skills.leash.from_mean(skills.env.windows(), skills.z_clip)
    paid = sum(skills.step(torch.zeros(256, 28)).extras["nearer"] for _ in range(10))
    after = skills.leash.from_mean(skills.env.windows(), skills.z_clip)
    torch.testing.assert_close(paid, before - after, atol=1e-4, rtol=0)


@pytest.mark.parametrize("own_return", [False, True])
def test_what_a_step_led_to_is_seen_next_where_nothing_ended(every_clip, humanoid, own_return):
    skills = make(every_clip, humanoid, every_clip.demos, longest=8)
    skills.schedule = replace(skills.schedule, own_return=own_return)
    some, ends = torch.tensor([3, 1, 200]), 0
    for _ in range(20):
        step = skills.step(torch.zeros(256, 28))
        over = step.terminated | step.truncated
        assert step.goes_on is not None
        skills.reset((over & ~step.goes_on).nonzero()[:, 0])
        now, of_some = skills.observe(), skills.observe(some)
        for name, seen in now.items():
            assert torch.equal(seen[~over], step.next_obs[name][~over]), name
            torch.testing.assert_close(of_some[name], seen[some])
        ends += int(over.sum())
    assert ends > 0


@pytest.mark.parametrize("own_return", [False, True])
def test_a_skills_return_ends_with_it_where_asked_and_the_episode_does_not(material, humanoid, demos, own_return):
    skills = make(material, humanoid, demos, longest=3)
    skills.schedule = replace(skills.schedule, own_return=own_return)
    for left in (2, 1, 0):
        z, still = skills.z.clone(), torch.zeros(256, 28)
        step = skills.step(still)
        over = torch.full((256,), left == 0)
        assert not (skills.z != z).any(-1)[~over].any()
        assert torch.equal(step.truncated, over & ~step.terminated & own_return)
        assert step.goes_on is not None
        assert torch.equal(step.goes_on, ~step.terminated)
        seen = z if own_return else skills.z  # what the next state is worth, and under which skill
        torch.testing.assert_close(step.next_obs["z"], seen, rtol=0, atol=0)
        skills.reset((step.terminated & ~step.goes_on).nonzero()[:, 0])


def test_a_new_skill_of_the_same_clip_gives_no_new_grace(material, humanoid, demos):
    skills = make(material, humanoid, demos, longest=1)
    for _ in range(GRACE + 2):
        before = skills.z_clip.clone()
        skills.step(torch.zeros(256, 28))
    same = skills.z_clip == before
    assert (skills.grace[~same] == GRACE).all()
    assert (skills.grace[same] < GRACE).all()


def test_who_is_down_is_compared_with_a_clip_that_rises_and_off_the_leash(every_clip, humanoid):
    patient = Protection(90, share=0.0, lying=0.5)
    skills = make(every_clip, humanoid, every_clip.demos, leash=1.3, longest=300, protection=patient)
    ground = skills.env.falls.ground
    for _ in range(20):
        held = skills.z_clip.clone()
        step = skills.step(torch.zeros(256, 28))
        down, since = skills.env.falls.down > 0, skills.env.falls.down > 1  # clocks see of the last step who is down
        assert ground.rising[step.extras["z_clip"][since]].all()
        assert torch.equal(step.extras["z_clip"][~down], held[~down])
        done = step.terminated | step.truncated
        assert step.goes_on is not None
        over = done & ~step.goes_on
        assert not (over & down & (skills.env.falls.patience == 90) & (skills.env.falls.down <= 90)).any()
        skills.reset(over.nonzero()[:, 0])
    assert down.sum() > 32


def test_a_world_that_breaks_and_begins_anew_lying_is_compared_with_its_skill(every_clip, humanoid):
    skills = make(every_clip, humanoid, every_clip.demos, protection=Protection(90, share=0.0, lying=1.0))
    skills.env.falls.ground.rising[-1] = True  # the clip that no clock, -1, would be taken for
    everyone, held = torch.arange(256), skills.z_clip.clone()
    skills.env.backend.place(everyone, skills.env.state().map(lambda x: x * float("nan")))
    step = skills.step(torch.zeros(256, 28))
    assert (skills.env.falls.down > 0).any()
    assert torch.equal(step.extras["z_clip"], held)


def test_of_clips_that_lie_only_their_own_skill_counts(every_clip, humanoid):
    skills = make(every_clip, humanoid, every_clip.demos, longest=300, protection=Protection(90, share=0.5))
    library, ground = every_clip.library, skills.env.falls.ground
    crawl, walk = (library.names.index(name) for name in ("crawl", "walk"))
    everyone = torch.arange(256)
    skills.env.begin(everyone, torch.full((256,), crawl), torch.rand(256))
    skills.z_clip[:] = torch.tensor([crawl, walk]).repeat(128)
    skills.env.falls.protect(everyone, torch.full((256,), crawl), skills.z_clip)
    for _ in range(2):  # who has only just begun touches nothing yet
        skills.step(torch.zeros(256, 28))
    assert not ground.upright[crawl]
    assert (skills.env.falls.down[1::2] == 3).sum() > 32
    assert skills.env.curriculum.steps[crawl] == 2 * 128
    assert not skills.env.curriculum.falls.any()


def test_on_a_timed_leash_whoever_stands_where_the_clip_turns_over_strays(every_clip, humanoid):
    skills = make(every_clip, humanoid, every_clip.demos, leash=1.0, longest=300)
    library, everyone = every_clip.library, torch.arange(256)
    roll, walk = (library.names.index(name) for name in ("roll", "walk"))
    skills.env.begin(everyone, torch.full((256,), walk), torch.linspace(0, 1, 256))
    skills.z_clip[:], skills.grace[:], skills.left[:] = roll, 0, 300
    strayed = {timed: torch.zeros(256, dtype=torch.bool) for timed in (False, True)}
    state = skills.env.snapshot()
    for timed in strayed:
        skills.env.restore(state)
        skills.leash.timed = timed
        for _ in range(40):  # as soon as it walks on, it begins in the walk again: only its clock goes on
            strayed[timed] |= skills.step(torch.zeros(256, 28)).terminated
            clock = skills.env.guide.snapshot()
            skills.env.begin(everyone, torch.full((256,), walk), torch.linspace(0, 1, 256))
            skills.env.guide.restore(clock)
    assert strayed[True].float().mean() > 0.9
    assert strayed[False].float().mean() < 0.1


def test_without_clocks_nobody_says_how_far_from_its_moment_a_world_is(material, humanoid, demos):
    skills = make(material, humanoid, demos)
    assert "tracking_error" in skills.step(torch.zeros(256, 28)).extras
    skills.clocks = False
    assert "tracking_error" not in skills.step(torch.zeros(256, 28)).extras


def test_a_step_says_where_the_clip_goes_next_and_how_firmly_each_is_led(every_clip, humanoid):
    skills = make(every_clip, humanoid, every_clip.demos, longest=300)
    library, ground = every_clip.library, skills.env.falls.ground
    everyone = torch.arange(256)
    clips = everyone % len(library.names)
    skills.env.begin(everyone, clips, torch.zeros(256))
    skills.z_clip[:] = clips
    skills.env.curriculum.assist = torch.linspace(0, 1, len(library.names))
    skills.env.lift.strength = torch.full((len(library.names),), 0.25)
    seen = skills.step(torch.zeros(256, 28)).extras
    standing = ~ground.rising[clips]
    assert torch.equal(seen["assist_strength"][standing], skills.env.curriculum.assist[clips[standing]])
    assert (seen["assist_strength"][~standing] == 0.25).all()
    ahead = aim(library.at(clips, torch.full((256,), 1 / 30)))
    aimed = skills.action_scale.target(seen["reference_action"])
    assert (aimed - ahead)[standing].abs().mean() < 0.02
    assert (aimed - ahead.roll(7, 0))[standing].abs().mean() > 0.2


def test_a_joint_that_is_bent_too_little_is_short_of_its_pose_unless_its_body_is_down(every_clip, humanoid):
    skills = make(every_clip, humanoid, every_clip.demos, longest=300, protection=Protection(90, share=1.0))
    skills.z_clip[:] = skills.env.clip
    missed = skills.step(torch.zeros(256, 28)).extras["pose_error"]
    env = skills.env
    down = env.falls.down > 0
    assert down.any()
    assert not missed[down].any()
    there = env.library.at(env.guide.clip, env.guide.time).joint_pos
    short = (there - env.state().joint_pos) / skills.action_scale.scale
    torch.testing.assert_close(missed[~down], short[~down], atol=0.2, rtol=0)  # the clock's moments are 1/120 s apart
    assert (missed * short)[~down].sum() > 0.9 * short[~down].square().sum()


def test_the_value_net_alone_is_told_the_moment_and_the_time_that_is_left(every_clip, humanoid):
    skills = make(every_clip, humanoid, every_clip.demos, longest=300, protection=Protection(90, share=1.0))
    skills.z_clip[:], skills.left[:], skills.grace[:] = skills.env.clip, 300, GRACE
    skills.step(torch.zeros(256, 28))
    told, falls, guide = skills.observe()["privileged"], skills.env.falls, skills.env.guide
    lies = falls.down > 0
    slack, patience = skills.grace / GRACE, lies * (90 - falls.down) / 90
    expected = torch.stack([guide.apart(skills.env.windows()), slack, lies, patience], -1)
    is_set = lies | (guide.clip == skills.z_clip)
    assert is_set.float().mean() > 0.9
    assert lies.any()
    assert torch.equal(told[is_set, :-PRIVILEGED_SCALARS], guide.moment()[is_set])
    torch.testing.assert_close(told[is_set, -PRIVILEGED_SCALARS:], expected[is_set])
    skills.z_clip[:] = (skills.z_clip + 2) % len(every_clip.library.names)
    anew = ~lies & (guide.clip != skills.z_clip)  # its clock is set in the next step
    assert anew.float().mean() > 0.5
    assert not skills.observe()["privileged"][anew].any()
    skills.clocks = False
    assert "privileged" not in skills.observe()


def timed(every_clip, humanoid) -> SkillEnv:
    """Worlds that are asked for what they do."""
    skills = make(every_clip, humanoid, every_clip.demos, leash=1.0, longest=300)
    skills.leash.timed = True
    skills.z_clip[:], skills.left[:] = skills.env.clip, 300
    return skills


def test_on_a_timed_leash_a_jolt_is_no_straying(every_clip, humanoid):
    skills, far, near = timed(every_clip, humanoid), torch.full((256,), 9.0), torch.zeros(256)
    standing = skills.env.falls.down == 0
    for _ in range(3):
        assert not skills._late(near, skills.z_clip).any()
        late = [skills._late(far, skills.z_clip) for _ in range(GRACE)]
        assert not torch.stack(late).any()
    assert torch.equal(skills._late(far, skills.z_clip), standing)


def test_a_skill_that_has_changed_has_its_grace_also_where_it_is_near_on_its_way(every_clip, humanoid):
    skills, far, near = timed(every_clip, humanoid), torch.full((256,), 9.0), torch.zeros(256)
    skills.env.falls.down[:], skills.grace[:] = 0, GRACE + 5
    late = [skills._late(now, skills.z_clip) for now in (far, far, near, far, *[far] * (GRACE + 1))]
    assert not torch.stack(late).any()
    assert skills._late(far, skills.z_clip).all()


def test_who_has_risen_has_time_to_come_to_its_clip(every_clip, humanoid):
    skills, far = timed(every_clip, humanoid), torch.full((256,), 9.0)
    skills.env.falls.down[:] = 1
    skills._late(far, skills.z_clip)
    skills.env.falls.down[:] = 0
    late = [skills._late(far, skills.z_clip) for _ in range(GRACE + 1)]
    assert not torch.stack(late[:-1]).any()
    assert late[-1].all()


def test_a_fall_counts_as_a_failure_also_where_it_is_not_the_end(every_clip, humanoid):
    skills = make(every_clip, humanoid, every_clip.demos, longest=300, protection=Protection(90, share=1.0))
    failed = torch.zeros(256, dtype=torch.bool)
    for _ in range(60):
        step = skills.step(torch.zeros(256, 28))
        down = skills.env.falls.down
        assert step.goes_on is not None
        assert torch.equal(step.terminated & step.goes_on, down == 1)  # once a fall, and nobody is lost for good yet
        failed |= step.terminated
    assert failed.sum() > 64


def test_to_be_asked_to_stand_while_lying_is_no_fall(every_clip, humanoid):
    skills = make(every_clip, humanoid, every_clip.demos, longest=300, protection=Protection(90, share=0.5))
    crawl = every_clip.library.names.index("crawl")
    everyone = torch.arange(256)
    skills.env.begin(everyone, torch.full((256,), crawl), torch.rand(256))
    skills.z_clip[:], skills.left[:] = crawl, 2
    steps = [skills.step(torch.zeros(256, 28)) for _ in range(3)]
    assert (skills.env.falls.down > 1).sum() > 32
    assert not any(step.terminated.any() for step in steps)

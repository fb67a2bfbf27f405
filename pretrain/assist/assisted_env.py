"""The training aids beyond ASE: a wrapper of its environment with hooks before and after a control
step.

Before the step, reference motions advance and assist forces are applied. After it, the tracking
error terminates episodes that are too far from their clip, and the curriculum records failures.
Without this wrapper, training is plain ASE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pretrain.ase.env import AseEnv
from pretrain.assist.assistance import Assistance
from pretrain.assist.assistance_log import log_assistance, log_getting_up, log_switches
from pretrain.assist.foot_swing import FootSwing
from pretrain.assist.forces import AssistForces
from pretrain.assist.privileged_observation import observe_privileged
from pretrain.assist.reference_tracker import NONE, ReferenceTracker
from pretrain.assist.tracking_termination import CHECK_EVERY, TrackingTermination
from pretrain.assist.velocity_tracker import VelocityTracker
from pretrain.rl.learner import Scalars
from pretrain.rl.rollout import Batch, Step
from pretrain.sim.env import ALL, CharacterEnv, Outcome


@dataclass(frozen=True)
class StepAids:
    """What the aids add to one step."""

    failed: Tensor  # (N,) bool: a fall, a broken state or the tracking error ends the episode
    extras: Batch


class AssistedEnv:
    """`ase_env` under assistance, with a reference motion for every world.

    Without `feet` there is no `foot_match`. After a change of skill the references are blended over
    `blend_steps` control steps."""

    def __init__(
        self,
        ase_env: AseEnv,
        assistance: Assistance,
        termination: TrackingTermination,
        *,
        feet: FootSwing | None = None,
        blend_steps: int = 0,
    ):
        env = ase_env.env
        self.ase_env = ase_env
        self.num_envs = ase_env.num_envs
        self.assistance = assistance
        self.curriculum = assistance.curriculum
        self.getup = assistance.getup
        self.switches = assistance.switches
        self.termination = termination
        self.feet = feet
        self.tracker = ReferenceTracker(
            env.library,
            env.starts,
            env.falls.ground.rising,
            env.num_envs,
            scale=termination.scale,
            blend_steps=blend_steps,
        )
        self.forces = AssistForces(env, assistance, self.tracker)
        self.velocity = VelocityTracker(env.library, self.num_envs)
        self._start(torch.arange(self.num_envs))

    @property
    def env(self) -> CharacterEnv:
        """The simulated characters."""
        return self.ase_env.env

    def reset(self, ids: Tensor) -> None:
        if len(ids):
            self.ase_env.reset(ids)
            self._start(ids)

    def _start(self, ids: Tensor) -> None:
        """Start the aids of worlds `ids` (n,), whose episodes have begun."""
        self._start_tracker(ids)
        self.velocity.start(ids, self.env.clip[ids], self.env.state()[ids])
        if not self.tracker.blend.steps:
            self.velocity.follow(self.ase_env.z_clip[ids], ids)
        other_clip = self.ase_env.z_clip[ids] != self.env.clip[ids]
        self.termination.start(ids, other_clip | self.env.began_default[ids])
        away = self.velocity.distance(self.ase_env.z_clip[ids], ids) > 1
        self.switches.start(ids, self.env.clip[ids], away)

    def _start_tracker(self, ids: Tensor) -> None:
        """Start the references of worlds `ids` (n,); lying ones have none yet."""
        self.tracker.start(ids, self.env.clip[ids], self.env.clip_time[ids])
        self.tracker.clip[ids[self.env.began_lying[ids]]] = NONE

    def observe(self, ids: Tensor | None = None) -> Batch:
        """As `AseEnv.observe`, and `privileged` (n, P)."""
        privileged = observe_privileged(
            self.ase_env,
            self.tracker,
            self.velocity,
            self.termination,
            ALL if ids is None else ids,
        )
        return {**self.ase_env.observe(ids), "privileged": privileged}

    def step(self, action: Tensor) -> Step:
        """As `AseEnv.step`; an episode also ends by the tracking error.

        `extras`: `window` (N, W * F); `z_clip` (N,), the clip that the discriminator compares it
        with; `nearer` (N,), the decrease of the distance to that clip's mean window, in stds of the
        features; `reference_action` and `pose_error` (N, J), in units of actions;
        `assist_strength`, `switch_strength`, `tracking_error`, in units of its limit,
        `velocity_excess` and, with `feet`, `foot_match` (N,).
        """
        ase_env = self.ase_env
        clips = ase_env.z_clip.clone()
        windows = self.env.windows()
        # a broken world begins another episode within `advance`
        begun_in = self.env.clip.clone()
        before = self._before_step(clips)
        outcome = ase_env.advance(action)
        after = self._after_step(clips, begun_in, outcome)
        terminated = after.failed | outcome.went_down
        own_obs = self.observe() if ase_env.sampling.own_return else None
        cut = ase_env.change_latents(clips, terminated)
        self._follow_latents(clips)
        style = self._style_extras(clips, windows, outcome)
        return Step(
            next_obs=own_obs or self.observe(),
            reward=torch.zeros(self.num_envs),
            terminated=terminated,
            truncated=outcome.timed_out | cut,
            extras={**style, **before, **after.extras},
            resets=after.failed | outcome.timed_out,
        )

    def _follow_latents(self, clips: Tensor) -> None:
        """Update the aids of worlds that followed `clips` (N,), after latents may have changed."""
        new_clips = self.ase_env.z_clip
        if not self.tracker.blend.steps:
            self.velocity.follow(new_clips)
        changed = new_clips != clips
        self.termination.change_skill(changed)
        self.switches.change_skill(changed, clips, self.velocity.distance(new_clips) > 1)

    def _before_step(self, clips: Tensor) -> Batch:
        """Advance the references along `clips` (N,), and apply the assistance. Returns the
        references' actions and the assistance's strengths."""
        env = self.env
        self.tracker.advance(clips, env.falls.is_down, env.windows(), env.state())
        extras = {
            "reference_action": self.ase_env.action_scale.action(self.tracker.target()),
            "assist_strength": self.forces.strength(clips),
            "switch_strength": self.forces.switch_strength(clips),
        }
        self.forces.apply(clips)
        return extras

    def _after_step(self, clips: Tensor, begun_in: Tensor, outcome: Outcome) -> StepAids:
        """Compute tracking errors and failures of worlds that followed `clips` (N,) in episodes
        `begun_in` (N,) clips; update the curriculum."""
        # broken worlds began a new episode within the step
        self._start_tracker(outcome.broken.nonzero()[:, 0])
        tracked = self.tracker.has_reference
        self.getup.record(
            self.tracker.clip[tracked],
            outcome.recovered[tracked],
            outcome.timed_out_on_ground[tracked],
        )
        self.velocity.advance(self.env.state(), clips, self.tracker.blend)
        excess = self.velocity.excess()
        extras = {**self._tracking(excess, clips), **self._match_feet(clips)}
        exceeded = self._exceeded(clips, excess, extras)
        self._record(clips, begun_in, outcome, exceeded)
        failed = outcome.fell | outcome.broken | exceeded
        arrived = self.termination.is_near(extras["tracking_error"], excess)
        self.switches.record(clips, failed | self.env.falls.is_down, arrived)
        return StepAids(failed, extras)

    def _exceeded(self, clips: Tensor, excess: Tensor, tracking: Batch) -> Tensor:
        """Worlds terminated by the tracking error or by the velocity `excess` (N,), (N,) bool."""
        termination = self.termination
        astray = termination.exceeds_velocity_bound(excess)
        down = self.env.falls.is_down
        exceeded = torch.zeros_like(down)
        if termination.phase_locked.any():
            # only here: on assisted clips the velocity bound would terminate poor balance too early
            error = tracking["tracking_error"].masked_fill(astray, torch.inf)
            exceeded = termination.exceeded_at_phase(error, clips, down)
        if not termination.phase_locked.all():
            checked = (self.ase_env.steps_to_resample % CHECK_EVERY == 0) & ~down
            exceeded |= termination.exceeded_nearest(self.env.windows(), clips, checked)
        return exceeded

    def _tracking(self, excess: Tensor, clips: Tensor) -> Batch:
        """Tracking errors, in units of the limits of clips (N,); the joints' `pose_error`, in units
        of actions, and the velocity `excess` (N,). The latter two are 0 where a world is down."""
        up = ~self.env.falls.is_down
        error = self.tracker.tracking_error(self.env.windows())
        joint_error = self.tracker.pose() - self.env.state().joint_pos
        return {
            "tracking_error": self.termination.share_of_limit(error, clips),
            "pose_error": joint_error / self.ase_env.action_scale.scale * up[:, None],
            "velocity_excess": excess * up,
        }

    def _match_feet(self, clips: Tensor) -> Batch:
        """How well the lifted feet match the reference, for worlds that follow `clips` (N,); 0
        where a world is down. Under a clip's own latent, near its steps, it is recorded in the
        curriculum."""
        if self.feet is None:
            return {}
        up = ~self.env.falls.is_down
        rows = self.tracker.rows()
        match = self.feet.match(self.env.frames[:, -1], rows) * up
        # standing through a clip's rests says nothing about its steps
        stepping = self.feet.stepping.index_select(0, rows)
        own = ((clips == self.env.clip) & up & stepping).nonzero()[:, 0]
        self.curriculum.record_foot_match(clips[own], match[own])
        return {"foot_match": match}

    def _record(self, clips: Tensor, begun_in: Tensor, outcome: Outcome, exceeded: Tensor) -> None:
        """Record in the curriculum which worlds failed in this step, under `clips` (N,), in
        episodes `begun_in` (N,) clips."""
        env = self.env
        own_clip = clips == begun_in
        exceeded = exceeded & own_clip & ~outcome.broken
        lost = outcome.went_down | outcome.fell | outcome.broken | exceeded
        # left out: time on the ground; episodes from a lying clip under another skill, which begin
        # down; the default pose, which has no clip
        counts = (
            ((env.falls.steps_down <= 1) | outcome.fell)
            & (own_clip | env.falls.ground.upright[begun_in])
            & ~env.began_default
        )
        self.curriculum.record(begun_in[counts], lost[counts])

    def _style_extras(self, clips: Tensor, windows: Tensor, outcome: Outcome) -> Batch:
        """The extras of the style reward, for worlds that followed clips (N,) and had `windows`
        (N, W * F) before the step."""
        style_clips = self._style_clips(clips)
        extras = self.ase_env.make_extras(style_clips)
        before = self.termination.distance_to_mean(windows, style_clips)
        after = self.termination.distance_to_mean(extras["window"], style_clips)
        return {**extras, "nearer": (before - after) * ~outcome.broken}

    def _style_clips(self, clips: Tensor) -> Tensor:
        """The clips (N,) that the motion is compared with: the reference's where a world is down
        and that clip rises."""
        reference = self.tracker.clip
        falls = self.env.falls
        rises = self.tracker.has_reference & falls.ground.rising[reference]
        return torch.where(falls.is_down & rises, reference, clips)

    def step_schedule(self) -> None:
        """Once per iteration of the learning loop."""
        self.assistance.step_schedule()

    def scalars(self) -> Scalars:
        """Log scalars per clip."""
        names = self.env.library.names
        getting_up = log_getting_up(names, self.env.falls.ground.rising, self.getup)
        switching = log_switches(names, self.switches)
        return log_assistance(names, self.curriculum) | getting_up | switching

    def snapshot(self) -> dict[str, Any]:
        """Everything `restore` needs to continue bit for bit."""
        return {name: part.snapshot() for name, part in self._parts().items()}

    def restore(self, snapshot: dict[str, Any]) -> None:
        for name, part in self._parts().items():
            part.restore(snapshot[name])

    def _parts(self) -> dict[str, Any]:
        return {
            "ase_env": self.ase_env,
            "curriculum": self.curriculum,
            "getup": self.getup,
            "tracker": self.tracker,
            "termination": self.termination,
            "switches": self.switches,
            "forces": self.forces,
            "velocity": self.velocity,
        }

"""The reference motion of each world: its clip, its phase and its placement in the world.

A pull on the root towards the reference pose helps where holding upright does not: in a flip, a
crawl or a spin, and on the way up. (An external wrench on the root, as the residual forces of Yuan
and Kitani 2020, "Residual force control for agile human behavior imitation", but not learned.)"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pretrain.assist.reference_blend import ReferenceBlend
from pretrain.characters.rotations import conjugate, log, multiply, normalize, rotate
from pretrain.characters.state import CharacterState, unflatten
from pretrain.motion.clip import CONTROL_RATE
from pretrain.motion.library import MotionLibrary
from pretrain.sim.env import ALL, Rows, pd_target
from pretrain.sim.features import measure_std
from pretrain.sim.nearest import NearestRows
from pretrain.sim.start_states import StartStates
from pretrain.sim.stored_windows import find_rows, window_error
from pretrain.sim.tensor_state import TensorState

PULL_STIFFNESS = 2000.0  # N / m
PULL_DAMPING = 400.0  # N s / m
MAX_PULL = 1000.0  # N; the body weighs 490 N
TURN_STIFFNESS = 400.0  # N m / rad
# With three times this damping, the root of a walk shakes from one control step to the next.
TURN_DAMPING = 10.0  # N m s / rad
MAX_TORQUE = 300.0  # N m
# playback speed for worlds that are to rise: the clips take up to 3.8 s, and a card allows 3 s
RISING_SPEED = 1.3
SPARSE = 4  # stride of the stored phases searched for the nearest
NONE = -1  # no clip yet: the reference begins at the nearest phase


class ReferenceTracker(TensorState):
    """Which clip each of N worlds follows, its phase (s in that clip), and the clip's placement.

    `scale` (W * F,) is the unit of the tracking error's features: their std over the clips. A
    new clip begins at the phase nearest to the character's window. A clip that has ended restarts
    where the character is, at its restart time; after rising, the reference holds the clip's last
    frame, standing.
    Between clips that do not rise, references are blended over `blend_steps` control steps."""

    state_fields = ("clip", "phase", "anchor_rot", "anchor_pos")

    def __init__(
        self,
        library: MotionLibrary,
        starts: StartStates,
        rising: Tensor,
        num_envs: int,
        *,
        scale: Tensor,
        blend_steps: int = 0,
    ):
        self.library = library
        self._starts = starts
        self._rising = rising
        self._rate = starts.rate
        self._first = torch.cumsum(starts.counts, 0) - starts.counts
        windows = starts.frames.flatten(1)  # (M, W * F)
        frames = starts.frames[:, -1]
        # (M, F)
        self._frames = ((frames - frames.mean(0)) / measure_std(frames)).contiguous()
        self._scale = scale
        self._windows = windows / scale
        states = unflatten(starts.states[:, -1])
        self._targets = pd_target(states)  # (M, J)
        self._poses = states.joint_pos.contiguous()  # (M, J)
        row_clip = torch.arange(len(starts.counts)).repeat_interleave(starts.counts)
        in_clip = torch.arange(len(windows)) - self._first[row_clip]
        self._rows = (in_clip % SPARSE == 0).nonzero()[:, 0]
        row_clip = row_clip[self._rows]
        sparse = self._windows[self._rows]
        self._nearest = NearestRows(sparse, row_clip.bincount())
        self._rising_rows = rising[row_clip].nonzero()[:, 0]
        group_sizes = torch.tensor([len(self._rising_rows)])
        self._nearest_rising = NearestRows(sparse[self._rising_rows], group_sizes)
        self._restart_times = self._find_restart_times()
        self.blend = ReferenceBlend(library.durations, self._restart_times, num_envs, blend_steps)
        self.clip = torch.zeros(num_envs, dtype=torch.long)
        self.phase = torch.zeros(num_envs)  # s
        # from the clip's frame to the world, about z
        self.anchor_rot = torch.zeros(num_envs, 4)
        self.anchor_pos = torch.zeros(num_envs, 3)  # m

    @property
    def has_reference(self) -> Tensor:
        """Worlds with a reference clip, (N,) bool. The others began lying, and have one from the
        next `advance` on."""
        return self.clip != NONE

    def start(self, ids: Tensor, clips: Tensor, times: Tensor) -> None:
        """Set worlds `ids` (n,) to clips (n,) at `times` (n,) s."""
        self.clip[ids] = clips
        self.phase[ids] = times
        self.blend.end(ids)
        self.anchor_rot[ids] = torch.tensor([1.0, 0.0, 0.0, 0.0])
        self.anchor_pos[ids] = 0.0

    def advance(self, clips: Tensor, down: Tensor, windows: Tensor, state: CharacterState) -> None:
        """Advance one control step along clips (N,), or along a clip that rises where `down` (N,)
        bool.

        `windows` (N, W * F) and `state` (N,) are the characters' present ones."""
        down = down & self._rising.any()
        self._synchronize(windows)
        self.phase += torch.where(down, RISING_SPEED, 1.0) / CONTROL_RATE
        self.blend.advance()
        over = self.phase > self.library.durations[self.clip]
        changed = ~self.has_reference | torch.where(
            down, ~self._rising[self.clip] | over, self.clip != clips
        )
        stays = over & self._rising[self.clip]
        self.phase = torch.where(stays, self.library.durations[self.clip], self.phase)
        repeats = (~changed & over & ~stays).nonzero()[:, 0]
        if len(repeats):
            ended = self.clip[repeats]
            self._align_to(repeats, ended, self._restart_times[ended], state[repeats])
        ids = changed.nonzero()[:, 0]
        if len(ids):
            nearest = self._find_nearest(windows[ids] / self._scale, clips[ids], down[ids])
            nearest_clips = torch.searchsorted(self._first, nearest, right=True) - 1
            self._begin_blend(ids, nearest_clips, down[ids])
            self._align_to(ids, nearest_clips, self._starts.times[nearest], state[ids])

    def _find_restart_times(self) -> Tensor:
        """When each clip continues after its end, (C,) s: in its first half, where its window is
        nearest to the last. From 0 s, a clip that ends in the middle of a stride would continue at
        another phase of it, and perfect walking would exceed the tracking limit."""
        rows = []
        for first, count in zip(self._first.tolist(), self._starts.counts.tolist(), strict=True):
            first_half = self._windows[first : first + max(1, count // 2)]
            distance = (first_half - self._windows[first + count - 1]).norm(dim=-1)
            rows.append(first + int(distance.argmin()))
        return self._starts.times[rows]

    def _begin_blend(self, ids: Tensor, clips: Tensor, down: Tensor) -> None:
        """Begin the blends of worlds `ids` (n,), `down` (n,) bool or not, to clips (n,)."""
        previous = self.clip[ids]
        rises = self._rising[previous] | self._rising[clips]
        blends = (previous != NONE) & (previous != clips) & ~down & ~rises
        self.blend.begin(ids, previous.clamp_min(0), self.phase[ids], blends)

    def _find_nearest(self, scaled: Tensor, clips: Tensor, down: Tensor) -> Tensor:
        """The stored row nearest to `scaled` (n, W * F) in clips (n,), or in any that rises where a
        world is `down` (n,) bool, (n,)."""
        nearest = self._nearest.find(scaled, clips)
        lying = down.nonzero()[:, 0]
        if len(lying):
            among = self._nearest_rising.find(scaled[lying], torch.zeros_like(lying))
            nearest[lying] = self._rising_rows[among]
        return self._rows[nearest]

    def _synchronize(self, windows: Tensor) -> None:
        """Shift each phase by at most one stored row, a quarter of a control step, to the best
        match: a policy that does not observe the phase cannot keep it to 0.01 s. Rows are further
        apart where the clips last more than half an hour."""
        sooner = self.phase - 1 / self._rate
        later = self.phase + 1 / self._rate
        near = (self.phase, sooner.clamp_min(0), later)
        phases = torch.stack(near, -1)
        rows = torch.stack([self._row(phase) for phase in near], -1)
        best = window_error(windows, self._scale, self._windows, rows).argmin(-1)
        self.phase = phases.gather(-1, best[:, None])[:, 0]

    def _align_to(self, ids: Tensor, clips: Tensor, times: Tensor, state: CharacterState) -> None:
        """Set worlds `ids` (n,) to clips (n,) from `times` (n,) s on, placed at the characters'
        `state` (n,)."""
        self.clip[ids] = clips
        self.phase[ids] = times
        reference = self.library.at(clips, times)
        turn = multiply(state.root_rot, conjugate(reference.root_rot))
        # only its yaw, so that the reference stays upright
        about_z = turn * torch.tensor([1.0, 0.0, 0.0, 1.0])
        self.anchor_rot[ids] = normalize(about_z + torch.tensor([1e-6, 0.0, 0.0, 0.0]))
        level = torch.tensor([1.0, 1.0, 0.0])
        self.anchor_pos[ids] = level * (
            state.root_pos - rotate(self.anchor_rot[ids], reference.root_pos)
        )

    def target(self) -> Tensor:
        """Joint targets (N, J) rad that bring the bodies to the reference pose."""
        return self._blend(self._targets)

    def pose(self) -> Tensor:
        """Joint angles (N, J) rad of the reference pose."""
        return self._blend(self._poses)

    def reference_frame(self, ids: Rows = ALL) -> Tensor:
        """The reference's style frames (n, F) for worlds `ids` (n,), standardized by the clips'
        mean and std."""
        return self._blend(self._frames, ids)

    def tracking_error(self, windows: Tensor, ids: Rows = ALL) -> Tensor:
        """How far `windows` (n, W * F) of worlds `ids` (n,) are from the reference's: root mean
        square over the features, in units of the clips' std, (n,)."""
        rows = self._row(self.phase[ids], ids)
        error = window_error(windows, self._scale, self._windows, rows)
        blending, worlds = self._find_blending(ids)
        if len(blending):
            off = windows[blending] / self._scale - self._blend(self._windows, worlds)
            error[blending] = off.norm(dim=-1) / windows.shape[-1] ** 0.5
        return error

    def rows(self) -> Tensor:
        """The start state row of each world's reference, (N,); in a blend, of the clip with the
        larger share."""
        rows = self._row(self.phase)
        earlier = (self.blend.share < 0.5).nonzero()[:, 0]
        rows[earlier] = self._previous_row(earlier)
        return rows

    def _find_blending(self, ids: Rows) -> tuple[Tensor, Tensor]:
        """Of worlds `ids` (n,) those whose reference is blended: their indices in `ids` and among
        all worlds, (m,) and (m,)."""
        blending = (self.blend.left[ids] > 0).nonzero()[:, 0]
        return blending, torch.arange(len(self.clip))[ids][blending]

    def _blend(self, values: Tensor, ids: Rows = ALL) -> Tensor:
        """The rows of `values` (M, K) at the references of worlds `ids` (n,), (n, K)."""
        present = values.index_select(0, self._row(self.phase[ids], ids))
        blending, worlds = self._find_blending(ids)
        if len(blending):
            previous = values.index_select(0, self._previous_row(worlds))
            share = self.blend.share[worlds, None]
            present[blending] = torch.lerp(previous, present[blending], share)
        return present

    def _previous_row(self, ids: Tensor) -> Tensor:
        """The stored row of the previous clips of worlds `ids` (n,), (n,)."""
        blend = self.blend
        counts = self._starts.counts
        return find_rows(self._first, counts, blend.clip[ids], blend.phase[ids], self._rate)

    def _row(self, phases: Tensor, ids: Rows = ALL) -> Tensor:
        """The stored row of the clips of worlds `ids` (n,) at `phases` (n,) s, (n,)."""
        return find_rows(self._first, self._starts.counts, self.clip[ids], phases, self._rate)

    def wrench(self, ids: Tensor, state: CharacterState) -> Tensor:
        """Force and torque on the roots of worlds `ids` (n,) in `state` (n,), towards the
        reference: (n, 6) N, N m."""
        reference = self.library.at(self.clip[ids], self.phase[ids])
        anchor_rot = self.anchor_rot[ids]
        place = rotate(anchor_rot, reference.root_pos) + self.anchor_pos[ids]
        velocity_error = rotate(anchor_rot, reference.root_vel) - state.root_vel
        force = PULL_STIFFNESS * (place - state.root_pos) + PULL_DAMPING * velocity_error
        off = log(multiply(multiply(anchor_rot, reference.root_rot), conjugate(state.root_rot)))
        spin_error = rotate(anchor_rot, reference.root_ang_vel) - state.root_ang_vel
        torque = TURN_STIFFNESS * off + TURN_DAMPING * spin_error
        return torch.cat([clamp_norm(force, MAX_PULL), clamp_norm(torque, MAX_TORQUE)], -1)

    def snapshot(self) -> dict[str, Any]:
        """Everything `restore` needs to continue bit for bit."""
        return {**super().snapshot(), "blend": self.blend.snapshot()}

    def restore(self, snapshot: dict[str, Any]) -> None:
        super().restore(snapshot)
        self.blend.restore(snapshot["blend"])


def clamp_norm(vectors: Tensor, longest: float) -> Tensor:
    """Vectors (..., 3), shortened to at most `longest`."""
    return vectors * (longest / vectors.norm(dim=-1, keepdim=True).clamp_min(longest))

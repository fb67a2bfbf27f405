"""MotionLibrary: clips packed into tensors, read at any time in a batch. Independent of file
formats and of the simulator."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Generator, Tensor

from pretrain.characters.rotations import slerp
from pretrain.characters.state import CharacterState, unflatten
from pretrain.compiled.kernel import can_read, is_compiled
from pretrain.motion.clip import CONTROL_RATE, MotionClip


@dataclass(frozen=True)
class MotionLibrary:
    """`frames` holds the concatenated flat states of all clips, at the control rate."""

    names: tuple[str, ...]
    frames: Tensor  # (F, S)
    starts: Tensor  # (C,) index of each clip's first frame
    lengths: Tensor  # (C,) frames
    weights: Tensor  # (C,) sum 1
    originals: tuple[int, ...]  # index of each clip's original; its own where it is no mirror image

    @property
    def images(self) -> tuple[int, ...] | None:
        """The index of each clip's mirror image; None where a clip has none."""
        mirrors = {
            original: clip for clip, original in enumerate(self.originals) if clip != original
        }
        images = mirrors | {clip: original for original, clip in mirrors.items()}
        if len(images) < len(self.names):
            return None
        return tuple(images[clip] for clip in range(len(self.names)))

    @property
    def durations(self) -> Tensor:
        """Seconds from first to last frame, (C,)."""
        return (self.lengths - 1) / CONTROL_RATE

    @property
    def clip_frames(self) -> tuple[Tensor, ...]:
        """The flat states of each clip, (frames, S)."""
        return self.frames.split(self.lengths.tolist())

    def sample(self, n: int, rng: Generator) -> tuple[Tensor, Tensor]:
        """Clip ids by weight, (n,), and times in them, s, (n,)."""
        ids = torch.multinomial(self.weights, n, replacement=True, generator=rng)
        return ids, torch.rand(n, generator=rng) * self.durations[ids]

    def at(self, ids: Tensor, times: Tensor) -> CharacterState:
        """States of clips `ids` at `times` (s, clamped to the clip), any common shape (...) ->
        (...)."""
        position = (
            (times * CONTROL_RATE).clamp_min(0).minimum((self.lengths[ids] - 1).to(times.dtype))
        )
        earlier = position.floor().long().minimum(self.lengths[ids] - 2)
        blend = position - earlier
        row = self.starts[ids] + earlier
        a = self.frames[row]
        b = self.frames[row + 1]
        return unflatten(blend_states(a, b, blend))

    def windows(self, ids: Tensor, ends: Tensor, steps: int) -> CharacterState:
        """The last `steps` control steps up to `ends`, oldest first: (n,), (n,) -> states (n,
        steps).

        Before a clip's start its first frame is held: no window crosses the seam of a looped
        clip."""
        back = torch.arange(steps - 1, -1, -1) / CONTROL_RATE
        return self.at(ids[:, None].expand(-1, steps), ends[:, None] - back)


def blend_states(earlier: Tensor, later: Tensor, shares: Tensor) -> Tensor:
    """Flat states (..., S) between `earlier` and `later` (..., S), at `shares` (...) of the way."""
    if is_compiled() and can_read(earlier, later, shares):
        from pretrain.compiled.states import blend_states as compiled

        width = earlier.shape[-1]
        blended = compiled(earlier.view(-1, width), later.view(-1, width), shares.view(-1))
        return blended.view(earlier.shape)
    straight = unflatten(torch.lerp(earlier, later, shares[..., None]))
    arc = slerp(unflatten(earlier).root_rot, unflatten(later).root_rot, shares)
    return replace(straight, root_rot=arc).flatten()


def pack(clips: tuple[MotionClip, ...], weights: tuple[float, ...]) -> MotionLibrary:
    """Clips at the control rate -> library. Weights need not sum to 1."""
    flat = [clip.states.flatten().astype(np.float32) for clip in clips]
    lengths = [len(f) for f in flat]
    names = tuple(clip.name for clip in clips)
    return MotionLibrary(
        names=names,
        frames=torch.from_numpy(np.concatenate(flat)),
        starts=torch.tensor([0, *np.cumsum(lengths)[:-1].tolist()]),
        lengths=torch.tensor(lengths),
        weights=torch.tensor(weights, dtype=torch.float32) / sum(weights),
        originals=tuple(names.index(clip.mirror_of or clip.name) for clip in clips),
    )

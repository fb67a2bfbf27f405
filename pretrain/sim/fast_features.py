"""The features of a control step: those of `features.py`, compiled where possible.

Export and gradients take `features.py` itself.
"""

from __future__ import annotations

from torch import Tensor

from pretrain.characters.skeleton import Skeleton
from pretrain.characters.state import CharacterState
from pretrain.compiled.kernel import is_compiled
from pretrain.sim import features


def proprioception(state: CharacterState) -> Tensor:
    """From states (N,) on the CPU, (N, 13 + 2 J)."""
    if is_compiled():
        from pretrain.compiled import features as compiled

        return compiled.proprioception(state)
    return features.proprioception(state)


def style_frame(skeleton: Skeleton, state: CharacterState) -> Tensor:
    """From states (N,) on the CPU, (N, F)."""
    if is_compiled():
        from pretrain.compiled import features as compiled

        return compiled.style_frame(skeleton, state)
    return features.style_frame(skeleton, state)

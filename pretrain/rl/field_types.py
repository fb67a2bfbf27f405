"""Types of settings, shared by the configurations of both stages."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from pretrain.rl.learner import MAX_LR, MIN_LR

Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]
Rate = Annotated[float, Field(ge=MIN_LR, le=MAX_LR)]  # adapted by the KL divergence
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(gt=0)]
Seconds = Annotated[float, Field(ge=1 / 30)]  # at least one control step
Worlds = Annotated[int, Field(gt=0, le=1_000_000)]
Layers = Annotated[tuple[Count, ...], Field(min_length=1)]  # units of hidden layers
Seed = Annotated[int, Field(ge=0, lt=2**63)]


class Frozen(BaseModel):
    """A group of settings; an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)

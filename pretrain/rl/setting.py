"""What the settings of a run may be; more than one stage has a configuration made of them."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from pretrain.rl.learner import FASTEST, SLOWEST

Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]
Rate = Annotated[float, Field(ge=SLOWEST, le=FASTEST)]  # of a learner that is steered by its KL
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(gt=0)]
Seconds = Annotated[float, Field(ge=1 / 30)]  # a control step at least
Seed = Annotated[int, Field(ge=0, lt=2**63)]


class Frozen(BaseModel):
    """A group of settings: a key that does not exist is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)

"""FrozenModel: the base class of a manifest's models."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class FrozenModel(BaseModel):
    # A NaN must stay one until the store refuses it; pydantic would write null in its place.
    model_config = ConfigDict(extra="forbid", frozen=True, ser_json_inf_nan="constants")

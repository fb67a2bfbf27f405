"""Settings of the service, from the environment: `REPERTOIRE_STORE`, `REPERTOIRE_PORT`, ... It has no other."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from skills_store.store import default_root


class Settings(BaseSettings):
    model_config = SettingsConfigDict(env_prefix="REPERTOIRE_", env_ignore_empty=True, frozen=True)

    store: str | Path = Field(default_factory=default_root)  # a folder or s3://...; what `python -m skills_store` shows
    skill: str = "humanoid@latest"  # answers requests that name none; its presence is readiness
    host: str = "127.0.0.1"
    port: int = Field(default=8000, ge=0, le=65535)  # 0: any free one
    refresh: float = Field(default=1.0, ge=0)  # s until a reference is resolved anew: how late a moved alias may be
    max_loaded: int = Field(default=8, gt=0)  # versions kept in memory, of skills and of controllers each
    max_rows: int = Field(default=1024, gt=0)  # in one /act or decision
    max_frames: int = Field(default=18_000, gt=0)  # in one /encode: ten minutes at 30 Hz
    max_body: int = Field(default=32 * 2**20, gt=0)  # bytes

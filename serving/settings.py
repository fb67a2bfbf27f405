"""All settings of the service, from the environment: `REPERTOIRE_STORE`, `REPERTOIRE_PORT`, ..."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from serving.access.origins import normalize_origin
from serving.access.root_path import PREFIX
from skills_store.processors import count_processors
from skills_store.runtime.onnx_session import Device
from skills_store.store import default_root

Names = Annotated[tuple[str, ...], NoDecode]  # in the environment, separated by commas


class Settings(BaseSettings):
    model_config = SettingsConfigDict(env_prefix="REPERTOIRE_", env_ignore_empty=True, frozen=True)

    store: str | Path = Field(
        default_factory=default_root, description="Skill store: a folder, or s3://..."
    )
    skill: str = Field(
        default="humanoid@latest",
        description="Library that answers requests which name none; its presence is readiness",
    )
    device: Device = Field(default="cpu", description="cpu or cuda")

    host: str = Field(
        default="127.0.0.1",
        description="Address or name to listen on; beyond the loopback keys are needed",
    )
    port: int = Field(default=8000, ge=0, le=65535, description="0: any free one")
    workers: int = Field(default=1, gt=0, description="Processes that share the port")
    tls_cert: Path | None = Field(default=None, description="PEM file; together with tls_key")
    tls_key: Path | None = Field(default=None, description="PEM file; together with tls_cert")
    keys: Path | None = Field(
        default=None, description="Key file, made by `python -m serving.keys`"
    )

    allowed_hosts: Names = Field(
        default=(),
        description="`Host` names; default: any with keys, else those of the loopback. *: any",
    )
    allowed_origins: Names = Field(
        default=(), description="Origins of pages that may use the service, besides its own. *: any"
    )
    root_path: str = Field(
        default="", description="Path under which a proxy publishes the service, as /rep"
    )
    trusted_proxies: Names = Field(
        default=("127.0.0.1", "::1"), description="Addresses whose X-Forwarded-Prefix is used"
    )

    refresh: float = Field(default=0.5, gt=0, description="s between two looks at the store")
    drain: float = Field(
        default=1.0,
        ge=0,
        description="s after SIGTERM in which /readyz answers 503 and requests are still taken",
    )
    max_memory: int = Field(
        default=2**30, gt=0, description="bytes of open graphs, of skills and of controllers each"
    )
    threads: int = Field(
        default_factory=count_processors,
        gt=0,
        description="Threads for long batches and files, per worker",
    )

    rate: float | None = Field(
        default=None, gt=0, description="requests/s of a key that has no rate of its own"
    )
    max_waiting: int = Field(
        default=4096, gt=0, description="Rows that may wait for a graph; beyond it, 503"
    )
    max_connections: int = Field(
        default=2048, gt=0, description="Connections per worker; beyond it, 503"
    )
    request_timeout: float = Field(
        default=30.0,
        gt=0,
        description="s for a request's head to arrive, and for its body; then 408",
    )
    keep_alive: int = Field(
        default=75,
        gt=0,
        description="s after which an idle connection is closed; longer than a balancer's",
    )
    max_rows: int = Field(default=1024, gt=0, description="Rows in one /act or decision")
    max_frames: int = Field(
        default=18_000, gt=0, description="Frames in one /encode; 18,000 are ten minutes at 30 Hz"
    )
    max_body: int = Field(
        default=32 * 2**20, gt=0, description="bytes of a body, compressed or not"
    )
    access_log: bool = Field(
        default=False, description="Write a line per request, which costs throughput"
    )

    @field_validator("allowed_hosts", "allowed_origins", "trusted_proxies", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        return tuple(name.strip() for name in value.split(",") if name.strip())

    @field_validator("host")
    @classmethod
    def _unbracket(cls, value: str) -> str:
        return value.removeprefix("[").removesuffix("]")

    @field_validator("root_path")
    @classmethod
    def _check_root_path(cls, value: str) -> str:
        path = value.rstrip("/")
        if path and not PREFIX.fullmatch(path):
            raise ValueError(f"root_path {value!r} is no path; expected something like /rep")
        return path

    @field_validator("allowed_origins")
    @classmethod
    def _check_origins(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(normalize_origin(origin) for origin in value)

    @model_validator(mode="after")
    def _guarded_beyond_loopback(self) -> Self:
        if self.keys is None and not _is_loopback(self.host):
            raise ValueError(
                f"host {self.host} can be reached from elsewhere, so keys are needed: make "
                "some with "
                "`python -m serving.keys add NAME act encode`, and set REPERTOIRE_KEYS to the file"
            )
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ValueError("tls_cert and tls_key go together")
        return self


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"

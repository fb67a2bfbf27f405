"""`python -m serving`: the app on uvicorn, in as many processes as the settings say. Prints in one
line what it serves."""

from __future__ import annotations

import logging
import os
import signal
import socket
import ssl
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from types import FrameType

import uvicorn
from pydantic import ValidationError
from starlette.types import ASGIApp

from serving.app import enclose, make_gateway
from serving.models.metrics import SHARED
from serving.server.connection_limits import LimitedProtocol
from serving.server.gateway import Gateway
from serving.server.listening import listen, make_url, repeat
from serving.server.logs import configure
from serving.server.supervisor import Supervisor
from serving.server.tracing import configure_tracer
from serving.settings import Settings
from skills_store.errors import StoreError
from skills_store.open import open_store

log = logging.getLogger("repertoire.serving")
Sockets = list[socket.socket]
HELP = ("-h", "--help")


def main(arguments: Sequence[str] = ()) -> int:
    if any(argument in HELP for argument in arguments):
        print(describe_settings())
        return 0
    try:
        set_environment(arguments)
        settings = Settings()
        check_tls(settings)
        # built even if workers build their own: errors in store or keys are printed once
        gateway = make_worker_gateway()
        sockets = repeat(listen(settings.host, settings.port))
    except ValidationError as error:
        return _fail(describe(error))
    except (StoreError, OSError, ValueError) as error:
        return _fail(str(error))
    url = make_url("https" if settings.tls_cert else "http", settings.host, sockets)
    print(f"Repertoire on {url} (docs: /docs) serves {_skills(settings)}", flush=True)
    os.environ["REPERTOIRE_STORE"] = str(
        settings.store
    )  # all workers serve the same store, whenever they start
    if settings.workers == 1:
        serve_in_this_process(gateway, settings, sockets)
    else:
        serve_in_workers(settings, sockets)
    return 0


def check_tls(settings: Settings) -> None:
    """Raises ValueError for a certificate or a key that cannot be loaded."""
    if settings.tls_cert is None or settings.tls_key is None:
        return
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(settings.tls_cert, settings.tls_key)
    except OSError as error:
        pair = f"tls_cert={settings.tls_cert}, tls_key={settings.tls_key}"
        raise ValueError(f"{pair}: {error}; expected a PEM certificate and its key") from None


def make_worker_app() -> ASGIApp:
    """The app of one worker process."""
    return enclose(make_worker_gateway(), configure_tracer())


def make_worker_gateway() -> Gateway:
    settings = Settings()
    configure(settings.access_log)
    return make_gateway(settings)


@dataclass(frozen=True)
class Serving:
    """An application, and the sockets it listens on until uvicorn closes them."""

    gateway: Gateway
    sockets: Sockets


def serve_in_this_process(gateway: Gateway, settings: Settings, sockets: Sockets) -> None:
    """Serve until SIGTERM or SIGINT. On SIGHUP a new application takes over the sockets after the
    old one has drained."""
    now: Serving | None = Serving(gateway, sockets)
    while now is not None:
        server = uvicorn.Server(make_config(enclose(now.gateway, configure_tracer()), settings))
        successors: list[Serving] = []
        signal.signal(signal.SIGHUP, partial(reload, server, now, successors))
        server.run(sockets=now.sockets)
        now = successors[0] if successors else None


def reload(
    server: uvicorn.Server, now: Serving, successors: list[Serving], _: int, __: FrameType | None
) -> None:
    """Build the new application first. If that fails, log the reason and keep the old one."""
    if successors or now.gateway.draining:
        return
    if now.gateway.loop is None:
        log.error("not reloaded: the service is still starting")
        return
    try:
        gateway = make_worker_gateway()
    except (StoreError, OSError, ValueError) as error:
        log.error("not reloaded: %s", error)
        return
    successors.append(Serving(gateway, [listening.dup() for listening in now.sockets]))
    now.gateway.drain(gateway.service.settings.drain, partial(setattr, server, "should_exit", True))


def serve_in_workers(settings: Settings, sockets: Sockets) -> None:
    """Run uvicorn's supervisor: it replaces workers that end, and on SIGHUP all, one by one."""
    with _shared_metrics():
        config = make_config("serving.__main__:make_worker_app", settings)
        Supervisor(config, sockets=sockets).run()


def make_config(app: ASGIApp | str, settings: Settings) -> uvicorn.Config:
    protocol = partial(
        LimitedProtocol,
        request_timeout=settings.request_timeout,
        max_connections=settings.max_connections,
    )
    return uvicorn.Config(
        app,
        factory=isinstance(app, str),
        workers=settings.workers,
        loop="uvloop",
        http=protocol,  # type: ignore[arg-type]  # uvicorn only calls it
        ws="websockets-sansio",
        ws_max_size=settings.max_body,
        ws_per_message_deflate=False,  # deflate does not shrink float32 numbers
        server_header=False,
        access_log=False,  # the gateway writes its own
        log_config=None,
        proxy_headers=False,  # no reply depends on the client's address or scheme
        timeout_keep_alive=settings.keep_alive,
        timeout_graceful_shutdown=8,
        # on a busy machine a worker may start slowly without being hung
        timeout_worker_healthcheck=60,
        ssl_certfile=settings.tls_cert,
        ssl_keyfile=settings.tls_key,
    )


def set_environment(arguments: Sequence[str]) -> None:
    """`port=8001` stands for REPERTOIRE_PORT=8001, which worker processes inherit. Raises
    ValueError."""
    for argument in arguments:
        key, separator, value = argument.partition("=")
        if not separator or key not in Settings.model_fields:
            near = get_close_matches(key, Settings.model_fields) or list(Settings.model_fields)
            raise ValueError(
                f"unknown setting {ascii(argument)[1:-1][:80]}; expected key=value with one "
                f"of: {', '.join(near)}"
            )
        os.environ[f"REPERTOIRE_{key.upper()}"] = value


def describe_settings() -> str:
    """Every setting with its default and meaning."""
    lines = [
        str(__doc__),
        "Each setting is given as KEY=VALUE, or in the environment as REPERTOIRE_KEY:",
        "",
    ]
    for name, field in Settings.model_fields.items():
        default = "" if field.default_factory is not None else field.default
        shown = (
            ",".join(default) if isinstance(default, tuple) else "" if default is None else default
        )
        lines.append(f"  {f'{name}={shown}':<36} {field.description}")
    return "\n".join(lines)


def describe(error: ValidationError) -> str:
    """The first thing wrong with the settings, in one line."""
    first = error.errors()[0]
    name = "_".join(["REPERTOIRE", *map(str, first["loc"])]).upper()
    if not first["loc"]:
        return first["msg"].removeprefix("Value error, ")
    return f"{name}: {first['msg']}, got {first['input']!r}"


@contextmanager
def _shared_metrics() -> Iterator[None]:
    """Workers write their metrics to files in one folder: each can answer /metrics for all."""
    with tempfile.TemporaryDirectory(prefix="repertoire-workers-") as folder:
        os.environ[SHARED] = folder
        yield


def _skills(settings: Settings) -> str:
    """The skill names, or the error: the service starts in both cases; /readyz reports it, too."""
    try:
        names = open_store(settings.store).names()
    except (StoreError, OSError) as error:
        return f"nothing: {error}"
    if not names:
        return f"nothing yet: {settings.store} has no skills (make pretrain publishes one)"
    served = ", ".join(names)
    if "://" in str(settings.store) or Path(settings.store).exists():
        return served
    return f"{served}: bundled versions only, as there is no store {settings.store}"


def _fail(reason: str) -> int:
    print(f"serving: {' '.join(reason.split())}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

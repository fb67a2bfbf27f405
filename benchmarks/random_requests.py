"""Random requests for the service, over all its routes: valid, nearly valid and malformed.

Each begins as a request that the store's models accept. Its fields, bytes, headers, path and method
are then changed at random; most requests get no change or one. The same seed gives the same
requests. No request targets a route of the framework that the service does not use.
"""

from __future__ import annotations

import gzip
import json
import math
import random
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from urllib.parse import quote

import httpx
import numpy as np
import ormsgpack

from serving.models.resting_pose import example_latent, make_resting_row, state_at_rest
from skills_store.graph import Graph, Slice, Tensor
from skills_store.manifest import Manifest
from skills_store.store import Store

Fields = dict[str, Any]
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
ATOMS = (
    *(None, True, False, 0, 1, -1, 2, 69),
    *(1.5, -0.0, 1e-46, 1e39, 1e308, float("nan"), float("inf")),
    *(2**31, 2**63, 2**64, 10**30, -(10**30), 10**400),
    *("", "x", "NaN", "FP32", "FP64", "humanoid", "humanoid@1", "reach", "\0", "\u00e9", "x" * 300),
    *([], {}, [[]], [{}], [None], [1.0], [[1.0]], {"x": 1}, {"name": "x"}),
)
KEYS = ("skill", "seed", "strict", "state", "z", "parameters", "outputs", "x", "", "\u00e9")
GIANTS = (2**16, 2**28, 2**31, 2**62, 10**30)
SIZES = (0, 1, 2, 3, 4, 69, -1, -69, *GIANTS, True, 2.0, None, "2", [2])
MAX_NUMBERS = 10_000  # of an input of a random shape
ROWS = (None, None, None, 1, 2, 5, 64, 65)  # of a batch; None: one row
NAMES = (
    *("humanoid", "mobility", "reach", "humanoid@1", "humanoid@4", "reach@1", "reach@latest"),
    *("nobody", "humanoid@99", "humanoid@0", "humanoid@prod", "humanoid@", "@1", "", ".", ".."),
    *("../x", "a/b", "\0", "\u00e9", "%", "x" * 300, "humanoid@sha256:" + "0" * 64),
)
GRAPHS = ("", "", ".policy", ".encoder", ".style", ".controller", ".flight", ".", "..policy")
VERSIONS = ("1", "2", "9", "0", "-1", "latest", "prod", "x", "1@1", "\u00e9")
GETS = (
    *("/healthz", "/readyz", "/metrics", "/skills", "/controllers", "/openapi.json", "/docs"),
    *("/v2", "/v2/health/live", "/v2/health/ready", "/v2/repository/index", "/nowhere", "/"),
)
OPTIONS = {  # parameters of an infer request, and values for them
    "binary_data_output": (True, False, None, 0, "true"),
    "binary_data": (True, False, None, 1, []),
    "binary_data_size": (0, 16, 276, -1, None, True, 1.5, 10**30, "16"),
    "classification": (3, 0, None, "x"),
    "sequence_id": (7, 0, "", "seven", None),
    "sequence_start": (True, False, None),
    "priority": (0, 1, "x"),
    "shared_memory_region": ("region", "", None),
    "triton_x": (1, None),
    "content_type": ("np", None),
}
HEADERS = {
    "content-type": (
        *("application/json", "application/msgpack", "application/octet-stream", "text/plain", ""),
        *("multipart/form-data", "multipart/form-data; boundary=", "application/json; charset=x"),
    ),
    "x-tensors": ("", "state", "state=69", "state=0x69,z=4", "state=69,state=69", "z=999999999x9"),
    "x-fields": (
        *("", "{", "null", "[]", '{"skill": null}', '{"state": [1]}', '{"z": {}}'),
        *('{"skill": "\\u00e9"}', '{"seed": 1e400}'),
    ),
    "x-dtype": ("float32", "<f4", ">f4", "float64", ""),
    "inference-header-content-length": ("", "0", "5", "-1", "x", "9" * 11, "9" * 40, "1.5"),
    "x-request-id": ("a", "", "x" * 300, "\u00e9"),
    "authorization": ("Bearer x.y", "Bearer", "Basic x"),
    "content-encoding": ("identity", "gzip", "deflate", "br", "gzip, gzip"),
    "accept": ("*/*", "text/html", ""),
    "host": ("localhost", "", "elsewhere.example", "localhost:1"),
    "origin": ("http://localhost", "http://elsewhere.example", "null"),
}
COMPRESSORS = {"gzip": partial(gzip.compress, mtime=0), "deflate": zlib.compress}
PIECES = (
    *(b"[", b"{", b"]", b"}", b'"', b",", b"-", b"\0", b"\xff" * 8),
    *(b"NaN", b"1e999", b"null", b"9" * 30),
)


@dataclass(frozen=True)
class Request:
    method: str
    path: str  # quoted
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)  # Latin-1

    def __str__(self) -> str:
        body = f"{self.body[:2000]!r}" + ("" if len(self.body) <= 2000 else "...")
        return f"{self.method} {self.path[:300]}\n  headers {self.headers}\n  body {body}"


class Generator:
    """`request` returns the next request of the sequence of `seed`."""

    def __init__(self, store: Store, seed: int) -> None:
        self.rng = random.Random(seed)
        self.noise = np.random.default_rng(seed)
        self.manifests = {name: store.resolve(name).manifest for name in store.names()}
        self.skills = [n for n, manifest in self.manifests.items() if manifest.kind == "skills"]
        self.controllers = [n for n in self.manifests if n not in self.skills]
        self.makers: list[tuple[Callable[[], Request], int]] = [  # and how often, relatively
            (self._act, 25),
            (self._decide, 10),
            (self._encode, 12),
            (self._upload, 4),
            (self._interpolate, 12),
            (self._infer, 25),
            (self._read, 12),
        ]

    def request(self) -> Request:
        makers, weights = zip(*self.makers, strict=True)
        made: Request = self.rng.choices(makers, weights)[0]()
        if self._chance(0.15):
            made = replace(made, body=self._scrambled(made.body))
        made = self._with_headers(made)
        if self._chance(0.05):
            made = replace(made, method=self.rng.choice(METHODS))
        if self._chance(0.03):
            made = replace(made, path=made.path + self.rng.choice(("/", "?x=1", "/x", "%00", "?")))
        return made

    def _with_headers(self, made: Request) -> Request:
        """The request, sometimes compressed, or with a header set or removed."""
        if self._chance(0.1):
            coding = self.rng.choice(list(COMPRESSORS))
            body = COMPRESSORS[coding](made.body)
            body = self._scrambled(body) if self._chance(0.3) else body
            made = replace(made, body=body, headers=made.headers | {"content-encoding": coding})
        if made.headers and self._chance(0.05):
            name = self.rng.choice(list(made.headers))
            others = {key: value for key, value in made.headers.items() if key != name}
            made = replace(made, headers=others)
        if self._chance(0.15):
            name = self.rng.choice(list(HEADERS))
            value = self.rng.choice(HEADERS[name])
            made = replace(made, headers=made.headers | {name: value})
        return made

    def _act(self) -> Request:
        name = self.rng.choice(self.skills)
        manifest = self.manifests[name]
        count = self.rng.choice(ROWS)
        fields: Fields = {"state": self._state(manifest, count), "z": self._z(manifest, count)}
        fields |= {"skill": name} if name != "humanoid" or self._chance(0.5) else {}
        fields |= {"seed": self.rng.choice((0, 3, None, 2**62))} if self._chance(0.3) else {}
        fields |= {"strict": self.rng.choice((True, False, None))} if self._chance(0.3) else {}
        return self._encoded("/act", fields)

    def _decide(self) -> Request:
        name = self.rng.choice(self.controllers)
        manifest = self.manifests[name]
        count = self.rng.choice(ROWS)
        goal = manifest.graphs["controller"].input("goal")
        state = manifest.graphs["controller"].input("state")
        fields = {"state": self._named(state, count), "goal": self._named(goal, count)}
        called = name if self._chance(0.8) else self.rng.choice(NAMES)
        return self._encoded(f"/controllers/{quote(called, safe='@')}/act", fields)

    def _encode(self) -> Request:
        name = self.rng.choice(self.skills)
        manifest = self.manifests[name]
        fields: Fields = {"frames": self._state(manifest, self.rng.choice((1, 2, 3, 4, 20, 70)))}
        fields |= {"skill": name} if self._chance(0.5) else {}
        return self._encoded("/encode", fields)

    def _upload(self) -> Request:
        turn = [1.0, 0.0, 0.0, 0.0]
        pose = [*turn * 3, 0.0, *turn * 2, 0.0, *turn, 0.0, *turn * 2, 0.0]
        count = self.rng.choice((1, 3, 20))
        frames = [[1 / 30, 0.03 * i, 0.9, 0.0, *turn, *pose] for i in range(count)]
        clip: Any = {"Loop": "none", "Frames": frames}
        clip = self._altered(clip) if self._chance(0.4) else clip
        form: Fields = {"skill": self.rng.choice(NAMES)} if self._chance(0.3) else {}
        suffix = self.rng.choice((".txt", ".json", ".bvh", "", ".TXT"))
        title = "file" if self._chance(0.9) else "clip"
        part = (title, (f"walk{suffix}", json.dumps(clip).encode()))
        boundary = {"content-type": "multipart/form-data; boundary=boundary"}
        sent = httpx.Request("POST", "http://local", files=[part], data=form, headers=boundary)
        return Request("POST", "/encode", sent.read(), boundary)

    def _interpolate(self) -> Request:
        name = self.rng.choice(self.skills)
        manifest = self.manifests[name]
        clips = list(manifest.latent.clips)
        path = []
        for _ in range(self.rng.choice((2, 2, 3, 5, 64, 65))):
            path.append(self.rng.choice(clips) if self._chance(0.5) else self._z(manifest, None))
        steps = self.rng.choice((2, 7, 100, 1, 10_001))
        fields: Fields = {"path": path, "steps": steps, "skill": name}
        return self._encoded("/interpolate", fields)

    def _infer(self) -> Request:
        name = self.rng.choice(list(self.manifests))
        graph = self.rng.choice(list(self.manifests[name].graphs))
        arrays = self._arrays(self.manifests[name].graphs[graph])
        inputs = []
        tail = []
        for title, array in arrays.items():
            one: Fields = {"name": title, "shape": list(array.shape), "datatype": "FP32"}
            if self._chance(0.5):
                one["parameters"] = {"binary_data_size": array.nbytes}
                tail.append(array.tobytes())
            else:
                one["data"] = array.tolist() if self._chance(0.5) else array.ravel().tolist()
            inputs.append(one)
        fields: Fields = {"inputs": inputs}
        if self._chance(0.4):
            fields["outputs"] = [{"name": self.manifests[name].graphs[graph].outputs[0].name}]
        fields = self._options(fields) if self._chance(0.4) else fields
        body = json.dumps(self._altered(fields) if self._chance(0.3) else fields).encode()
        headers = {"inference-header-content-length": str(len(body))} if tail else {}
        model = f"{name}.{graph}" if self._chance(0.9) else self._model()
        version = "" if self._chance(0.8) else f"/versions/{quote(self.rng.choice(VERSIONS))}"
        path = f"/v2/models/{quote(model, safe='@')}{version}/infer"
        return Request("POST", path, body + b"".join(tail), headers)

    def _options(self, fields: Fields) -> Fields:
        """Set a shape, a repeated name or a few parameters that may be wrong."""
        one = self.rng.choice([fields, *fields["inputs"], *fields.get("outputs", ())])
        chosen = self.rng.sample(list(OPTIONS), 2)
        added = {key: self.rng.choice(OPTIONS[key]) for key in chosen}
        match self.rng.randrange(4):
            case 0:
                one["parameters"] = one.get("parameters", {}) | added
            case 1:
                self._reshape(self.rng.choice(fields["inputs"]))
            case 2:
                fields["inputs"].append(self.rng.choice(fields["inputs"]))
            case _:
                fields |= {"id": self.rng.choice(ATOMS), "outputs": None, "parameters": None}
        return fields

    def _reshape(self, one: Fields) -> None:
        """Set a random shape, half of the time with as many numbers."""
        shape = self.rng.choices(SIZES, k=self.rng.choice((1, 2, 2, 3, 3, 4, 9)))
        if self._chance(0.3):
            shape = [0, *self.rng.choices(GIANTS, k=self.rng.choice((1, 2, 3)))]
        one["shape"] = shape
        whole = [size for size in shape if isinstance(size, int)]
        count = math.prod(whole) if len(whole) == len(shape) else -1
        if 0 <= count <= MAX_NUMBERS and self._chance(0.5):
            one.pop("parameters", None)
            one["data"] = [0.0] * count

    def _read(self) -> Request:
        name = quote(self.rng.choice(NAMES), safe="@")
        version = quote(self.rng.choice(VERSIONS))
        model = quote(self._model(), safe="@")
        path = self.rng.choice(
            (
                *GETS,
                *(f"/skills/{name}", f"/skills/{name}/latents", f"/controllers/{name}"),
                *(f"/v2/models/{model}", f"/v2/models/{model}/config", f"/v2/models/{model}/ready"),
                f"/v2/models/{model}/versions/{version}",
                f"/v2/models/{model}/versions/{version}/ready",
            )
        )
        method = "POST" if path.endswith("/index") else self.rng.choice(("GET", "GET", "HEAD"))
        return Request(method, path)

    def _model(self) -> str:
        return self.rng.choice(NAMES) + self.rng.choice(GRAPHS)

    def _arrays(self, graph: Graph) -> dict[str, np.ndarray]:
        count = self.rng.choice((1, 1, 2, 5, 65))
        found = {}
        for tensor in graph.inputs:
            length = tensor.shape[1] if len(tensor.shape) == 3 else 1
            rows = np.array(self._rows(tensor, count * int(length)), np.float32)
            found[tensor.name] = rows.reshape(count, *(int(size) for size in tensor.shape[1:]))
        return found

    def _state(self, manifest: Manifest, count: int | None) -> Any:
        return self._named(manifest.graphs["policy"].input("state"), count, state_at_rest(manifest))

    def _z(self, manifest: Manifest, count: int | None) -> Any:
        rows = np.repeat(example_latent(manifest), count or 1, axis=0)
        rows = rows + self.noise.normal(size=rows.shape) * self.rng.choice((0.0, 0.1, 10.0))
        return (rows[0] if count is None else rows).tolist()

    def _named(self, tensor: Tensor, count: int | None, row: np.ndarray | None = None) -> Any:
        """One row, a batch, or sometimes either as named parts."""
        rows = self._rows(tensor, count or 1, row)
        found = rows[0] if count is None else rows
        if len(tensor.slices) < 2 or self._chance(0.8):
            return found.tolist()
        return {part.name: found[..., part.start : part.stop].tolist() for part in tensor.slices}

    def _rows(self, tensor: Tensor, count: int, row: np.ndarray | None = None) -> np.ndarray:
        """(count, width): at rest, with noise except in rotations."""
        width = int(tensor.shape[-1])
        still = row if row is not None else np.zeros((1, width))
        if row is None and tensor.slices and len(tensor.shape) == 2:
            still = make_resting_row(tensor)
        noise = self.noise.normal(size=(count, width)) * self.rng.choice((0.0, 0.1, 1.0, 1e6, 1e38))
        for part in filter(_is_rotation, tensor.slices):
            noise[:, part.start : part.stop] = 0
        return np.clip(still + noise, -3e38, 3e38).astype(np.float32)

    def _encoded(self, path: str, fields: Fields) -> Request:
        """JSON, MessagePack or raw float32, if the fields can be encoded so."""
        changed: Any = self._altered(fields) if self._chance(0.35) else fields
        kind = self.rng.choice(("json", "json", "msgpack", "raw"))
        if kind == "raw" and isinstance(changed, dict):
            return _raw(path, changed)
        if kind == "msgpack":
            try:
                packed = ormsgpack.packb(changed)
                return Request("POST", path, packed, {"content-type": "application/msgpack"})
            except ormsgpack.MsgpackEncodeError:  # an integer of more than 64 bits
                pass
        body = json.dumps(changed).encode()
        return Request("POST", path, body, {"content-type": "application/json"})

    def _altered(self, value: Any) -> Any:
        """A copy with one random change at any depth, or a random value instead."""
        if isinstance(value, dict) and value and self._chance(0.9):
            key = self.rng.choice(list(value))
            others = {name: kept for name, kept in value.items() if name != key}
            match self.rng.randrange(6):
                case 0:
                    return others
                case 1:
                    return value | {self.rng.choice(KEYS): self.rng.choice(ATOMS)}
                case _:
                    return others | {key: self._altered(value[key])}
        if isinstance(value, list) and value and self._chance(0.7):
            i = self.rng.randrange(len(value))
            below = self._altered(value[i])
            changed = self.rng.choice(([], [value[i]] * 2, [below], [self.rng.choice(ATOMS)]))
            return [*value[:i], *changed, *value[i + 1 :]]
        return self.rng.choice(ATOMS)

    def _scrambled(self, body: bytes) -> bytes:
        """`body` with a few bytes changed, removed, doubled or inserted."""
        changed = bytearray(body)
        for _ in range(self.rng.choice((1, 1, 2, 10))):
            at = self.rng.randrange(len(changed) + 1)
            match self.rng.randrange(5):
                case 0:
                    changed[at : at + 1] = self.rng.randbytes(1)
                case 1:
                    del changed[at : at + self.rng.choice((1, 4, 100))]
                case 2:
                    changed[at:at] = changed[at : at + self.rng.randrange(64)]
                case 3:
                    del changed[at:]
                case _:
                    changed[at:at] = self.rng.choice(PIECES)
        return bytes(changed)

    def _chance(self, share: float) -> bool:
        return self.rng.random() < share


def _raw(path: str, fields: Fields) -> Request:
    """Every field that is an array of numbers as float32 in the body, the others in X-Fields."""
    shapes = []
    parts = []
    others = {}
    for name, value in fields.items():
        try:
            with np.errstate(over="ignore"):
                array = np.asarray(value if isinstance(value, list) else None, np.float32)
        except (TypeError, ValueError, OverflowError):
            array = None
        if array is None or array.ndim == 0:
            others[name] = value
            continue
        shapes.append(f"{name}={'x'.join(map(str, array.shape))}")
        parts.append(array.tobytes())
    headers = {"content-type": "application/octet-stream", "x-tensors": ",".join(shapes)}
    headers |= {"x-fields": json.dumps(others)} if others else {}
    return Request("POST", path, b"".join(parts), headers)


def _is_rotation(part: Slice) -> bool:
    return "wxyz" in part.unit

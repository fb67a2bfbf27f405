"""s3://, gs:// and az:// as an origin. Only this module imports obstore.

Credentials, region and endpoint come from the environment, as each cloud's own tools read them
(AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL, ...). Every object is written with `If-None-Match: *` or its
equivalent, which the service must support.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from datetime import timedelta
from itertools import chain
from time import monotonic

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, NotFoundError, PreconditionError
from obstore.store import ObjectStore, from_url

from skills_store.errors import UnreachableOrigin

SCHEMES = ("s3://", "gs://", "az://")
RETRIES = 3
RETRY_TIMEOUT = timedelta(seconds=20)
# Seconds without requests after a failed one: meanwhile calls use the cache and do not wait.
PAUSE = 10.0


class Bucket:
    def __init__(self, url: str, store: ObjectStore) -> None:
        self.url = url
        self.store = store
        self._silent_until = 0.0
        self._reason = ""

    def keys(self, prefix: str) -> list[str]:
        with self._request():
            pages = obstore.list(self.store, prefix=prefix)
            return [entry["path"] for entry in chain.from_iterable(pages)]

    def read(self, key: str) -> bytes:
        with self._request():
            try:
                return bytes(obstore.get(self.store, key).bytes())
            except (NotFoundError, FileNotFoundError) as error:
                raise KeyError(key) from error

    def create(self, key: str, data: bytes) -> bool:
        with self._request():
            try:
                # In one request: a multipart upload has no precondition.
                obstore.put(self.store, key, data, mode="create", use_multipart=False)
            except (AlreadyExistsError, FileExistsError, PreconditionError):
                return False
            return True

    @contextlib.contextmanager
    def _request(self) -> Iterator[None]:
        if monotonic() < self._silent_until:
            raise UnreachableOrigin(self.url, f"{self._reason} (a moment ago)")
        try:
            yield
        except (BaseError, OSError) as error:
            self._silent_until = monotonic() + PAUSE
            self._reason = _one_line(error)
            raise UnreachableOrigin(self.url, self._reason) from error


def open_bucket(url: str) -> Bucket:
    try:
        return Bucket(
            url,
            from_url(url, retry_config={"max_retries": RETRIES, "retry_timeout": RETRY_TIMEOUT}),
        )
    except (BaseError, ValueError) as error:
        raise UnreachableOrigin(url, _one_line(error)) from error


def _one_line(error: Exception) -> str:
    """The service's error code and message, if any; else the text, shortened."""
    text = " ".join(str(error).split())
    answer = re.search(r"<Code>(\w+)</Code>.*?<Message>(.*?)</Message>", text)
    return f"{answer[1]}: {answer[2]}" if answer else text[:300]

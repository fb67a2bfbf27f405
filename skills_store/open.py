"""Opens a store by its location: a folder, or an object store with a local cache in front of it.

REPERTOIRE_STORE     a folder, or s3://bucket/prefix, gs://..., az://...
REPERTOIRE_CACHE     where caches of object stores are
REPERTOIRE_BUNDLED   off hides the libraries that come with the project

Their defaults are in skills_store/places.py.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from skills_store import places
from skills_store.errors import InvalidStore, StoreError
from skills_store.store import Store, default_root

REMOTE = "://"
# s3:/bucket, S3:bucket: must not become a folder of that name.
MISTYPED = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def open_store(location: str | Path | None = None, *, bundled: bool = True) -> Store:
    """The store at `location`, or the user's own. `bundled`: also read the libraries that come with
    the project.
    """
    text = str(location or os.environ.get("REPERTOIRE_STORE") or default_root())
    libraries = places.bundled() if bundled else None
    if REMOTE in text:
        return _open_remote(text, libraries)
    if MISTYPED.match(text):
        raise InvalidStore(
            f"{text!r} is no store; write s3://bucket/prefix, gs://... or az://..., or ./{text}"
        )
    if libraries is not None and Path(text).resolve() == libraries.resolve():
        libraries = None
    return Store(text, bundled=libraries)


def _open_remote(url: str, bundled: Path | None) -> Store:
    try:
        from skills_store.remote.bucket import SCHEMES, open_bucket
    except ImportError as error:
        raise StoreError(
            f"{url} needs the obstore package (repertoire[remote]): {error}"
        ) from error
    if not url.startswith(SCHEMES):
        schemes = ", ".join(SCHEMES)
        raise InvalidStore(f"{url} is no store; write a folder, or one of {schemes} and a bucket")
    return Store(cache_folder(url), open_bucket(url), bundled=bundled)


def cache_folder(url: str) -> Path:
    """One folder for each URL: two prefixes of a bucket are two stores."""
    return places.buckets() / hashlib.sha256(url.rstrip("/").encode()).hexdigest()[:16]

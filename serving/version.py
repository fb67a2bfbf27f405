"""The version of the installed package."""

from __future__ import annotations

from importlib import metadata

VERSION = metadata.version("repertoire")

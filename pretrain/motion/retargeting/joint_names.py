"""Maps a file's joints to parts of a body by name, for the rigs in use."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches

from pretrain.motion.clip import ClipError

# part -> its names, letters and digits only, most specific first; SIDE is left, right, l or r. A
# joint is one part: of two parts with a common name, the first in this table takes it.
PARTS = {
    "shin": (
        "SIDEshin",
        "SIDEknee",
        "SIDEcalf",
        "lowerlegSIDE",
        "SIDElowerleg",
        "SIDEtibia",
        "SIDEleg",
    ),
    "thigh": (
        "SIDEupleg",
        "SIDEhip",
        "SIDEthigh",
        "upperlegSIDE",
        "SIDEupperleg",
        "SIDEfemur",
        "SIDEleg",  # SOMA's; elsewhere the shin's, which comes first
    ),
    "foot": ("SIDEfoot", "SIDEankle", "footSIDE"),
    "toe": ("SIDEtoebase", "SIDEtoe", "toesSIDE", "SIDEtoes"),
    "upper_arm": ("SIDEarm", "SIDEupperarm", "upperarmSIDE", "SIDEshoulder", "SIDEhumerus"),
    "lower_arm": ("SIDEforearm", "SIDEelbow", "lowerarmSIDE", "SIDElowerarm", "SIDEradius"),
    "hand": ("SIDEwrist", "SIDEhand", "handSIDE"),  # the wrist, where there are both
}
PREFIXES = ("ccbase", "bip01", "character1", "def")
OPTIONAL = ("left_toe", "right_toe")
SIDES = {"left": ("left", "l"), "right": ("right", "r")}
HEAD = ("head",)


def find_joints(
    joints: tuple[str, ...], name: str, overrides: Mapping[str, str] | None = None
) -> dict[str, int]:
    """Part ("left_thigh", "head", ...) -> index among `joints`; ClipError lists what is missing,
    with near names.

    `overrides` maps parts to joints, before any other name."""
    indices = _find_overrides(joints, name, overrides or {})
    plain = {plain_name(joint): index for index, joint in reversed(list(enumerate(joints)))}
    missing: list[str] = []
    for part, names in _names_of_parts().items():
        if part in indices:
            continue
        match = next((plain[candidate] for candidate in names if candidate in plain), None)
        if match is not None and match not in indices.values():
            indices[part] = match
        elif part not in OPTIONAL:
            near = get_close_matches(names[0], plain, 1, cutoff=0.6)
            missing.append(f"{part} ({f'near: {joints[plain[near[0]]]}' if near else names[0]})")
    if missing:
        raise ClipError(
            f"{name}: no joint for {', '.join(missing)}; it has {', '.join(joints)[:400]}"
        )
    return indices


def _find_overrides(
    joints: tuple[str, ...], name: str, overrides: Mapping[str, str]
) -> dict[str, int]:
    for part, joint in overrides.items():
        if part not in _names_of_parts():
            raise ClipError(
                f"{name}: {part!r} is no part of a body; there are: {', '.join(_names_of_parts())}"
            )
        if joint not in joints:
            near = get_close_matches(joint, joints, 3)
            raise ClipError(
                f"{name}: no joint {joint!r} for {part}; {', '.join(near or joints)[:400]}"
            )
    return {part: joints.index(joint) for part, joint in overrides.items()}


def plain_name(joint: str) -> str:
    """Lower-case letters and digits, without a namespace ("mixamorig:") or a rig's prefix."""
    plain = re.sub(r"[^a-z0-9]", "", joint.rpartition(":")[2].lower())
    prefix = next(
        (prefix for prefix in PREFIXES if plain.startswith(prefix) and plain != prefix), ""
    )
    return plain[len(prefix) :]


def _names_of_parts() -> dict[str, tuple[str, ...]]:
    names_of_part: dict[str, tuple[str, ...]] = {"head": HEAD}
    for side, spellings in SIDES.items():
        for part, names in PARTS.items():
            spelled = (name.replace("SIDE", spelling) for name in names for spelling in spellings)
            names_of_part[f"{side}_{part}"] = tuple(spelled)
    return names_of_part

"""What is served: a skill library or a controller, open, with what a route needs to know of it. Speaks no HTTP."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from serving.schemas import ControllerDetail, ServedVersion, SkillDetail, Summary
from skills_store.errors import StoreError
from skills_store.library import Controller, SkillLibrary
from skills_store.manifest import Manifest, Tensor
from skills_store.store import Store
from skills_store.version import Version


@dataclass(frozen=True)
class ServedSkill:
    library: SkillLibrary
    stamp: dict[str, str | int]  # goes with every reply: the bytes that computed it

    @staticmethod
    def open(store: Store, version: Version) -> ServedSkill:
        return ServedSkill(SkillLibrary.open(store, version), stamp(version))

    @property
    def version(self) -> Version:
        return self.library.version

    @property
    def manifest(self) -> Manifest:
        return self.version.manifest

    @property
    def state(self) -> Tensor:
        return self.manifest.graphs["policy"].input("state")

    @property
    def z(self) -> Tensor:
        return self.manifest.graphs["policy"].input("z")

    @property
    def window(self) -> int:
        return self.library.window_length


@dataclass(frozen=True)
class ServedController:
    controller: Controller
    stamp: dict[str, str | int]
    skill: ServedSkill  # the very version that the controller was trained on

    @staticmethod
    def open(store: Store, version: Version) -> ServedController:
        controller = Controller.open(store, version)
        skill = ServedSkill(controller.library, stamp(controller.library.version))
        return ServedController(controller, stamp(version), skill)

    @property
    def version(self) -> Version:
        return self.controller.version

    @property
    def state(self) -> Tensor:
        return self.version.manifest.graphs["controller"].input("state")

    @property
    def goal(self) -> Tensor:
        return self.version.manifest.graphs["controller"].input("goal")


def stamp(version: Version) -> dict[str, str | int]:
    return {"name": version.name, "version": version.number, "digest": version.digest}


def summaries(store: Store, kind: str) -> Iterable[Summary]:
    """What the store holds of one kind. A skill that cannot be listed says so in its own line."""
    for name in store.names():
        try:
            (rows, faults), aliases = store.summaries(name), store.aliases(name)
        except (StoreError, OSError):  # deleted or made unreadable between two looks
            continue
        kinds = {row.kind for row in rows}
        # A name whose every version is damaged has no known kind: it is listed with the skills, not hidden.
        if kind in kinds or (not kinds and kind == "skills"):
            yield Summary(
                name=name,
                versions=[row.number for row in rows if row.kind == kind],
                aliases=aliases,
                faults=[fault.message for fault in faults],
            )


def skill_detail(served: ServedSkill) -> SkillDetail:
    version, manifest, body = served.version, served.manifest, served.manifest.character
    return SkillDetail(
        name=version.name,
        version=version.number,
        digest=version.digest,
        created=version.created,
        licence=manifest.licence,
        character=body.name,
        joints=list(body.joints),
        kp=list(body.kp),
        kd=list(body.kd),
        damping=list(body.damping),
        torque_limit=list(body.torque_limit),
        control_dt=body.control_dt,
        mjcf=body.mjcf,
        state=list(served.state.slices),
        state_dim=served.state.width,
        latent_dim=manifest.latent.dim,
        window=served.window,
        clips={name: list(z) for name, z in manifest.latent.clips.items()},
        card=manifest.card,
    )


def controller_detail(served: ServedController) -> ControllerDetail:
    version, task = served.version, served.version.manifest.task
    assert task is not None  # the manifest's own rule for a controller
    return ControllerDetail(
        name=version.name,
        version=version.number,
        digest=version.digest,
        created=version.created,
        licence=version.manifest.licence,
        task=task.name,
        llc_steps=task.llc_steps,
        state=list(served.state.slices),
        goal_dim=served.goal.width,
        goal=list(served.goal.slices),
        skill=ServedVersion.model_validate(served.skill.stamp),
        card=version.manifest.card,
    )

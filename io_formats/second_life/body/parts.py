"""The parts of the classic avatar, and the values of their morph targets for a shape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..shape import evaluation, parameters


@dataclass(frozen=True)
class Part:
    """A mesh of the classic avatar."""

    name: str
    file: str
    mesh: str
    """Name in the table of effects."""
    joint: str = ""
    """Joint that carries a mesh without weights, whose origin it has."""
    material: str = "Body"


PARTS = (
    Part("Head", "avatar_head.llm", "headMesh"),
    Part("Upper Body", "avatar_upper_body.llm", "upperBodyMesh"),
    Part("Lower Body", "avatar_lower_body.llm", "lowerBodyMesh"),
    Part("Eyelashes", "avatar_eyelashes.llm", "eyelashMesh", material="Eyelashes"),
    Part("Left Eye", "avatar_eye.llm", "eyeBallLeftMesh", "mEyeLeft", "Eyes"),
    Part("Right Eye", "avatar_eye.llm", "eyeBallRightMesh", "mEyeRight", "Eyes"),
)
FILES = tuple(dict.fromkeys(part.file for part in PARTS))


def morph_weights(values: Mapping[int, float]) -> dict[str, dict[str, float]]:
    """Return the values of shape keys for a shape, by the names of parts and morph targets.

    ``values`` are those of sliders by id; missing ones have their default.
    """
    weights = dict(zip(parameters.parameters(), evaluation.effective_weights(values).tolist(), strict=True))
    return {
        part.name: {name: sum(weights[number] for number in numbers) for name, numbers in morphs_of(part.mesh).items()}
        for part in PARTS
    }


def morphs_of(mesh: str) -> dict[str, list[int]]:
    """Return the parameters that move each morph target of a mesh."""
    found: dict[str, list[int]] = {}
    for morph in parameters.morphs():
        if morph.mesh == mesh:
            found.setdefault(morph.name, []).append(morph.parameter)
    return found

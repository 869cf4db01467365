"""Check the materials of a model by name: the game loads only names that it or a mod defines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ...core.messages import Fix, Message, Report, Text
from .. import document as doc
from ..known_names import without_suffix
from ..options import BLENDER_NAMES, GAME
from .material_names import MaterialNames, material_names

_DEFAULT_NAME = "Material"
"""Name of the material in Blender's start-up scene."""
_MOST_SUGGESTIONS = 20
"""Largest number of unknown names that are compared with all known ones; real models have at most 18 materials."""


def check_in_context(model: doc.Model, options: Mapping[str, Any], path: Path | None) -> list[Message]:
    """Return the names of materials that the game does not load.

    Parameters
    ----------
    options:
        Values of options, of which the folder of the game is used.
    path:
        Path of the model's file, which may be in the folder of a mod.
    """
    meshes = [mesh for node in model.nodes for mesh in node.meshes]
    shown = {mesh.material for mesh in meshes if len(mesh.indices)}
    names = dict.fromkeys(mesh.material for mesh in meshes)
    if not any(name.strip() for name in names):
        return []
    known = material_names(str(options.get(GAME.name, GAME.default)), path)
    found = Report([*known.warnings])
    suggestions = 0
    for name in names:
        # A model of a published mod has such a name on a mesh without triangles, and the game loads it.
        report = found.about(Text("Material '{}'", name))
        if _has_blender_name(name, report.error if name in shown else report.warning) or known.is_known(name):
            continue
        suggestions += 1
        _check_unknown(name, known, report, has_suggestion=suggestions <= _MOST_SUGGESTIONS)
    return found.messages


def _has_blender_name(name: str, report: Callable[..., None]) -> bool:
    """Report a name that Blender gave a material; return whether it is one."""
    plain, allowed = without_suffix(name), BLENDER_NAMES.name
    if plain == _DEFAULT_NAME:
        text = "Blender's default name makes the game fail; give it the name of one of the game's materials"
        report("blender-default-name", text, allowed_by=allowed, file_name=name)
    elif plain != name:
        text = "Blender's number suffix makes the game fail; rename it to '{}', or turn on Strip .001"
        fix = {"fix": Fix.STRIP_SUFFIX, "names": (name,), "new_name": plain}
        report("blender-name-suffix", text, plain, allowed_by=allowed, file_name=name, **fix)
    return plain != name or plain == _DEFAULT_NAME


def _check_unknown(name: str, known: MaterialNames, report: Report, *, has_suggestion: bool) -> None:
    """Warn about a name that is not known, unless the known names are incomplete and none is similar."""
    near = known.nearest(name) if has_suggestion else None
    if near is not None:
        template = "unknown material, perhaps '{}' is meant; the game does not load a model with unknown materials"
        if known.is_complete:
            template = "unknown material; nearest: '{}'. The game does not load a model with unknown materials"
        report.warning("unknown-material", template, near, fix=Fix.RENAME_MATERIAL, names=(name,), new_name=near)
    elif known.is_complete:
        report.warning("unknown-material", "unknown material; the game does not load a model with unknown materials")

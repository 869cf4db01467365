"""Check the materials of a model by name: the game loads only names that it or a mod defines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...core.findings import Finding, Fix, Severity, warning
from .. import document as doc
from ..known_names import without_suffix
from ..options import BLENDER_NAMES, GAME
from .material_names import MaterialNames, material_names

_DEFAULT_NAME = "Material"
"""Name of the material in Blender's start-up scene."""
_MOST_SUGGESTIONS = 20
"""Largest number of unknown names that are compared with all known ones; real models have at most 18 materials."""


def check_in_context(model: doc.Model, options: Mapping[str, Any], path: Path | None) -> list[Finding]:
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
    findings = [warning("", text) for text in known.warnings]
    suggestions = 0
    for name in names:
        # A model of a published mod has such a name on a mesh without triangles, and the game loads it.
        severity = Severity.ERROR if name in shown else Severity.WARNING
        finding = _check_blender_name(name, severity)
        if finding is None and not known.is_known(name):
            suggestions += 1
            finding = _check_unknown(name, known, has_suggestion=suggestions <= _MOST_SUGGESTIONS)
        findings += [finding] if finding is not None else []
    return findings


def _check_blender_name(name: str, severity: Severity) -> Finding | None:
    """Return an error for a name that Blender gave a material."""
    item, allowed = f"Material '{name}'", BLENDER_NAMES.name
    plain = without_suffix(name)
    if plain == _DEFAULT_NAME:
        message = "Blender's default name makes the game fail; give it the name of one of the game's materials"
        return Finding(severity, item, message, allowed_by=allowed, file_name=name)
    if plain != name:
        message = f"Blender's number suffix makes the game fail; rename it to '{plain}', or turn on Strip .001"
        found = Finding(severity, item, message, allowed_by=allowed, file_name=name)
        return replace(found, fix=Fix.STRIP_SUFFIX, names=(name,), new_name=plain)
    return None


def _check_unknown(name: str, known: MaterialNames, *, has_suggestion: bool) -> Finding | None:
    """Return a warning about a name that is not known, unless the known names are incomplete and none is similar."""
    item = f"Material '{name}'"
    near = known.nearest(name) if has_suggestion else None
    if near is None:
        message = "unknown material; the game does not load a model with unknown materials"
        return warning(item, message) if known.is_complete else None
    if known.is_complete:
        message = f"unknown material; nearest: '{near}'. The game does not load a model with unknown materials"
    else:
        message = f"unknown material, perhaps '{near}' is meant; the game does not load a model with unknown materials"
    return Finding(Severity.WARNING, item, message, fix=Fix.RENAME_MATERIAL, names=(name,), new_name=near)

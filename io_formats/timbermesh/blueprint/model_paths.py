"""The path by which a blueprint names a model file (docs/formats/timberborn_blueprints.md, section 6)."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path, PurePath

from ...core.errors import ExportError
from ...core.placement import ModelUse, Placement
from ...projects import Projects
from ..game_files import mod_folder
from .mod_files import ModFiles

_ENDING = ".timbermesh"


def model_path(file: Path, blueprint: Path, placement: Placement | None = None, mod: str = "") -> str:
    """Return the path below the mod's root, without the ending, by which a blueprint can name a model.

    Parameters
    ----------
    file:
        The model. It need not exist.
    placement:
        Placement that the blueprint has now. Its model paths determine the root of the mod. Without models, the root is
        the folder of the manifest above the blueprint, or else ``mod``.

    Raises
    ------
    ExportError
        The file is not below the mod's root, its ending is not ``.timbermesh`` in lower case, or the root is unknown.
    """
    whole = PurePath(os.path.realpath(file))
    if not whole.name.endswith(_ENDING):
        raise ExportError("The game only loads models whose names end in {}", _ENDING)
    roots = [*_roots_of(placement)] if placement is not None else []
    above = mod_folder(blueprint)
    roots += [Path(os.path.realpath(folder)) for folder in (above, mod) if folder]
    if not roots:
        raise ExportError("The folder of the mod is not known: no manifest.json above '{}'", blueprint.name)
    root = next((root for root in roots if whole.is_relative_to(root)), None)
    if root is None:
        raise ExportError("'{}' is not in the folder of the mod, '{}'", file.name, roots[0])
    path = whole.relative_to(root).as_posix().removesuffix(_ENDING)
    if whole.parent != root and os.path.isfile(whole):
        found = ModFiles(Projects(), mod).find(path + _ENDING, blueprint)
        if found is not None and not os.path.samefile(found, whole):
            raise ExportError("'{}' names another file: '{}'", path, found)
    return path


def _roots_of(placement: Placement) -> Iterator[Path]:
    """Yield the root folders of the models that a blueprint places, the most frequent root first."""
    found: Counter[str] = Counter()
    for node in placement.parts[0].nodes:
        if isinstance(node.content, ModelUse) and node.properties.get("Model"):
            file = PurePath(os.path.realpath(placement.models[node.content.model].file)).as_posix()
            ending = "/" + node.properties["Model"].replace("\\", "/") + _ENDING
            if file.lower().endswith(ending.lower()):
                found[file[: -len(ending)]] += 1
    return (Path(root) for root, _count in found.most_common())

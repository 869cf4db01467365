"""Files of a set: the levels and physics of the objects in the main file (page ``docs/formats/collada.md``, section 6).

The viewer compares the names of geometries up to their last ``_`` if they contain ``_LOD`` or ``_PHYS``; case counts.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ...core.messages import Report, Text, listed, of_kind
from ...core.scene import FloatArray
from ...geometry.transforms import Matrix
from ...passes.lod_names import LEVEL_SUFFIXES, PHYSICS_SUFFIX, parse
from ..models.faces import MOST_FACES
from ..options import LEVEL_LABELS
from .document import Collada, Geometry, Instance

DEFAULT_PHYSICS = "default_physics_shape"
"""Name of a geometry in the physics file that is used by all objects without a physics shape of their own."""

_CUT = re.compile(r"_(?:LOD|PHYS)")
_SUFFIX = re.compile(r"_(?:LOD[0-9]*|PHYS)\Z")
_BOX_TOLERANCE = 0.01
"""Largest difference of the boxes of two levels without a warning, as a share of the box."""


@dataclass(frozen=True, eq=False)
class Part:
    """An object in the main file or a partner file."""

    document: Collada
    """The file: the main one or a partner."""
    node: int
    instance: Instance

    @property
    def geometry(self) -> Geometry:
        return self.document.geometries[self.instance.geometry]

    @property
    def name(self) -> str:
        """Name of the node."""
        return self.document.nodes[self.node].name

    @property
    def world(self) -> Matrix:
        """(4, 4): transform of the node, to the space of its file."""
        return self.document.worlds[self.node]

    @property
    def symbols(self) -> set[str]:
        return {group.symbol for group in self.geometry.groups}


@dataclass
class Model:
    """An object of the main file with its levels and physics, or an object of a partner file without a match."""

    main: Part
    parts: dict[str, Part] = field(default_factory=dict)
    """The other levels and physics, by suffix; several models may share a physics shape."""


def join(document: Collada, partners: Mapping[str, Collada]) -> Collada:
    """Return the document of a set of files."""
    return replace(document, partners=dict(partners))


def models_of(document: Collada, report: Report) -> list[Model]:
    """Return the objects of a set of files, objects of the main file first; report parts that do not match."""
    models = _models_in(document, report)
    own = list(models)
    for suffix in (*LEVEL_SUFFIXES[1:], PHYSICS_SUFFIX):
        if suffix in document.partners:
            models += [Model(part) for part in _assign(own, suffix, _parts_of(document.partners[suffix]), report)]
    for model in own:
        _compare(model, report)
    return models


def cut_name(name: str) -> str:
    """Return the part of a geometry's name that the viewer compares."""
    plain = re.sub(r"\s", "_", name)
    return plain[: plain.rindex("_")] if _CUT.search(plain) else plain


def _parts_of(document: Collada) -> list[Part]:
    return [
        Part(document, number, instance) for number, node in enumerate(document.nodes) for instance in node.instances
    ]


def _models_in(document: Collada, report: Report) -> list[Model]:
    """Return the models of the main file. Objects named as a level or physics shape of a model become parts of it."""
    parts = _parts_of(document)
    named = {part.name: Model(part) for part in parts if not parse(part.name).is_part}
    models: list[Model] = []
    for part in parts:
        found = parse(part.name)
        owner = named.get(found.stem + found.number) if found.is_part else None
        suffix = PHYSICS_SUFFIX if found.is_physics else LEVEL_SUFFIXES[found.level or 0]
        if owner is None:
            models.append(named[part.name] if part.name in named and named[part.name].main is part else Model(part))
        elif owner.parts.setdefault(suffix, part) is not part:
            models.append(Model(part))
    cut = [name for model in models if _CUT.search(name := model.main.geometry.name) and not _SUFFIX.search(name)]
    if cut:
        names = list(dict.fromkeys(cut))
        template = "the viewer cuts these names at their last '_', since they contain '_LOD' or '_PHYS': {}"
        report.warning("name-cut-by-viewer", template, listed(names, 5))
    return models


def _assign(models: Sequence[Model], suffix: str, parts: Sequence[Part], report: Report) -> list[Part]:
    """Assign the objects of a partner file to the models; warn about and return those without a model."""
    free = [model for model in models if suffix not in model.parts]
    default = [part for part in parts if suffix == PHYSICS_SUFFIX and cut_name(part.geometry.name) == DEFAULT_PHYSICS]
    left = [part for part in parts if part not in default]
    left = _pair(free, left, suffix, lambda part: (cut_name(part.geometry.name), cut_name(part.name)))
    left = _pair(free, left, suffix, lambda part: (cut_name(part.geometry.name),))
    left = _pair(free, left, suffix, lambda part: (cut_name(part.name),))
    if len(left) == len(parts) and not any(len(part.symbols) > MOST_FACES for part in parts):
        left = _pair_in_order(free, left, suffix)
    for model in free if default else ():
        model.parts.setdefault(suffix, default[0])
    if left:
        template = "objects of its {} file without a match in the main file, imported as objects of their own: {}"
        label = "physics" if suffix == PHYSICS_SUFFIX else LEVEL_LABELS[LEVEL_SUFFIXES.index(suffix)].lower()
        names = listed([part.name for part in left], 5)
        report.warning("partner-object-without-match", template, Text(label), names)
    return left


def _pair(
    models: Iterable[Model], parts: Iterable[Part], suffix: str, key: Callable[[Part], tuple[str, ...]]
) -> list[Part]:
    """Pair models that lack this level with parts of equal key, in order; return the parts without a model."""
    waiting: dict[tuple[str, ...], list[Model]] = {}
    for model in models:
        if suffix not in model.parts:
            waiting.setdefault(key(model.main), []).append(model)
    left: list[Part] = []
    for part in parts:
        found = waiting.get(key(part))
        if found:
            found.pop(0).parts[suffix] = part
        else:
            left.append(part)
    return left


def _pair_in_order(models: Sequence[Model], parts: Sequence[Part], suffix: str) -> list[Part]:
    """Pair models and parts by the order of their names, ignoring case, as the viewer does if no name matches."""

    def ordered(parts: Iterable[Part]) -> list[Part]:
        return sorted(parts, key=lambda part: cut_name(part.geometry.name).lower())

    model_of = {model.main: model for model in models}
    sorted_parts = ordered(parts)
    for main, part in zip(ordered(model_of), sorted_parts, strict=False):
        model_of[main].parts[suffix] = part
    return sorted_parts[len(model_of) :]


def _compare(model: Model, report: Report) -> None:
    """Warn about levels that the viewer stretches, and about materials because of which it refuses the upload."""
    about = report.about(model.main.name)
    main = _box(model.main)
    stretched: list[str] = []
    materials: set[str] = set()
    for suffix, part in model.parts.items():
        box = _box(part)
        is_default = suffix == PHYSICS_SUFFIX and cut_name(part.geometry.name) == DEFAULT_PHYSICS
        is_alike = (part.instance.skin >= 0) == (model.main.instance.skin >= 0)
        if main is not None and box is not None and is_alike and not is_default:
            extent = float((main[1] - main[0]).max())
            if np.abs(box - main).max() > _BOX_TOLERANCE * extent:
                stretched.append(suffix.removeprefix("_"))
        if suffix != PHYSICS_SUFFIX:
            materials |= part.symbols - model.main.symbols
    if stretched:
        template = "the viewer stretches these to the box of the high level, which differs by more than 1 %: {}"
        about.warning("level-box-differs", template, listed(stretched, quote=""))
    if materials:
        template = "levels have materials that the high level lacks, so the viewer refuses the upload: {}"
        about.warning("level-material-not-in-high", template, listed(of_kind("material", sorted(materials)), 5))


def _box(part: Part) -> FloatArray | None:
    """Return the least and greatest coordinates of an object in its file, (2, 3), or None without vertices."""
    document, instance = part.document, part.instance
    points = part.geometry.positions
    if not len(points):
        return None
    matrix = document.skins[instance.skin].bind_shape if instance.skin >= 0 else document.meter * part.world[:3]
    placed = points @ matrix[:3, :3].T + matrix[:3, 3]
    return np.stack((placed.min(axis=0), placed.max(axis=0)))

"""The objects of each model, which are its levels of detail and physics shapes, and the nodes that they become.

The first rule that applies decides which objects belong to a model:

1. The finest object refers to its parts (``medium_level`` … ``physics_object``).
2. A part refers to its finest object (``lod_of``, ``shape_of``), as imported parts do.
3. Names: ``chair_LOD2``, ``chair_LOD1``, ``chair_LOD0`` and ``chair_PHYS`` belong to ``chair`` or ``chair_LOD3``. A
   number such as ``.001`` after the name only matters if several objects have the same name.

Deleted objects, which Blender keeps while other data refers to them, are ignored.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import bpy

from ....io_formats.core.errors import ExportError
from ....io_formats.core.messages import Message, Report, listed
from ....io_formats.core.scene import Mesh, Node, Role
from ....io_formats.passes import lod_names
from ...armature_modifiers import MESHABLE
from ...export_options import ExportOptions
from ...level_objects import LEVEL_PROPERTIES
from ...names import name_in_file
from ..object_selection import (
    Source,
    because,
    candidates_of,
    enabled_objects,
    label_of,
    loss,
    refusal_of,
    report_left_out,
    shown_by,
)

_POINTERS = (*((name, level) for level, name in enumerate(LEVEL_PROPERTIES) if name), ("physics_object", "physics"))


@dataclass
class ModelObjects:
    """The objects of one model."""

    finest: bpy.types.Object
    levels: dict[int, bpy.types.Object] = field(default_factory=dict)
    """The existing coarser levels: 1 (medium), 2 (low), 3 (lowest)."""
    physics: bpy.types.Object | None = None
    hulls: list[bpy.types.Object] = field(default_factory=list)
    base_hull: bpy.types.Object | None = None
    spare: list[bpy.types.Object] = field(default_factory=list)
    """Objects that refer to this model but are not used: another object has the level, or the level does not exist."""

    def parts(self) -> list[bpy.types.Object]:
        """Return all objects that are exported, the finest first."""
        others = (self.physics, *self.hulls, self.base_hull)
        return list(dict.fromkeys([self.finest, *self.levels.values(), *(obj for obj in others if obj)]))

    def _put(self, place: int | str, obj: bpy.types.Object) -> None:
        """Store a part as a level (a number), ``physics``, ``base_hull`` or ``hull``; it is spare if that is taken."""
        if isinstance(place, int):
            if 1 <= place < len(LEVEL_PROPERTIES) and self.levels.setdefault(place, obj) == obj:
                return
        elif place == "hull":
            self.hulls.append(obj)
            return
        elif getattr(self, place) in (None, obj):
            setattr(self, place, obj)
            return
        self.spare.append(obj)


@dataclass
class ModelNodes:
    """The nodes of one model: its levels of detail and physics shapes."""

    obj: bpy.types.Object
    finest: Node
    mesh: Mesh
    """The mesh of the finest node."""
    levels: dict[int, Node] = field(default_factory=dict)
    """The coarser levels, by their numbers 1 to 3."""
    physics: Node | None = None
    hulls: list[Node] = field(default_factory=list)
    base_hull: Node | None = None

    def add_level(self, level: int, mesh: Mesh, **fields: Any) -> None:
        """Add a coarser level of detail."""
        name = lod_names.of_level(self.finest.name, level)
        fields = {"name": name, "mesh": mesh, "lod": level, "skin": None, "to_object": None, **fields}
        self.levels[level] = replace(self.finest, **fields)

    def shape(self, name: str, mesh: Mesh, role: Role, **fields: Any) -> Node:
        """Return the node of a physics mesh or a hull."""
        fields = {"skeleton": None, "skin": None, "to_object": None, **fields}
        return replace(self.finest, name=name, mesh=mesh, role=role, **fields)

    def nodes(self, number: int) -> list[Node]:
        """Return all nodes, the finest first; ``number`` is the index of the finest in the scene."""
        coarser = [self.levels[level] for level in sorted(self.levels)]
        shapes = [node for node in (self.physics, *self.hulls, self.base_hull) if node is not None]
        for node in coarser:
            node.lod_of = number
        for node in shapes:
            node.shape_of = number
        return [self.finest, *coarser, *shapes]


class ModelIndex:
    """Assignment of objects to models (finest object, LODs, physics shapes).

    Panels create one on each redraw, so building it reads no mesh data.
    """

    def __init__(self, objects: Iterable[bpy.types.Object]) -> None:
        self._models: dict[bpy.types.Object, ModelObjects] = {}
        self._owner: dict[bpy.types.Object, bpy.types.Object] = {}
        self.astray: dict[bpy.types.Object, bpy.types.Object] = {}
        """Objects that refer to a finest object although they have parts themselves, each with that finest object."""
        objects = [obj for obj in dict.fromkeys(objects) if obj.type in MESHABLE]
        self._take_pointers(objects)
        self._take_references(objects)
        self._take_names(objects)

    @property
    def parts(self) -> Collection[bpy.types.Object]:
        """The objects that are a coarser level or physics shape of a finest object."""
        return self._owner.keys()

    def finest_of(self, obj: bpy.types.Object) -> bpy.types.Object:
        """Return the finest object of the model to which an object belongs; the object itself if it is not a part."""
        return self._owner.get(obj, obj)

    def model(self, finest: bpy.types.Object) -> ModelObjects:
        """Return the model of which an object is the finest."""
        return self._models.setdefault(finest, ModelObjects(finest))

    def _take(self, finest: bpy.types.Object, place: int | str, obj: bpy.types.Object) -> None:
        if obj != finest and obj in self._models:
            self.astray[obj] = finest
            return
        self.model(finest)._put(place, obj)
        if obj != finest:
            self._owner.setdefault(obj, finest)

    def _take_pointers(self, objects: Iterable[bpy.types.Object]) -> None:
        """Assign the parts named by the pointer properties of finest objects (LODs, physics shape).

        Objects that such a pointer refers to are processed last, since they are usually not finest objects.
        """
        pointers: dict[bpy.types.Object, list[tuple[int | str, bpy.types.Object]]] = {}
        for obj in objects:
            kept = obj.meshferry
            found = [(place, getattr(kept, name)) for name, place in _POINTERS]
            given = [(place, part) for place, part in found if part is not None and part.type in MESHABLE]
            given = [(place, part) for place, part in given if not is_deleted(part)]
            if given and not is_deleted(obj):
                pointers[obj] = given
        pointed = {part for owner, given in pointers.items() for _, part in given if part != owner}
        for obj in sorted(pointers, key=lambda obj: obj in pointed):
            if obj not in self._owner:
                for place, part in pointers[obj]:
                    self._take(obj, place, part)

    def _take_references(self, objects: Iterable[bpy.types.Object]) -> None:
        """Assign the parts that refer to their finest object, directly or through another part of it."""
        for obj in objects:
            finest = self._referred(obj)
            if obj in self._owner or finest is None:
                continue
            if finest == obj:
                direct = _reference(obj)
                if direct is not None and direct != obj and self.finest_of(direct) != obj:
                    self.astray[obj] = direct  # the references form a cycle
                continue
            kept = obj.meshferry
            place = {"PHYSICS": "physics", "HULL": "hull", "BASE_HULL": "base_hull"}.get(kept.role)
            self._take(finest, place or max(1, kept.lod), obj)

    def _referred(self, obj: bpy.types.Object) -> bpy.types.Object | None:
        """Return the finest object to which an object refers, directly or through parts.

        If the references form a cycle, return the object itself.
        """
        finest = _reference(obj)
        passed = {obj}
        while finest is not None and finest not in passed and finest not in self._owner:
            passed.add(finest)
            further = _reference(finest)
            if further is None or finest in self._models:
                break
            finest = further
        return self.finest_of(finest) if finest is not None else None

    def _take_names(self, objects: Iterable[bpy.types.Object]) -> None:
        """Assign the parts that are recognised only by their names."""
        free = [obj for obj in objects if obj not in self._owner]
        parsed = {obj: lod_names.parse(obj.name) for obj in free}
        parts = [obj for obj, name in parsed.items() if name.is_part and obj not in self._models]
        if not parts:
            return
        finer = [obj for obj in free if obj.meshferry.role == "RENDER" and not parsed[obj].is_part]
        by_name = {obj.name: obj for obj in finer}
        by_stem: dict[str, list[bpy.types.Object]] = {}
        by_number: dict[tuple[str, str], bpy.types.Object] = {}
        for obj in finer:
            by_stem.setdefault(parsed[obj].stem, []).append(obj)
            by_number.setdefault((parsed[obj].stem, parsed[obj].number), obj)
        for obj in sorted(parts, key=lambda obj: obj.name):
            name = parsed[obj]
            finest = by_number.get((name.stem, name.number)) or (None if name.number else by_name.get(name.stem))
            alike = by_stem.get(name.stem, [])
            if finest is None and len(alike) == 1:
                finest = alike[0]
            if finest is not None:
                self._take(finest, "physics" if name.is_physics else int(name.level or 0), obj)


def _compare_names(given: Sequence[str], report: Report) -> None:
    """Refuse a second highest level of a model, and report names that are only similar to those of levels."""
    known = set(given)
    for name in given:
        base, meant = lod_names.without_suffix(name), lod_names.meant_name(name)
        if lod_names.parse(name).level == 0 and base in known:
            text = (
                "'{}' and '{}' are both the highest level of one model; rename one: levels end in _LOD2, _LOD1, _LOD0"
            )
            raise ExportError(text, base, name)
        if meant and lod_names.without_suffix(meant) in known:
            text = "exported as an object of its own; if it is a level or shape of '{}', call it '{}'"
            report.change("name-like-level", text, lod_names.without_suffix(meant), meant, item=listed([name]))


def is_deleted(obj: bpy.types.Object) -> bool:
    """Return whether an object is in no collection: the user deleted it, but other data still refers to it."""
    return not obj.users_collection


def named_levels(objects: Iterable[bpy.types.Object], *, with_made: bool) -> dict[str, bpy.types.Object]:
    """Return the objects of coarser levels by their names in files.

    With ``with_made``, levels that an export generates are included; the finest object represents them.
    """
    objects = [obj for obj in objects if obj.type in MESHABLE]
    index = ModelIndex(objects)
    found: dict[str, bpy.types.Object] = {}
    for obj in objects:
        if index.finest_of(obj) == obj:
            levels = index.model(obj).levels
            for level in range(1, len(LEVEL_PROPERTIES)):
                if level in levels or with_made:
                    found.setdefault(lod_names.of_level(name_in_file(obj), level), levels.get(level, obj))
    return found


def linked_duplicates(finest: bpy.types.Object, part: bpy.types.Object) -> list[bpy.types.Object]:
    """Return the objects that share the data of a finest object and refer to the same part, including itself."""
    pointers = [name for name, _place in _POINTERS]
    return [
        obj
        for obj in bpy.data.objects
        if obj.data == finest.data and any(getattr(obj.meshferry, name) == part for name in pointers)
    ]


def _reference(obj: bpy.types.Object) -> bpy.types.Object | None:
    """Return the object that an object refers to as its finest one."""
    kept = obj.meshferry
    found: bpy.types.Object | None = kept.lod_of if kept.role == "RENDER" else kept.shape_of
    return found if found is not None and found.type in MESHABLE and not is_deleted(found) else None


def find_models(
    context: bpy.types.Context, source: Source, options: ExportOptions, report: Report | None = None
) -> list[ModelObjects]:
    """Choose the models of an export and put them in order; report the objects that are left out.

    Levels of detail and physics shapes are exported with their finest object, even if they are hidden, disabled in
    viewports or in an excluded collection. Selecting one of them selects its model.

    The model of the active object comes first. The others are sorted by name, ignoring case. With Keep as Imported,
    models have the order of their collection, which is that of the file.

    Raises
    ------
    ExportError
        No model is left.
    """
    enabled = set(enabled_objects(context.view_layer.layer_collection))
    candidates = candidates_of(context, source)
    index = ModelIndex([*context.scene.objects, *candidates])
    chosen: dict[bpy.types.Object, None] = {}
    report = report or Report()
    left_out: dict[Message, list[str]] = {}
    names_model = source.kind in {"SELECTION", "OBJECTS"}
    given = set(candidates)
    shown = set(shown_by(candidates))  # the originals of instances are left out without a warning
    for candidate in candidates:
        finest = index.finest_of(candidate) if candidate.type in MESHABLE else candidate
        if finest not in given and not names_model:
            refusal = loss("parts-left-out", "part of '{}', which is not exported", finest.name)
            left_out.setdefault(refusal, []).append(candidate.name)
            continue
        if finest in given and finest != candidate:
            continue  # coarser levels are exported with their finest object
        if finest.type in MESHABLE and finest.meshferry.role != "RENDER":
            refusal = loss("shapes-without-object", "a physics shape of no object, left out")
            left_out.setdefault(refusal, []).append(finest.name)
            continue
        reason = refusal_of(context, finest, enabled, use_hidden=options.use_hidden, with_empties=False)
        if reason is None:
            chosen[finest] = None
        elif reason and finest not in shown:
            left_out.setdefault(reason, []).append(finest.name)
    report_left_out(left_out, source, report, is_all=not chosen)
    if not chosen:
        raise ExportError("There is nothing to export in {}{}", label_of(source), because(report.messages))
    ordered = list(chosen)
    if not options.use_as_imported:
        active = context.view_layer.objects.active
        root = index.finest_of(active) if active is not None else None
        ordered.sort(key=lambda obj: (obj != root, obj.name.casefold(), obj.name))
    models = [index.model(obj) for obj in ordered]
    _report_parts(models, index, options, report)
    return models


def _report_parts(models: Sequence[ModelObjects], index: ModelIndex, options: ExportOptions, report: Report) -> None:
    """Report levels and shapes that are left out, or exported as separate objects despite their names or properties.

    Raises
    ------
    ExportError
        Two objects are the highest level of one model by their names.
    """
    finest = [model.finest for model in models]
    if not options.use_as_imported:
        _compare_names([obj.name for obj in finest], report)
    for obj in finest:
        if obj in index.astray:
            text = "cannot be a level or shape of '{}' and have such itself; exported as an object of its own"
            report.loss("part-with-parts", text, index.astray[obj].name, item=listed([obj.name]))
    lone = [obj.name for obj in finest if lod_names.parse(obj.name).is_part]
    if lone and not options.use_as_imported:
        report.loss(
            "part-without-object",
            "named like a level of detail or a physics shape, but what it belongs to is not there; exported as an "
            "object of its own",
            item=listed(lone),
        )
    for model in models:
        if model.spare:
            text = "the place of its level or shape of '{}' is taken or does not exist, left out"
            report.loss("part-left-out", text, model.finest.name, item=listed([obj.name for obj in model.spare]))

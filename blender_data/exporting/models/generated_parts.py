"""Generate levels of detail and physics shapes for which a model has no object."""

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import bpy
import numpy as np

from ....io_formats.core.messages import Report, Text, counted, joined, listed
from ....io_formats.core.scene import Mesh, Node, Role
from ....io_formats.passes import lod_names
from ...export_options import ExportOptions
from ...steps import Step, Steps, scaled
from .generated_lods import has_open_borders, make_level
from .model_objects import ModelNodes, ModelObjects
from .physics_hulls import box, convex_hull, hulls_of_parts

_LEVEL_SHARES = (0.0, 0.0, 0.6, 0.8)
"""Progress of a model at the start of each generated level, by the index of the level; measured with a million
triangles."""

_LEAST_TRIANGLES = 12
"""Smallest number of triangles to which a level is reduced: that of a box, since fewer hardly form a solid."""

_TOLERATED_EXCESS = 1.1
"""Ratio of the triangles of a generated level to the requested number above which it is reported."""

_MOST_NAMED = 3
"""Largest number of models with generated parts that a message names."""

_MOST_PARTS = 256
"""Largest number of loose parts that each get a hull; a mesh with more parts gets one hull around all."""


class PartGenerator:
    """Generates the levels and physics shapes that models lack, according to the options of an export."""

    def __init__(self, options: ExportOptions, report: Report) -> None:
        self.options = options
        self.report = report
        self._firsts: dict[Hashable, ModelNodes] = {}
        """The first model of each content; models with equal content have the same key. Models read from Blender share
        equal meshes."""
        self._copies: Counter[str] = Counter()
        """Number of further models with the same content, by the name of the first."""
        self._made_levels: list[tuple[str, Text]] = []
        """Names of the models with generated levels, each with a text about the numbers of triangles."""
        self._made_shapes: list[tuple[str, Text]] = []
        """Names of the models with a generated physics shape, each with a description of the shape."""
        self._too_many_parts: list[str] = []

    def generate(self, models: Sequence[ModelNodes]) -> Steps[None]:
        """Generate the missing levels and shapes of models, and report them."""
        total = max(1, sum(model.mesh.triangle_count for model in models))
        done = 0
        for model in models:
            start, done = done, done + model.mesh.triangle_count
            first = self._firsts.setdefault(self._content(model), model)
            if first is not model:
                _copy_parts(first, model)
                self._copies[first.finest.name] += 1
                continue
            # A level takes time in proportion to its source triangles; shapes take about as long as the coarsest level.
            yield from scaled(self._generate(model), start / total, done / total, model.finest.name)
        if self._made_levels:
            text = "Levels of detail made of the next finer one: {}"
            self.report.note("levels-made", text, self._listed(self._made_levels))
        if self._made_shapes:
            self.report.note("shapes-made", "Physics shapes made: {}", self._listed(self._made_shapes))
        if self._too_many_parts:
            text = "more than {} loose parts, so one hull was made around all of them"
            names = listed(self._too_many_parts, len(self._too_many_parts))
            self.report.change("too-many-loose-parts", text, _MOST_PARTS, item=names)

    def _content(self, model: ModelNodes) -> Hashable:
        """Return a key that is equal for models that get the same generated parts; rigged models are never equal."""
        meshes = [(node.role, node.lod, node.is_base_hull, id(node.mesh)) for node in model.nodes(0)]
        own_shape = str(model.obj.meshferry.physics_shape)
        return (*meshes, own_shape, id(model) if model.finest.skeleton is not None else None)

    def _generate(self, model: ModelNodes) -> Steps[None]:
        """Generate the missing levels and shapes of a model."""
        if self.options.missing_levels == "MAKE":
            yield from self._make_levels(model)
        yield Step("Making physics shapes", 0.9)
        self._make_shapes(model)
        if model.base_hull is None:
            model.base_hull = self._shape(model, convex_hull(self._base_points(model)), "base hull")
            model.base_hull.is_base_hull = True

    def _listed(self, made: Sequence[tuple[str, Text]]) -> Text:
        """Return a text that names the first models, with the number of equal ones, and counts the further models."""
        named = []
        for name, what in made[:_MOST_NAMED]:
            times = Text(" × {:,}", 1 + self._copies[name]) if self._copies[name] else Text("")
            named.append(Text("'{}'{} ({})", name, times, what))
        more = sum(1 + self._copies[name] for name, _what in made[_MOST_NAMED:])
        return Text("{} and {:,} more", joined(named), more) if more else joined(named)

    # -- levels ---------------------------------------------------------------------------------

    def _make_levels(self, model: ModelNodes) -> Steps[None]:
        """Generate each missing level from the next finer one, so that it never has more triangles than that."""
        most = model.mesh.triangle_count
        keeps_borders = self.options.use_open_borders
        finer = model.mesh
        counts = []
        floor = 0
        for level, ratio in enumerate(self.options.level_ratios, 1):
            given = model.levels.get(level)
            if given is not None and given.mesh is not None:
                finer = given.mesh
                continue
            wanted = max(ratio * most, _LEAST_TRIANGLES)
            if wanted < finer.triangle_count:
                yield Step("Making levels of detail", _LEVEL_SHARES[level])
                finer = make_level(finer, wanted / finer.triangle_count, keep_borders=keeps_borders)
                if keeps_borders and finer.triangle_count > _TOLERATED_EXCESS * wanted and has_open_borders(finer):
                    floor = finer.triangle_count
            model.add_level(level, finer, generated_from=model.obj.name)
            counts.append(f"{finer.triangle_count:,}")
        if floor:
            name = model.obj.name
            self.report.note(
                "open-borders-kept",
                "Keep Open Borders costs triangles: made levels keep {:,} at least; turn it off for levels with fewer",
                floor,
                item=Text("Object '{}'", name),
                names=(name,),
            )
        if counts:
            made = Text("{:,} → {} triangles", most, joined(counts))
            self._made_levels.append((model.finest.name, made))

    # -- shapes ---------------------------------------------------------------------------------

    def _make_shapes(self, model: ModelNodes) -> None:
        """Replace the physics mesh and the hulls of a model as its physics choice asks."""
        choice = physics_choice(model.obj, model, self.options.physics_shape)
        if choice == "AUTO":
            return  # AUTO: use existing objects, or else the base hull
        if choice == "MESH":
            self._make_triangles(model)
            return
        if choice == "HULL":
            model.physics, model.hulls = None, []
            return
        points = _used_points(model.mesh)
        if choice == "CUBE":
            found, what = [box(points)], Text("cube")
        else:
            parted = model.physics.mesh if model.physics is not None and model.physics.mesh else model.mesh
            found = hulls_of_parts(parted)
            if len(found) > _MOST_PARTS:
                self._too_many_parts.append(model.finest.name)
                found = [convex_hull(_used_points(parted))]
            what = counted(len(found), "hull")
        model.physics = None
        model.hulls = [self._shape(model, mesh, f"hull {number + 1}") for number, mesh in enumerate(found)]
        model.base_hull = None
        self._made_shapes.append((model.finest.name, what))

    def _make_triangles(self, model: ModelNodes) -> None:
        """Drop the hulls.

        If there is no physics object, make a physics mesh from the first mesh of :func:`_collision_meshes`.
        """
        mesh = next(_collision_meshes(model), None)
        if mesh is not None and (model.physics is None or mesh is not model.physics.mesh):
            mesh = replace(mesh, joint_indices=None, joint_weights=None)
            model.physics = self._shape(model, mesh, "physics", Role.PHYSICS)
            self._made_shapes.append((model.finest.name, counted(mesh.triangle_count, "triangle")))
        model.hulls = []
        model.base_hull = None

    def _base_points(self, model: ModelNodes) -> Any:
        """Return the points for the base hull: of hulls, else of the first mesh of :func:`_collision_meshes`."""
        if model.hulls:
            return np.concatenate([hull.mesh.points for hull in model.hulls if hull.mesh is not None])
        mesh = next(_collision_meshes(model), None)
        return model.mesh.points if mesh is None else _used_points(mesh)

    def _shape(self, model: ModelNodes, mesh: Mesh, what: str, role: Role = Role.HULL) -> Node:
        return model.shape(f"{model.finest.name} {what}", mesh, role, generated_from=model.obj.name)


def physics_choice(obj: bpy.types.Object, model: ModelNodes | ModelObjects, choice: str) -> str:
    """Return the kind of a model's physics shape: its own setting, existing objects, or the export's option.

    Parameters
    ----------
    obj:
        The finest object of the model.
    choice:
        Value of the export's option.
    """
    own = str(obj.meshferry.physics_shape)
    if own != "DEFAULT":
        return own
    if choice != "HULL" and (model.hulls or (model.physics is not None and choice != "PARTS")):
        return "AUTO"
    return choice


def shape_of(model: ModelObjects, options: ExportOptions) -> str:
    """Return the result of :func:`physics_choice` for the objects of a model; AUTO with Keep as Imported."""
    if options.use_as_imported:
        return "AUTO"
    return physics_choice(model.finest, model, options.physics_shape)


def has_physics_shape(model: ModelObjects, options: ExportOptions) -> bool:
    """Return whether an export gives a model a physics shape other than the convex hull around it."""
    kind = shape_of(model, options)
    return model.physics is not None or bool(model.hulls) if kind == "AUTO" else kind != "HULL"


def _collision_meshes(model: ModelNodes) -> Iterator[Mesh]:
    """Yield the meshes that can serve for collisions, in order of preference: physics, low, medium, finest.

    Meshes without triangles are skipped. So are generated levels, since parts of them may have vanished.
    """
    for node in (model.physics, *(model.levels.get(level) for level in (2, 1)), model.finest):
        if node is not None and node.mesh is not None and not node.generated_from and node.mesh.triangle_count:
            yield node.mesh


def _copy_parts(source: ModelNodes, model: ModelNodes) -> None:
    """Copy generated parts to a model from another one with the same content."""

    def own(node: Node, name: str) -> Node:
        place = replace(node, name=name, translation=model.finest.translation, rotation=model.finest.rotation)
        return replace(place, scale=model.finest.scale, generated_from=model.obj.name)

    name = model.finest.name
    for level, node in source.levels.items():
        if node.generated_from:
            model.levels[level] = own(node, lod_names.of_level(name, level))
    if source.physics is None or source.physics.generated_from:
        model.physics = source.physics and own(source.physics, f"{name} physics")
    if not source.hulls or source.hulls[0].generated_from:
        model.hulls = [own(hull, f"{name} hull {number}") for number, hull in enumerate(source.hulls, 1)]
    if source.base_hull is not None and source.base_hull.generated_from:
        model.base_hull = own(source.base_hull, f"{name} base hull")


def _used_points(mesh: Mesh) -> Any:
    """Return the points of a mesh that triangles use."""
    return mesh.points[np.unique(mesh.corner_point)] if len(mesh.corner_point) else mesh.points

"""Models of a placement. Each model is read once, and all nodes that refer to it share its mesh data."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import bpy

from ....io_formats.core.addon_files import SourceFile
from ....io_formats.core.errors import FormatError
from ....io_formats.core.messages import Message, Text, counted, distinct, listed, of_kind
from ....io_formats.core.placement import ModelUse, PlacedModel
from ....io_formats.core.scene import Scene
from ....io_formats.passes.placements import shown_slots, with_shown_slots
from ... import image_decoding, import_marks, names
from ...mesh_data import checksums
from ...steps import Steps, finish, scaled, without_bpy
from .. import meshes, nodes
from ..import_context import ImportContext
from ..import_options import ImportOptions, ImportRequest
from . import addon_models
from .node_objects import lock

_NAMED = 5
_UNPLACED = "!Unplaced"
"""Name of the objects of templates and of new copies, which sorts before nearly all others.

Blender searches its sorted objects from the end for the location of a renamed one.
"""

SlotNames = tuple[str, ...]


@dataclass
class Template:
    """The objects of a model, with the surfaces that a node shows.

    Before any of them is changed, all copies for further nodes have to be made, since copies inherit parent, level of
    detail and materials.
    """

    objects: list[bpy.types.Object]
    """Parents before their children."""
    materials: SlotNames
    """Names of the materials in the slots of the mesh; empty if the model has a tree of nodes, which keep their own
    materials."""
    triangles: int = 0
    nodes: tuple[tuple[str, int], ...] = ()
    """For each object of a model with a tree: name of its node, and index of its parent (-1 for none)."""
    is_placed: bool = False
    """Whether the objects themselves have been put at a node, so that further nodes get copies."""

    def copy(self, keep: Callable[[bpy.types.ID], Any]) -> list[bpy.types.Object]:
        """Return the objects, and after the first call copies that share their data; ``keep`` is called with each."""
        if not self.is_placed:
            self.is_placed = True
            return self.objects
        if len(self.objects) == 1:
            return [keep(self.objects[0].copy())]
        copies = {made: keep(made.copy()) for made in self.objects}
        for copy in copies.values():
            copy.parent = copies.get(copy.parent)
            for modifier in copy.modifiers:
                if modifier.type == "ARMATURE":
                    modifier.object = copies.get(modifier.object)
        return list(copies.values())

    def hang(self, parent: bpy.types.Object, keep: Callable[[bpy.types.ID], Any]) -> list[bpy.types.Object]:
        """Parent the objects to the object of a node, and return them; after the first call, copies are used.

        Using the objects themselves first saves time, since copying and naming objects takes most of an import.
        """
        made = [keep(obj.copy()) for obj in self.objects] if self.is_placed else self.objects
        key = import_marks.node_of(parent)
        parent.meshferry.model_parts = len(made)
        for obj, (name, above) in zip(made, self.nodes, strict=True):
            names.remember(obj, name)
            if above < 0:
                obj.parent = parent
                obj.meshferry.given_parent_key = key
            elif self.is_placed:
                obj.parent = made[above]
        self.is_placed = True
        return made


@dataclass
class Stand:
    """A model at a node, with the materials that the node assigns to its surfaces."""

    template: Template
    materials: SlotNames
    is_hidden: bool = False
    """Whether none of the surfaces are shown. In this case the template has all of them."""
    slots: str = ""
    """For each material slot, the index of its surface in ``ModelUse.slots``, or -1, as a JSON list."""
    identities: str = ""
    """Identifiers of the materials in the slots, as stored on objects; computed for the first node."""
    is_tree: bool = False
    """Whether the model's objects are children of the node's object."""


class ModelBuilder:
    """Creates the models of an import."""

    def __init__(self, job: ImportContext) -> None:
        self.job = job
        self.stands: dict[ModelUse, Stand] = {}
        self.actions = 0
        self._templates: list[Template] = []
        self._unknown: list[str] = []
        self._broken: list[Text] = []
        self._failed: dict[SourceFile, Text] = {}
        """Reasons why source files could not be imported."""
        self._from_sources: dict[str, SourceFile] = {}
        """Source file of each model that was made from one, by the identifier of the model."""
        self._warnings: list[Message] = []

    def build(self, model: PlacedModel, uses: Iterable[ModelUse]) -> Steps[None]:
        """Read a model, and create a template for each set of surfaces that nodes show; a damaged model is reported."""
        try:
            if model.source is not None and not (yield from self._import_source(model.source)):
                return
            scene = yield from _read(model)
        except FormatError as problem:
            self._broken.append(problem.sentence())
            return
        self._warn(model, scene.warnings)
        if model.is_tree:
            template = yield from scaled(self._tree(scene, model), 0.5, 1.0)
            self.stands.update(dict.fromkeys(uses, Stand(template, (), is_tree=True)))
            return
        templates: dict[tuple[int, ...], Template] = {}
        for use in uses:
            shown = shown_slots(scene, use)
            unknown = (f"{model.name}: {name}" for name in shown.unknown)
            self._unknown += [name for name in dict.fromkeys(unknown) if name not in self._unknown]
            if shown.kept not in templates:
                part = with_shown_slots(scene, shown)
                templates[shown.kept] = yield from scaled(self._template(part, model, shown.materials), 0.5, 1.0)
                self._mark(model, templates[shown.kept])
            slots = json.dumps([shown.places.get(slot, -1) for slot in shown.kept])
            self.stands[use] = Stand(templates[shown.kept], shown.materials, shown.is_hidden, slots)

    def _warn(self, model: PlacedModel, messages: Sequence[Message]) -> None:
        for message in distinct(messages):
            item = Text("{}: {}", model.name, message.item) if message.item else model.name
            self._warnings.append(replace(message, item=item))

    def _import_source(self, source: SourceFile) -> Steps[bool]:
        """Import a source file, unless that was tried before; return whether it succeeded."""
        if source not in self._failed:
            try:
                yield from scaled(addon_models.import_steps(self.job.request.context, source), 0.0, 0.5)
            except FormatError as problem:
                self._failed[source] = problem.sentence(with_file=False)
            else:
                return True
        return False

    def _mark(self, model: PlacedModel, template: Template) -> None:
        """Store on the mesh data of a template that it was made from a source file."""
        if model.source is not None:
            self._from_sources[model.identity] = model.source
            for made in template.objects:
                if made.type == "MESH":
                    made.data.meshferry.source_file = str(model.source.path)
                    made.data.meshferry.source_identity = model.identity

    def report(self) -> None:
        """Report damaged models, the first warnings about others, and surfaces that nodes refer to but models lack."""
        report = self.job.report
        report.messages += self._warnings[:_NAMED]
        if len(self._warnings) > _NAMED:
            number = counted(len(self._warnings) - _NAMED, "further warning")
            report.loss("further-warnings", "{} about meshes not shown", number)
        text = "{} cannot be read; an empty stands for each: {}"
        report.loss_of("unreadable-meshes", text, self._broken, "mesh", "meshes", most=_NAMED)
        for problem in dict.fromkeys(self._failed.values()):
            files = [source.name for source, found in self._failed.items() if found == problem]
            number, first = counted(len(files), "source file"), listed(of_kind("file", files), _NAMED)
            text = "{} cannot be imported; an empty stands for each mesh: {}: {}"
            report.loss("unreadable-source", text, number, first, problem)
        if self._from_sources:
            number, files = counted(len(self._from_sources), "mesh", "meshes"), {*self._from_sources.values()}
            text = "{} missing in the project; made from {} instead"
            report.change("meshes-from-sources", text, number, counted(len(files), "source file"))
        text = "{} named by nodes but not in their meshes: {}"
        report.loss_of("unknown-surfaces", text, of_kind("layer", self._unknown), "surface", most=_NAMED)

    def _template(self, scene: Scene, model: PlacedModel, materials: SlotNames) -> Steps[Template]:
        """Create the objects of a model, which are copied for each node."""
        objects, triangles = yield from self._objects(scene, model)
        for obj in objects:
            obj.name = _UNPLACED  # keeps the names of nodes free
        self._templates.append(Template(objects, materials, triangles))
        return self._templates[-1]

    def _tree(self, scene: Scene, model: PlacedModel) -> Steps[Template]:
        """Create the objects of a model that keeps its tree of nodes, with locks and marks that all copies get."""
        objects, triangles = yield from self._objects(scene, model)
        nodes = [(names.name_in_file(obj), objects.index(obj.parent) if obj.parent else -1) for obj in objects]
        for obj, (name, above) in zip(objects, nodes, strict=True):
            lock(obj)
            obj.show_name = False  # if the model is at many nodes, names would cover the view
            import_marks.prepare_part(obj, f"{nodes[above][0] if above >= 0 else ''}/{name}")
        return Template(objects, (), triangles, tuple(nodes))

    def _objects(self, scene: Scene, model: PlacedModel) -> Steps[tuple[list[bpy.types.Object], int]]:
        """Create the objects of a model; return them and the number of triangles."""
        part = self.job.of_model(scene, model.file, keeps_rate=bool(self.actions))
        self.actions += yield from nodes.build_scene(part)
        self._warn(model, part.report.messages)
        objects = [*part.armatures, *part.objects]
        for obj in objects:
            obj.rotation_mode = "QUATERNION"
            checksums.store_fingerprint(obj)
        return objects, sum(meshes.triangle_count(obj.data) for obj in part.objects if obj.type == "MESH")

    def remove_templates(self) -> None:
        """Remove the objects of templates that no node uses, and their data."""
        unused = [template for template in self._templates if not template.is_placed]
        objects = [made for template in unused for made in template.objects]
        data = dict.fromkeys(made.data for made in objects if made.data is not None)
        if objects:  # Blender searches all node trees for each removed object
            self.job.discard(objects)
            self.job.discard([block for block in data if not block.users])


def _read(model: PlacedModel) -> Steps[Scene]:
    """Read a model, whose picture is decoded before and discarded afterwards."""
    picture = model.picture
    try:
        if picture is not None:
            picture.pixels = image_decoding.decode(picture.content(), picture.name)
        scene: Scene = yield from without_bpy("Reading models", model.read)
    finally:
        if picture is not None:
            picture.pixels = None
    return scene


def add_model(
    context: bpy.types.Context, parent: bpy.types.Object, model: PlacedModel, rotation_mode: str, options: ImportOptions
) -> tuple[bpy.types.Object, list[Message]]:
    """Create an empty with a model below an object, in its collections; return the empty and warnings.

    Raises
    ------
    FormatError
        The model cannot be read. Nothing is added then.
    """
    model.read()  # the builder only reports problems
    job = ImportContext(ImportRequest(context, Scene(model.name), options, model.file))
    models, use = ModelBuilder(job), ModelUse(0)
    try:
        finish(models.build(model, [use]))
        models.report()
        if use not in models.stands:
            raise FormatError("The model cannot be read", file=model.file)
        made: bpy.types.Object = job.keep(bpy.data.objects.new(names.fit(model.name), None))
        made.empty_display_size = 0.25
        made.rotation_mode, made.parent = rotation_mode, parent
        below = models.stands[use].template.hang(made, job.keep)
        for obj in below:
            import_marks.mark_part(obj, parent.meshferry.import_id)
        objects = [made, *below]
        models.remove_templates()
    except BaseException:
        job.undo()
        raise
    for home in parent.users_collection:
        for obj in objects:
            home.objects.link(obj)
    return made, job.report.messages

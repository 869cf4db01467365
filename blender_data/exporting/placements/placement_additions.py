"""Objects made in Blender in an imported file that places models: their nodes, and the files of their meshes."""

import os
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import bpy

from ....io_formats.api import LoadedFile
from ....io_formats.core.errors import ExportError
from ....io_formats.core.format import OutputFile
from ....io_formats.core.messages import Message, Report, counted, distinct, listed, of_kind
from ....io_formats.core.placement import ADDED, KnownFiles, ModelUse, NewNode, NodeEdit, PlacedNode
from ....io_formats.core.scene import Scene
from ....io_formats.projects import Projects
from ...export_options import ExportOptions, ExportRequest
from ...file_records import digest_of, digest_of_content, is_own
from ...mesh_data import surfaces
from ...property_groups.ledger import Ledger
from ...steps import Steps, without_bpy
from ..left_out import report_left_out
from ..node_plan import is_own_mesh
from ..object_selection import Source, enabled_objects
from ..reading.rest_meshes import RestMeshes
from .placement_export import PlacedPart, PlacementExport
from .placement_models import Instance, PlacedModels
from .placement_objects import PlacedObjects

_MOST_NAMES = 5


@dataclass
class Additions:
    """What an export adds to an imported file, and to the files that earlier exports made beside it."""

    edits: list[NodeEdit] = field(default_factory=list)
    """New nodes, below the root; the comparison with their objects moves them."""
    keys: dict[bpy.types.Object, str] = field(default_factory=dict)
    """Keys of the new nodes."""
    surfaces: dict[bpy.types.Object, Sequence[tuple[str, str]]] = field(default_factory=dict)
    """Surfaces of the objects that have a node already, as in :class:`.NewNode`."""
    files: list[OutputFile] = field(default_factory=list)
    """Files that are new or get other content."""
    messages: list[Message] = field(default_factory=list)

    def all_edits(self, edits: Iterable[NodeEdit]) -> list[NodeEdit]:
        """Return an edit for each new node, and further edits of other nodes."""
        new = {edit.key: replace(edit, key=f"{ADDED}{edit.key}", content="") for edit in self.edits}
        return [*new.values(), *(edit for edit in edits if edit.key not in new)]


def made_files(path: Path, ledger: Ledger) -> dict[str, str]:
    """Return the names of the files that exports made beside a file, by path."""
    return {os.path.realpath(path.parent / name): name for name in ledger.made}


def additions(
    objects: PlacedObjects, loaded: LoadedFile, target: Path, projects: Projects, ledger: Ledger
) -> Steps[Additions]:
    """Encode the meshes that were made in Blender; return what changes.

    An object keeps its node if that shows its mesh. Otherwise, for example if it no longer shares a mesh or has further
    surfaces, it gets a new node. Files that belong to another target than this one are left to that.

    Raises
    ------
    ExportError
        A mesh cannot be written, or a file exists that no export made, or that was changed since.
    """
    found, folder = Additions(), target.parent
    belongs = {name: folder / name for name in ledger.made if name.startswith(f"{target.stem}/")}
    belongs = belongs if folder == loaded.path.parent else {}
    own = {name for name, place in belongs.items() if digest_of(place) == ledger.made[name] and is_own(place)}
    enabled = set(enabled_objects(bpy.context.view_layer.layer_collection))
    depsgraph = bpy.context.evaluated_depsgraph_get()
    made = {obj: file for obj, file in objects.made.items() if file in own and obj in enabled}
    others = [obj for obj, file in objects.made.items() if file not in belongs]
    wanted = [*made, *(obj for obj in (*others, *objects.new_meshes) if obj in enabled)]
    chosen = [obj for obj in wanted if len(obj.evaluated_get(depsgraph).data.polygons)]
    empty = [obj.name for obj in made if obj not in chosen]
    text = "{} without faces now, so the file keeps the old mesh: {}"
    Report(found.messages).loss_of("mesh-without-faces", text, empty, most=_MOST_NAMES)
    if chosen:
        source = Source("OBJECTS", objects=tuple(chosen))
        capabilities = replace(loaded.format.capabilities, bakes_materials=False)  # neither a check nor a save bakes
        options, name = ExportOptions(use_hidden=True), objects.collection.name
        export = _NewNodesExport(ExportRequest(bpy.context, source, options, name, capabilities))
        scene = yield from export.steps()
        part = export.parts[0]
        report_left_out(chosen, options, capabilities, scene.report, has_clips=bool(scene.clips))
        known = KnownFiles(own, _used_files(objects, folder), _files_of_models(made, part, scene, objects))
        arguments = (loaded.document, scene, target, projects, known, {*ledger.removed, *objects.nodes})
        new = yield from without_bpy("Encoding", loaded.format.new_nodes, *arguments)
        found.files = _changed_files(new.outputs, folder, own)
        for obj, number in part.node_of.items():
            use = part.nodes[number].content
            if isinstance(use, ModelUse):
                node, is_same_file = new.nodes[number], made.get(obj) == new.models[use.model]
                if is_same_file and _is_kept(objects.nodes[objects.key(obj)], node):
                    found.surfaces[obj] = node.surfaces
                else:
                    found.keys[obj], root = node.key, objects.part.only_root
                    found.edits.append(NodeEdit(node.key, obj.name, parent=root, content=node.text))
        if found.files or found.edits:
            found.messages += distinct([*new.messages])
    changed = of_kind("file", sorted(belongs.keys() & {*objects.made.values()} - own))
    text = "{} changed by another program since an export made it, or made on another machine; not replaced: {}"
    Report(found.messages).loss_of("made-file-changed", text, changed, "file", most=_MOST_NAMES)
    return found


class _NewNodesExport(PlacementExport):
    """An export of objects as nodes without parents, with world matrices."""

    def __init__(self, request: ExportRequest) -> None:
        super().__init__(request)
        self.hidden.clear()  # the comparison with the objects hides nodes

    def steps(self) -> Steps[Scene]:
        """Read the scene in steps."""
        scene = yield from super().steps()
        for node in self.parts[0].nodes:  # parents come before their children
            if node.parent >= 0:
                node.matrix, node.parent = self.parts[0].nodes[node.parent].matrix @ node.matrix, -1
        return scene

    def _instances(
        self, _models: PlacedModels, objects: Sequence[bpy.types.Object], meshes: RestMeshes
    ) -> list[Instance]:
        """Report objects that show instances, which have no nodes."""
        instances = (one for one in meshes.reader.depsgraph.object_instances if one.is_instance and one.parent)
        owners = {one.parent.original for one in instances if not is_own_mesh(one)}
        names = sorted(obj.name for obj in owners.intersection(objects))
        text = "{} with instances, which are not written; realize them: {}"
        self.report.loss_of("instances-not-written", text, names, most=_MOST_NAMES)
        return []


def _used_files(objects: PlacedObjects, folder: Path) -> set[str]:
    """Return the files of the models that nodes show, as far as they are in a folder or below it."""
    real = Path(os.path.realpath(folder))
    paths = (Path(os.path.realpath(file)) for file in objects.model_files)
    return {path.relative_to(real).as_posix() for path in paths if path.is_relative_to(real)}


def _files_of_models(
    made: Mapping[bpy.types.Object, str], part: PlacedPart, scene: Scene, objects: PlacedObjects
) -> dict[int, str]:
    """Return the file of each model that an export made before. A file gets the model of its first object.

    Surfaces without a material, which have the name of the object, get their name in the file. Imports give them a
    material with this name.
    """
    found: dict[int, str] = {}
    unknown = {"", *(material.name for material in scene.materials if not material.identity)}
    for obj, file in made.items():
        use = part.nodes[part.node_of[obj]].content if obj in part.node_of else None
        if isinstance(use, ModelUse) and file not in found.values() and use.model not in found:
            found[use.model] = file
            mesh = scene.placement.models[use.model].read().nodes[0].mesh
            slots, written = objects.nodes[objects.key(obj)].content.slots, surfaces.written(obj)
            if len(slots) == len(written) == len(mesh.surfaces):
                for number, (slot, entry) in enumerate(zip(slots, written, strict=True)):
                    name = mesh.materials[number]
                    if slot.material is None and name in unknown & {"", slot.name}:
                        mesh.materials[number] = ""
                        if not entry.has_own_name:
                            mesh.surfaces[number].name = slot.name
    return found


def _is_kept(known: PlacedNode, new: NewNode) -> bool:
    """Return whether a node in the file can show a mesh that is written again: its kind and surfaces are the same."""
    slots = known.content.slots if isinstance(known.content, ModelUse) else ()
    had = sorted((slot.name, bool(slot.material)) for slot in slots)
    return known.kind == new.kind and had == sorted((name, bool(identity)) for name, identity in new.surfaces)


def _changed_files(outputs: Iterable[OutputFile], folder: Path, own: Container[str]) -> list[OutputFile]:
    """Return the files whose content differs from that on disk.

    Raises
    ------
    ExportError
        A file exists that may not be replaced.
    """
    found = [output for output in outputs if digest_of(folder / output.name) != digest_of_content(output.data)]
    refused = [output.name for output in found if output.name not in own and os.path.lexists(folder / output.name)]
    if refused:
        template = "{} in {} not made by an export of this file, or changed since; rename or remove: {}"
        names = listed(of_kind("file", refused), _MOST_NAMES)
        raise ExportError(template, counted(len(refused), "file"), folder, names)
    return found

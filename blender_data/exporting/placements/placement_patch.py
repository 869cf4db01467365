"""Write changes of an imported collection back into the file that places its models; all other bytes stay unchanged."""

import contextlib
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import bpy

from ....io_formats import registry
from ....io_formats.api import LoadedFile, load, scene_of
from ....io_formats.core.errors import ExportError, MeshferryError
from ....io_formats.core.format import Format, OutputFile
from ....io_formats.core.messages import Kind, Message, Named, Report, Text, counted, listed
from ....io_formats.core.placement import NodeEdit, Patched, PlacedObject, Placement, PlacementPart, edit_texts
from ....io_formats.core.scene import Scene
from ....io_formats.passes.placement_changes import node_edits
from ....io_formats.projects import Projects
from ... import file_records, import_marks
from ...file_records import FileRecord, digest_of_content, written_digest
from ...property_groups.ledger import Ledger, ledger_of
from ...steps import Steps, without_bpy
from .placement_additions import Additions, additions, made_files
from .placement_objects import PlacedObjects


@dataclass
class PlannedPatch:
    """Verified changes of a file that are ready to be written."""

    record: FileRecord
    data: bytes
    """Bytes of the file before the changes."""
    patched: Patched
    edits: Sequence[NodeEdit]
    messages: list[Message]
    objects: PlacedObjects
    unshown: set[str]
    """Keys of nodes in the changed file that have no object in Blender."""
    gone: set[str]
    """Keys of the nodes that the changed file no longer has."""
    refusal_of: Callable[[Path], Text | None]
    """Function that returns the reason why a file must not be written, or None."""
    ledger: Ledger
    """The ledger of the file before the changes."""
    removed: dict[str, str]
    """Texts of the nodes that exports removed, as in the ledger, after the changes."""
    files: Sequence[OutputFile]
    """Files beside the changed one that are new or get other content."""
    projects: Projects

    def lines(self) -> list[Text]:
        """Return a text for each kind of change, and one for the files."""
        files = [Named("file", file.name) for file in self.files]
        return [*edit_texts(self.edits), *([Text("Files beside it: {}", listed(files, _MOST_FILES))] if files else [])]

    def is_changed(self) -> bool:
        """Return whether there are changes to write."""
        return bool(self.edits or self.files)

    def notes(self) -> list[Message]:
        """Return the texts of :meth:`lines` as messages."""
        report = Report()
        for line in self.lines():
            report.note("scene-change", line.template, *line.values)
        return report.messages

    def write(self, to: Path | None = None, *, use_blend: bool = True) -> None:
        """Replace the file, and store on the objects that the file contains their state.

        Parameters
        ----------
        to:
            Another path for the changed file. Later changes of the collection go there.
        use_blend:
            Whether data blocks may be changed. Otherwise nothing is stored on the objects.

        Raises
        ------
        ExportError
            The file was changed meanwhile, or cannot be written; or the objects must store keys of added nodes, and
            data blocks may not be changed.
        """
        path, collection = to or self.record.path, self.objects.collection
        is_copy = path != self.record.path
        if not (self.is_changed() or is_copy):
            return
        if not use_blend and (self.patched.keys or self.gone or any(edit.content for edit in self.edits)):
            raise ExportError(
                "Objects were added or removed: choose Re-export, which also stores this in the .blend file"
            )
        reason = self.refusal_of(path)
        if reason is not None:
            raise ExportError(reason)
        if not is_copy and file_records.digest_of(path) != digest_of_content(self.data):
            raise ExportError("The file was changed meanwhile; nothing was written")
        file_records.write_files(path, [*self.files, OutputFile(path.name, self.patched.data)])
        self.projects.expire()
        digest = file_records.session_files()[str(path)].digest
        if not use_blend:
            replace(self.ledger, digest=digest).keep_for(collection)
            return
        file_records.write([collection], replace(self.record, path=path, digest=digest), is_confirmed=True)
        stored = self.objects.agree(self.patched.keys, self.gone)
        collection.meshferry.unshown_nodes = json.dumps(sorted(self.unshown))
        kept = self.ledger.made if path.parent == self.record.path.parent else {}
        made = {**kept, **{file.name: digest_of_content(file.data) for file in self.files}}
        Ledger(digest, digest, dict(self.ledger.marks), self.removed, made).keep_for(collection, stored)


def plan_patch(collection: bpy.types.Collection, projects: Projects, target: Path | None = None) -> Steps[PlannedPatch]:
    """Compare an imported collection with its file on disk; return the changes, whose result has been verified.

    Parameters
    ----------
    target:
        Path to which the changes will be written, beside which meshes made in Blender become files, if the format
        allows it. None if the export must not make files.

    Raises
    ------
    MeshferryError
        The file is not the one that this collection was imported from or last written to, or cannot be changed.
    """
    record = file_records.read(collection)
    if record is None:
        raise ExportError("The collection '{}' was not imported from a file", collection.name)
    loaded = yield from without_bpy("Reading", load, record.path)
    refuse_other_content(collection, record, loaded.data)
    report = Report()
    original, digest = loaded.data, digest_of_content(loaded.data)
    ledger = _ledger_for(collection, record, digest)
    options = import_marks.stored_options(collection)
    scene = yield from without_bpy("Reading", scene_of, loaded, options, projects=projects)
    restored = _restored(collection, _placement_of(scene).parts[0], ledger)
    if restored:
        loaded, scene = yield from _with_edits(loaded, restored, options, projects)
    files = made_files(record.path, ledger) if loaded.format.adds_models else None
    objects = PlacedObjects(collection, _placement_of(scene), report, ledger, made_files=files)
    added = Additions()
    if target is not None and files is not None:
        added = yield from additions(objects, loaded, target, projects, ledger)
    if added.edits:
        loaded, scene = yield from _with_edits(loaded, added.edits, options, projects)
    if added.keys or added.surfaces:
        report = Report()
        choices = {"made_files": files, "added": added.keys, "surfaces": added.surfaces}
        objects = PlacedObjects(collection, _placement_of(scene), report, ledger, **choices)
    elif objects.made and target is None:
        _report_made(objects.made, report)
    report.messages.extend(added.messages)
    part = objects.part
    back = {edit.key for edit in restored}
    for placed in objects.placed:
        if placed.key in back or record.digest != digest:  # an export on save stores nothing on objects
            placed.given_parent = None
    unshown = set(json.loads(collection.meshferry.unshown_nodes or "[]"))
    edits = node_edits(scene, part, objects.placed, report, unshown)
    _report_others(collection, scene, report)
    patched = yield from without_bpy("Encoding", _patched, loaded.format, loaded.data, edits, report, ledger.removed)
    gone: set[str] = set()
    removed = {key: text for key, text in ledger.removed.items() if key not in objects.nodes}
    if edits:
        again = replace(loaded, document=loaded.format.read(patched.data))
        shown = yield from without_bpy("Comparing", scene_of, again, options, projects=projects)
        now = _placement_of(shown).parts[0]
        gone = {node.key for node in part.nodes} - {node.key for node in now.nodes}
        unshown |= _copied_below(now, {*patched.keys.values()})
        unshown -= {one.key for one in _refuse_differences(shown, objects, patched, unshown)}
        removed |= {key: patched.removed.get(key, "") for key in gone}
        removed = {key: text for key, text in removed.items() if key not in patched.keys.values()}
    refusal_of = partial(loaded.format.patch_refusal, options=options)
    edits, messages = [*restored, *added.all_edits(edits)], [*report.messages, *patched.messages]
    changes = (edits, messages, objects, unshown, gone, refusal_of, ledger, removed, added.files)
    return PlannedPatch(record, original, patched, *changes, projects)


_MOST_FILES = 20


def _ledger_for(collection: bpy.types.Collection, record: FileRecord, digest: str) -> Ledger:
    """Return the ledger of a file with a digest. Of another version of the file, only the files beside it count."""
    ledger = ledger_of(collection) or Ledger()
    return ledger if ledger.applies_to(collection, digest) else Ledger(agreed=record.digest, made=ledger.made)


def _report_made(made: Collection[bpy.types.Object], report: Report) -> None:
    """Report objects whose meshes an export on save leaves as they are in their files."""
    names = [obj.name for obj in made]
    text = "{} made in Blender, whose mesh only Re-export writes: {}"
    report.note("made-mesh-kept", text, counted(len(names), "object"), listed(names, 5))


def _restored(collection: bpy.types.Collection, part: PlacementPart, ledger: Ledger) -> list[NodeEdit]:
    """Return the edits that put back nodes that exports removed, and whose objects are there again."""
    present = {node.key for node in part.nodes}
    found: dict[str, NodeEdit] = {}
    for obj in import_marks.objects_of(collection) if ledger.removed else ():
        key, above = obj.meshferry.node_key, obj.meshferry.given_parent_key
        if key not in present and ledger.removed.get(key) and any(obj.users_scene):
            parent = above if above in present else part.only_root
            found[key] = NodeEdit(key, obj.name, parent=parent, content=ledger.removed[key])
    return list(found.values())


def unedited_places(
    collection: bpy.types.Collection, projects: Projects
) -> Steps[tuple[dict[bpy.types.Object, bool], dict[bpy.types.Object, bool]]]:
    """Return the objects whose places an export would leave in the file as they are, and those with made files.

    The first have the value True if they or their parents have a mesh with an applied transform, which is part of the
    file's place; the others if an export would leave their files and materials as they are.

    Raises
    ------
    MeshferryError
        The file cannot be read, or the collection cannot be exported to it.
    """
    record = file_records.read(collection)
    if record is None or not registry.by_name(record.format).is_patched:
        return {}, {}
    loaded = yield from without_bpy("Reading", load, record.path)
    options = import_marks.stored_options(collection)
    scene = yield from without_bpy("Reading", scene_of, loaded, options, projects=projects)
    ledger, added = ledger_of(collection) or Ledger(), Additions()
    files = made_files(record.path, ledger)
    objects = PlacedObjects(collection, _placement_of(scene), Report(), made_files=files)
    if objects.made:
        with contextlib.suppress(MeshferryError):  # what cannot be encoded differs
            added = yield from additions(objects, loaded, record.path, projects, ledger)
        choices = {"made_files": files, "surfaces": added.surfaces}
        objects = PlacedObjects(collection, _placement_of(scene), Report(), **choices)
    for placed in objects.placed:
        placed.given_parent = None
    edits = node_edits(scene, objects.part, objects.placed, Report())
    moved = {edit.key for edit in edits if edit.parent is not None or edit.matrix is not None}
    other = {edit.key for edit in edits if edit.materials}
    names = {file.name for file in added.files}
    same = {obj for obj in added.surfaces if objects.made[obj] not in names and objects.key(obj) not in other}
    unedited = objects.of_nodes({placed.key for placed in objects.placed} - moved)
    return unedited, {obj: obj in same for obj in objects.made}


def _patched(
    target: Format, data: bytes, edits: Sequence[NodeEdit], report: Report, reserved: Collection[str] = ()
) -> Patched:
    """Return the changed file.

    If the format writes all changes or none, the error lists all changes that cannot be written.
    """
    if not target.is_patched_whole:
        return target.patch(data, edits, reserved)
    refused = [message for message in report.messages if message.kind is Kind.LOSS]
    try:
        patched = target.patch(data, edits, reserved)
    except ExportError as problem:
        if not problem.findings:
            raise
        refused += problem.findings
    if refused:
        raise ExportError.of(*refused)
    return patched


def _copied_below(part: PlacementPart, keys: Collection[str]) -> set[str]:
    """Return the keys of all nodes below some nodes."""
    below: list[bool] = []
    for node in part.nodes:
        above = node.parent
        below.append(above >= 0 and (below[above] or part.nodes[above].key in keys))
    return {node.key for node, is_below in zip(part.nodes, below, strict=True) if is_below and node.key}


def imported_from(scene: bpy.types.Scene, path: Path, names: Sequence[str] = ()) -> bpy.types.Collection:
    """Return the only collection of a scene that was imported from a file.

    If ``names`` are given, it must have one of them.

    Raises
    ------
    ExportError
        There is no such collection, or several.
    """
    found = imports_of(scene, path, names)
    if len(found) != 1:
        raise ExportError("{} collections were imported from {}; changes go back from exactly one", len(found), path)
    return found[0]


def imports_of(scene: bpy.types.Scene, path: Path, names: Sequence[str] = ()) -> list[bpy.types.Collection]:
    """Return the collections of a scene that were imported from a file.

    If ``names`` are given, only collections with one of these names are returned.
    """
    found = []
    for collection in scene.collection.children_recursive:
        record = file_records.read(collection)
        is_named = not names or collection.name in names
        # collections whose record has options were exported to a new file
        is_import = record is not None and record.options is None
        if is_import and is_named and record.path.resolve() == path.resolve():
            found.append(collection)
    return found


def refuse_other_content(collection: bpy.types.Collection, record: FileRecord, data: bytes) -> None:
    """Raise ExportError unless this collection was imported from, or last written to, a file with this content.

    Another import of the same file may have changed the file since. *Undo* reverts the stored digest, but not the file.
    """
    ledger = ledger_of(collection)
    known = {record.digest, ledger.digest if ledger is not None else "", written_digest(record.path)}
    if digest_of_content(data) not in known:
        raise ExportError(
            "The file was changed since '{}' was imported from it or written to it; choose Reload from File first",
            collection.name,
        )


def _with_edits(
    loaded: LoadedFile, edits: Sequence[NodeEdit], options: Mapping[str, Any], projects: Projects
) -> Steps[tuple[LoadedFile, Scene]]:
    """Return a file with edits that add nodes before the comparison, and its scene."""
    content = (yield from without_bpy("Encoding", _patched, loaded.format, loaded.data, edits, Report())).data
    loaded = replace(loaded, data=content, document=loaded.format.read(content))
    return loaded, (yield from without_bpy("Reading", scene_of, loaded, options, projects=projects))


def _placement_of(scene: Scene) -> Placement:
    if scene.placement is None:
        raise ExportError("The file places no models any more")
    return scene.placement


def _refuse_differences(
    scene: Scene, objects: PlacedObjects, patched: Patched, unshown: Collection[str]
) -> list[PlacedObject]:
    """Raise ExportError if the changed file would look different from Blender; return the objects with their keys."""
    placed = [copy(one) for one in objects.placed]
    objects.update(placed, patched.keys)
    left = node_edits(scene, _placement_of(scene).parts[0], placed, Report(), unshown)
    if left:
        text = listed([edit.title for edit in left], 3)
        raise ExportError("The changed file would not be what Blender shows, so nothing was written: {}", text)
    return placed


def _report_others(collection: bpy.types.Collection, scene: Scene, report: Report) -> None:
    """Report changes of objects that belong to other files, to which this file refers."""
    homes = {home.meshferry.source_path: home for home in bpy.data.collections if home.meshferry.import_id}
    for part in scene.placement.parts[1:] if scene.placement is not None else ():
        home = homes.get(part.file)
        if home is None or home == collection or not any(node.key for node in part.nodes):
            continue
        objects = PlacedObjects(home, _placement_of(scene), Report(), part=part)
        edits = node_edits(scene, part, objects.placed, Report())
        if edits:
            text = "Changes that belong to {} are written by Re-export of the collection '{}': {}"
            titles = listed([edit.title for edit in edits], 5)
            report.loss("belongs-to-other-file", text, Path(part.file).name, home.name, titles)

"""Reload from File: replace the data of an imported collection, or the imported actions of an armature."""

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import bpy

from ...blender_data import file_records, import_marks
from ...blender_data.animated_blocks import action_holders
from ...blender_data.animation.action_ranges import same_path
from ...blender_data.armature_modifiers import armature_of
from ...blender_data.file_records import digest_of
from ...blender_data.import_marks import objects_of
from ...blender_data.importing.import_options import ImportOptions
from ...blender_data.mesh_data.checksums import edited_actions, edits_of
from ...blender_data.operator_calls import Selection
from ...blender_data.property_groups.ledger import key_of, ledger_of, move
from ...blender_data.steps import Steps, finish, scaled
from ...io_formats.api import format_of
from ...io_formats.core.errors import MeshferryError
from ...io_formats.core.messages import Named, Report, Text, counted, joined, listed, of_kind
from ...io_formats.partner_files import FileSet, file_set
from ...io_formats.registry import by_name, find
from ..layouts import Sidebar, path_property, requires
from ..option_properties import chosen_options
from ..progress import DIALOG_WIDTH, LongWork
from ..registration import MenuEntry
from ..reports import Messages, conclude, refuse
from ..selection import leave_edit_mode
from ..sidebar import draw_wrapped, import_homes_of
from ..translations import iface_, rpt_
from . import export_on_save, reexport
from .import_base import PARTNERS, import_file, summary_parts
from .reload_comparison import Comparison, compare_steps
from .session_projects import session_projects

if TYPE_CHECKING:
    from ...blender_data.reloading.reload import ReloadReport

MOST_OBJECTS, MOST_EDITS = 8, 6
"""Numbers of objects, and of edits of each, that the confirmation dialog lists."""


@dataclass
class ReloadSource:
    """What can be reloaded: a collection with the file that it was imported from, or the actions of an armature."""

    path: str
    collection: Any
    armature: Any = None

    def objects(self) -> list[Any]:
        """Return the imported objects of the collection, or the armature."""
        return [self.armature] if self.collection is None else objects_of(self.collection)


class IMPORT_SCENE_OT_meshferry_reload(LongWork, bpy.types.Operator):
    """Replace imported data by the current content of its file."""

    bl_idname = "import_scene.meshferry_reload"
    bl_label = "Reload from File"
    bl_description = (
        "Replace meshes, bones and animations of the active object's collection by the current content of the file "
        "that it was imported from. Objects keep names, placement, modifiers, constraints and materials"
    )
    bl_options = {"UNDO"}

    confirm_text = "Reload"
    reloading: "Reload | None" = None
    """The reload that was compared for the question; nothing changes the scene while the dialog is open."""

    filepath: path_property(
        "File Path",
        "File to read in place of the one that was imported; empty: the same file",
        "FILE_PATH",
        {"HIDDEN", "SKIP_SAVE"},
    )

    poll = requires(
        (
            lambda context: find_source(context) is not None,
            "Neither the active object nor its collection came from a file that can be reloaded",
        )
    )

    def invoke(self, context: bpy.types.Context, event: Any) -> set[str]:
        """Start without a file browser, unless the file was moved."""
        source = find_source(context)
        if not (self.filepath or file_records.unasked_paths([source.path]) or Path(source.path).exists()):
            self.filepath = source.path
            context.window_manager.fileselect_add(self)
            return {"RUNNING_MODAL"}
        return self.execute(context)

    def stored_paths(self, context: bpy.types.Context) -> list[Any]:
        """Return the paths of the files of the collection and of all actions, and the values of their options."""
        source = find_source(context)
        if source is None:
            return []
        holders = {*source.objects(), *map(armature_of, source.objects())} - {None}
        owners = [action for holder in holders for action in action_files(holder).values()]
        paths = [*([] if self.filepath else [source.path]), *(action.meshferry.source_path for action in owners)]
        owners += [source.collection] if source.collection is not None else []
        return [*paths, *(value for owner in owners for value in import_marks.stored_options(owner).values())]

    def question(self, context: bpy.types.Context) -> str:
        """Return the edits that would be replaced, a line for each object; an empty string without any."""
        source = find_source(context)
        if source is None:
            return ""
        path = self._path(source)
        self.reloading = reloading = Reload(context, source, path)
        if not reloading.edits:
            return ""
        if not file_records.unasked_paths(self.stored_paths(context)):
            finish(reloading.compare())
        lines = reloading.lost_edits()
        if not lines:
            return ""
        more = len(lines) - MOST_OBJECTS
        title = Text("The content of {} replaces these edits:", Path(path).name)
        digests = {"", digest_of(Path(path))} if reloading.is_compared else set()
        if digests and any(noted.digest not in digests for noted in reloading.ledgers.values()):
            title = Text("{} was changed since the last export, and its content replaces these edits:", Path(path).name)
        rest = [Text("and {} more", more)] if more > 0 else []
        return "\n".join(rpt_(line) for line in (title, *lines[:MOST_OBJECTS], *rest))

    def draw(self, context: bpy.types.Context) -> None:
        """Draw the edits that would be replaced."""
        column = self.layout.column(align=True)
        for number, line in enumerate(self.asked.splitlines()):
            draw_wrapped(column, context, line, "BLANK1" if number else "QUESTION", width=DIALOG_WIDTH)

    def steps(self, context: bpy.types.Context) -> Steps[set[str]]:
        """Import the file again, then transfer the new data to the old objects."""
        messages = Messages()
        parts: tuple[str, ...] = ()
        source = find_source(context)
        if source is None:  # the user selected something else while the file browser was open
            return refuse(self, "Neither the active object nor its collection came from a file that can be reloaded")
        before = Selection(context)
        leave_edit_mode(context)
        try:
            path = self._path(source)
            with messages.outcome(path) as name:
                reloading = self.reloading or Reload(context, source, path)
                parts = yield from reloading.steps(self.asked)
                messages.warn(name, reloading.report.messages)
        finally:
            before.restore()
        return conclude(self, messages, parts, "Reloaded")

    def _path(self, source: ReloadSource) -> str:
        return bpy.path.abspath(self.filepath) if self.filepath else source.path


class Reload:
    """One reload: new imports beside the old objects, then the replacement."""

    def __init__(self, context: bpy.types.Context, source: ReloadSource, path: str) -> None:
        from ...blender_data.reloading.placement_update import homes_of

        self.context = context
        self.source = source
        self.path = path
        self.report = Report()
        self.results: list[Any] = []
        self.pairs: dict[Any, Any] = {}
        self.stand_ins: list[Any] = []
        collection = source.collection
        self.is_placed = collection is not None and places_models(collection)
        self.homes = homes_of(collection) if self.is_placed else [collection] if collection is not None else []
        """The collection, and those of the files that its file refers to."""
        self.ledgers = {home: noted for home in self.homes if (noted := ledger_of(home)) is not None}
        for home, noted in self.ledgers.items():
            noted.settle(home)
        self.objects = source.objects()
        self.edits = replaced_edits(self.objects)
        self.is_compared = False
        self.comparison = Comparison()
        self.unchanged: list[Any] = []
        """New objects whose old ones stay as they are."""
        self.conflicts: list[Any] = []
        """Objects that stay, though their nodes changed."""
        self.unedited: dict[Any, bool] = {}
        """Objects of placements whose places stay; see ``unedited_places``."""
        self.made: list[Any] = []
        """Objects with files that exports made, which an export would leave as they are."""

    def compare(self) -> Steps[None]:
        """Compare the file with what an export would write into it, if anything was edited or exported."""
        from ...blender_data.exporting.placements.placement_patch import unedited_places
        from ...blender_data.reloading.agreement import is_baked
        from ...blender_data.reloading.edits import is_edited

        if self.is_compared or not Path(self.path).exists():
            return
        self.is_compared = True
        is_needed = bool(self.ledgers or self.edits) or is_edited(self.source.collection, self.objects)
        if is_needed:
            self.comparison = yield from compare_steps(self.context, self.path, self.objects)
        for home in self.homes if self.is_placed else ():
            if is_needed or is_edited(home, objects_of(home)):
                can = by_name(home.meshferry.file_format).capabilities
                with contextlib.suppress(MeshferryError):
                    unedited, made = yield from unedited_places(home, session_projects())
                    self.unedited |= unedited
                    self.made += [obj for obj, is_same in made.items() if is_same]
                    others = [obj for obj, is_same in made.items() if not is_same]
                    self.conflicts += [obj for obj in others if is_baked(obj, can) or armature_of(obj) is not None]

    def lost_edits(self) -> list[Text]:
        """Return a text for each object with edits that the reload replaces."""
        stay = {*self.made, *self.conflicts}
        return [*replaced_edits(obj for obj in self.comparison.changed(self.objects) if obj not in stay).values()]

    def steps(self, asked: str) -> Steps[tuple[str, ...]]:
        """Import the files and replace the old data; return the phrases of the summary. Errors and Esc undo all.

        The edits in a question that the user answered are not reported again.
        """
        try:
            yield from scaled(self.compare(), 0.0, 0.2)
            if self.source.collection is not None and not self.comparison.is_whole():
                yield from scaled(self._import_collection(), 0.2, 0.6)
            yield from scaled(self._import_actions(), 0.6, 1.0)
        except BaseException:
            for result in reversed(self.results):
                result.undo()
            bpy.data.batch_remove(self.stand_ins)
            raise
        if not self.results:
            bpy.data.batch_remove(self.stand_ins)
            self.comparison.agree(())
            return (Text("nothing changed"),)
        parts = summary_parts(self.results)
        found = self._replace()
        for text in (text for obj, text in self.edits.items() if obj not in found.unchanged):
            if rpt_(text) not in asked:
                self.report.note("edits-replaced", "Edits replaced by the file: {}", text)
        if found.missing:
            names = listed(of_kind("object", found.missing), 5)
            self.report.loss("object-gone-from-file", "Not in the file any more, but kept: {}", names)
        if found.linked:
            self.report.loss("data-is-linked", "Not changed, since their data is linked: {}", listed(found.linked, 5))
        if found.added:
            return (*parts, Text("{} ({})", counted(len(found.added), "addition"), listed(found.added, 5)))
        return parts

    def _replace(self) -> "ReloadReport":
        """Replace the old data, and note in the ledgers what the file has now."""
        from ...blender_data.reloading.placement_update import replace_placed
        from ...blender_data.reloading.reload import replace_data

        collection = self.source.collection
        if self.conflicts:
            self.report.loss(
                "reload-conflict",
                "Changed in the file, but kept, since the file holds the result of their modifiers, constraints, "
                "instances, text, joining or separating: {}; apply it and reload, or import the file anew",
                listed([obj.name for obj in self.conflicts], 5),
            )
        if self.is_placed:
            kept = [*self.conflicts, *self.made]
            return replace_placed(self.context, collection, self.results[0], self.unedited, kept)
        keys = {home: key_of(home) for home in self.ledgers}
        kept = [self.pairs[new] for new in self.unchanged]
        paths = {self.path: self.source.path}
        home = None if self.comparison.is_whole() else collection
        found = replace_data(self.context, home, self.pairs, self.results, paths, self.unchanged)
        for owner, key in keys.items():
            move(key, owner, kept)
        self.comparison.agree([obj for obj in kept if obj not in self.conflicts])
        return found

    def _import_collection(self) -> Steps[None]:
        """Import the file of the collection again, with new armatures."""
        from ...blender_data.reloading.agreement import conflicts
        from ...blender_data.reloading.matching import pair, pair_by_name, pair_unchanged

        collection, objects = self.source.collection, self.objects
        refuse_other_format(self.path, collection)
        options = import_marks.stored_options(collection)
        others = [rig for rig in dict.fromkeys(map(armature_of, objects)) if rig is not None and rig not in objects]
        stand_in = self._stand_in_for(others[0]) if others and not self.is_placed else None
        result = yield from self._import(self.path, options, stand_in)
        if self.is_placed:
            return
        same = self.comparison.unchanged or ()
        inside = [*dict.fromkeys([*objects, *import_marks.objects_in(collection)])]
        known = pair_unchanged(inside, result.objects, same)
        self.pairs.update(pair(objects, result.objects, dict(known)))
        self.unchanged = [*known, *(made for made in self.pairs if made.type == "ARMATURE" and "" in same)]
        record = file_records.read(collection)
        was_exported = record is not None and record.options is not None
        pair_by_name([obj for obj in inside if was_exported or obj.meshferry.given_space], result.objects, self.pairs)
        rest = {new: old for new, old in self.pairs.items() if new not in self.unchanged}
        can = by_name(collection.meshferry.file_format).capabilities
        found = conflicts(rest, can, was_exported=was_exported)
        self.conflicts = [self.pairs[made] for made in found]
        self.unchanged += found
        if record is not None and same_path(str(record.path), self.source.path):
            new = file_records.read(result.collection)
            record = replace(record, path=new.path, digest=new.digest)
            file_records.write([collection], record)

    def _import_actions(self) -> Steps[None]:
        """Import the files of further actions of the armatures."""
        armatures = dict.fromkeys(obj for obj in self.objects if obj.type == "ARMATURE")
        armatures |= {old: new for new, old in self.pairs.items() if old.type == "ARMATURE"}
        for old, armature in armatures.items():
            new = armature
            for path, action in action_files(old).items():
                is_read = self.source.collection is not None or self.comparison.is_whole()
                if is_read and same_path(path, self.source.path):
                    continue
                used = self.path if same_path(path, self.source.path) else path
                if not Path(used).exists():
                    name = Named("animation", action.name)
                    self.report.loss("action-not-reloaded", "'{}' was not reloaded: {} does not exist", name, path)
                    continue
                if new is None or new in self.unchanged:
                    new = self._stand_in_for(old)
                yield from self._import(used, import_marks.stored_options(action), new)

    def _import(self, path: str, options: dict[str, Any], armature: Any) -> Steps[Any]:
        """Import a file again with its stored options; ``armature`` is the armature that its joints are matched to."""
        general = chosen_options(ImportOptions, options)
        stored = options.get(PARTNERS)
        partners = {part: Path(path).with_name(name) for part, name in stored.items()} if stored else None
        files = file_set(path, options) if partners is None else FileSet(Path(path), partners)
        mode = general.armature if armature is not None or general.armature == "NONE" else "NEW"
        general = general.with_values(armature=mode, use_file_frame_rate=False)
        result = yield from import_file(self.context, files, options, general, armature=armature)
        self.results.append(result)
        self.report.messages += result.warnings
        return result

    def _stand_in_for(self, armature: Any) -> Any:
        """Return a copy of an armature object without animation, which the import may change."""
        stand_in = armature.copy()
        stand_in.animation_data_clear()
        self.stand_ins.append(stand_in)
        self.pairs[stand_in] = armature
        return stand_in


def find_source(context: bpy.types.Context) -> Any:
    """Return what to reload for the collection in the properties editor, or for the active object.

    Return None if neither was imported; the operator is then disabled.
    """
    obj = context.object
    space = getattr(context, "space_data", None)
    if space is not None and space.type == "PROPERTIES" and space.context == "COLLECTION":
        homes = [context.collection]
    else:
        homes = import_homes_of(obj) if obj is not None else [context.collection]
    for collection in homes:
        if collection is not None and collection.is_editable and is_imported(collection):
            path = collection.meshferry.source_path
            path = bpy.path.abspath(path) if bpy.data.filepath else path  # an unsaved file has no folder for "//"
            return ReloadSource(path, collection)
    if obj is not None and obj.type == "ARMATURE" and obj.is_editable:
        files = action_files(obj)
        if files:
            return ReloadSource(next(iter(files)), None, obj)
    return None


def is_imported(collection: Any) -> bool:
    """Return whether a collection was imported from one file."""
    return bool(collection.meshferry.source_path and collection.meshferry.import_id)


def places_models(collection: Any) -> bool:
    """Return whether the file of a collection places models of other files."""
    known = find(collection.meshferry.file_format)
    return known is not None and known.capabilities.placement


def action_files(armature: Any) -> dict[str, Any]:
    """Return the files of the imported actions that an armature uses, each with one action."""
    actions = [holder.action for holder in action_holders(armature)]
    return {action.meshferry.source_path: action for action in actions if action.meshferry.source_path}


def refuse_other_format(path: str, collection: Any) -> None:
    """Check the format of a file.

    Raises
    ------
    MeshferryError
        The file does not exist, or is of another format than the one that the collection was imported from.
    """
    if not Path(path).exists():
        raise MeshferryError("The file does not exist; choose Reload from File in a window to select where it is now")
    found = format_of(path)
    before = find(collection.meshferry.file_format)
    if found is not None and before is not None and found != before:
        raise MeshferryError("The file is a {} now, but was a {}; choose File > Import", found.label, before.label)


def replaced_edits(objects: Iterable[Any]) -> dict[Any, Text]:
    """Return a text for each object with edits that a reload may replace; edits of shared data once."""
    texts: dict[Any, Text] = {}
    listed_data: set[Any] = set()
    for obj in objects:
        if obj.mode == "EDIT":
            obj.update_from_editmode()
        actions = [action for action in edited_actions(obj) if action not in listed_data]
        edits = edits_of(obj) if obj.meshferry.import_id and obj.data and obj.data not in listed_data else []
        listed_data.update((obj.data, *actions))
        if edits is None:
            texts[obj] = Text("'{}': it has another mesh than the import made", obj.name)
        edits = [*(edits or ()), *(Text("action '{}'", Named("animation", action.name)) for action in actions)]
        if edits:
            more = Text(", and {} more", len(edits) - MOST_EDITS) if len(edits) > MOST_EDITS else ""
            texts[obj] = Text("'{}': {}{}", obj.name, joined(edits[:MOST_EDITS]), more)
    return texts


class COLLECTION_PT_meshferry_file(bpy.types.Panel):
    """Panel in the properties of a collection with the file that it was imported from."""

    bl_label = "Imported File"
    bl_space_type = "PROPERTIES"
    bl_region_type = "WINDOW"
    bl_context = "collection"

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        """Require a collection that was imported."""
        return context.collection is not None and is_imported(context.collection)

    def draw(self, context: bpy.types.Context) -> None:
        """Draw the path and the button."""
        self.layout.prop(context.collection.meshferry, "source_path", text="")
        self.layout.operator(IMPORT_SCENE_OT_meshferry_reload.bl_idname, icon="FILE_REFRESH")


class MESHFERRY_PT_file(Sidebar, bpy.types.Panel):
    """Panel with the file that the active object was imported from, and the one of its last export."""

    bl_label = "File"

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        """Require a file."""
        return find_source(context) is not None or reexport.shown_file(context) is not None

    def draw(self, context: bpy.types.Context) -> None:
        """Draw the buttons."""
        draw_button(self.layout, context)
        if reexport.draw_button(self.layout, context):
            export_on_save.draw_switch(self.layout, context)


def draw_button(layout: Any, context: bpy.types.Context) -> bool:
    """Draw the button or menu entry with the name of the file; return whether there is a file."""
    source = find_source(context)
    if source is None:
        return False
    text = iface_("Reload from {}").format(Path(source.path).name)
    layout.operator(IMPORT_SCENE_OT_meshferry_reload.bl_idname, text=text, icon="FILE_REFRESH", translate=False)
    return True


def draw_import_entry(self: Any, context: bpy.types.Context) -> None:
    """Draw the entry at the top of File > Import."""
    if draw_button(self.layout, context):
        self.layout.separator()


ENTRIES = (MenuEntry("TOPBAR_MT_file_import", draw_import_entry, is_first=True),)

"""Base of the export operators that write several files: list their names and protect existing files."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import bpy
from bpy.props import BoolProperty, EnumProperty, StringProperty

from ...blender_data.armature_modifiers import MESHABLE
from ...blender_data.exporting.object_selection import select
from ...blender_data.names import name_in_file
from ...blender_data.steps import Steps
from ...io_formats.core.errors import ExportError, MeshferryError
from ...io_formats.core.messages import Text, counted
from ...io_formats.core.options import MESH_FILES
from ...io_formats.core.scene import Scene
from ...io_formats.disk.file_names import distinct_file_names
from ..layouts import draw_rest
from ..option_properties import section_body
from ..sidebar import draw_wrapped
from ..translations import iface_, rpt_
from .export_base import ExportScene
from .export_dialog import OBJECT_SCOPES, suggested_file_name, with_extension

MOST_NAMES = 20
"""Largest number of file names listed; for more, only their number is shown."""


class ExportFiles(ExportScene):
    """Mixin of export operators that write a file for each object, clip and so on.

    A single file is written to the chosen path; several are written to the chosen folder, named after their scenes. A
    subclass returns these names from :meth:`names`.
    """

    use_replace: BoolProperty(
        name="Replace Files",
        description="Where several files are written, write over those that are there already (marked in red); "
        "otherwise they stay as they are, with a warning",
        default=False,
    )

    unused_name: StringProperty(options={"HIDDEN", "SKIP_SAVE"})
    """File name while the file browser shows a note in its place; empty while it shows the name."""

    def check(self, context: bpy.types.Context) -> bool:
        """Update the file name, or the note in its place; Blender calls this also when it opens the file browser."""
        before = self.filepath
        self.restore_name()
        super().check(context)
        self.hide_name(context)
        return bool(self.filepath != before)

    def steps(self, context: bpy.types.Context) -> Steps[set[str]]:
        """Write the files."""
        self.restore_name()
        return super().steps(context)

    def hide_name(self, context: bpy.types.Context) -> None:
        """Replace the file name by a note if several files are named after their objects.

        Blender cannot grey out the field of its file browser. Text that is typed there is replaced by the note.
        """
        try:
            count = len(self.names(context, self.source(context, "")[0]))
        except MeshferryError:
            return
        if count > 1:
            path = Path(self.filepath)
            self.unused_name = path.name
            note = rpt_(Text("({} files, named as listed)", count))
            self.filepath = str(path.with_name(note + self.filename_ext))

    def restore_name(self) -> None:
        """Put back the file name, with the present extension."""
        if not self.unused_name:
            return
        name = with_extension(self.unused_name, self.format, self.filename_ext)
        if self.suggested_name == self.unused_name:
            self.suggested_name = name
        self.filepath, self.unused_name = str(Path(self.filepath).with_name(name)), ""

    def names(self, context: bpy.types.Context, source: Any) -> list[str]:
        """Return the names of the scenes that become files of an ``exporter.Source``.

        Raises
        ------
        ExportError
            There is nothing to export.
        """
        raise NotImplementedError

    def suggest_name(self, context: bpy.types.Context) -> str:
        """Suggest a file name: that of the only scene to write, otherwise that of the active object or collection."""
        if self.collection:
            return super().suggest_name(context)
        try:
            names = self.names(context, self.source(context, "")[0])
        except MeshferryError:
            names = []
        if len(names) == 1:
            return suggested_file_name(names[0], self.format, extension=self.filename_ext)
        return super().suggest_name(context)

    def draw_files(self, context: bpy.types.Context) -> None:
        """Draw the names of the files, if there are several, or the error that prevents the export."""
        try:
            files = self.shown_files(context)
        except MeshferryError as problem:
            draw_wrapped(self.layout.column(align=True), context, iface_(problem.sentence()), "ERROR")
            return
        if not files:
            return
        title = iface_(self.files_title(len(files)))
        body = section_body(self.layout, f"{self.panel_prefix}_export_files", title)
        if body is not None:
            draw_file_names(body, context, files)
            self.draw_notes(body, context, files)
            body.prop(self, "use_replace")

    def shown_files(self, context: bpy.types.Context) -> list[str]:
        """Return the names of the files to list: none for a single one, whose name the file browser shows."""
        names = distinct_file_names(self.names(context, self.shown_source(context)))
        return [name + self.filename_ext for name in names] if len(names) > 1 else []

    def files_title(self, count: int) -> str:
        """Return the title of the section that lists the files."""
        return counted(count, "File", "Files in This Folder")

    def draw_notes(self, layout: Any, context: bpy.types.Context, names: list[str]) -> None:
        """Draw notes below the list of the files with these names. The default draws nothing."""


class ExportObjects(ExportFiles):
    """Mixin of export operators that write a file for each object, or one with all objects joined."""

    scope: EnumProperty(name="Export", description="Which objects are exported", items=OBJECT_SCOPES, default="AUTO")

    def names(self, context: bpy.types.Context, source: Any) -> list[str]:
        """Return the names of the objects that become files; coarser levels of detail are in the file of the finest."""
        return object_names(self, context, source)

    def summary_parts(self, written: Iterable[Scene]) -> tuple[str, ...]:
        """Return the parts of the summary text, such as "3 objects"."""
        written = tuple(written)
        bones = joint_count(written)
        clips = sum(len(scene.clips) for scene in written)
        return (
            counted(sum(len(scene.nodes) for scene in written), "object"),
            counted(sum(scene.triangle_count for scene in written), "triangle"),
            counted(bones, "bone") if bones else "",
            counted(clips, "animation") if clips else "",
        )


def joint_count(scenes: Iterable[Scene]) -> int:
    """Return the number of joints of all skeletons; a skeleton in several files counts once."""
    different = {id(skeleton): skeleton for scene in scenes for skeleton in scene.skeletons}
    return sum(len(skeleton.joints) for skeleton in different.values())


def object_names(owner: Any, context: bpy.types.Context, source: Any) -> list[str]:
    """Return the names of the objects that become files of an export; only one if objects are joined.

    Coarser levels of detail are in the file of the finest.

    Raises
    ------
    ExportError
        There is no mesh.
    """
    chosen = select(context, source, use_hidden=owner.use_hidden, with_empties=False)
    shown = [obj for obj in chosen if obj.type in MESHABLE or owner.use_instances]
    exported = set(shown)
    finest = [obj for obj in shown if obj.meshferry.lod_of not in exported]
    if not finest:
        raise ExportError("There is no mesh to export")
    if getattr(owner, MESH_FILES.name) == "JOINED":
        finest = [context.object if context.object in finest else finest[0]]
    return [name_in_file(obj) for obj in finest]


def draw_file_names(layout: Any, context: bpy.types.Context, names: list[str]) -> None:
    """List the names of the files to write, existing ones in red."""
    column = layout.column(align=True)
    column.scale_y = 0.8
    folder = browsed_folder(context)
    for name in names[:MOST_NAMES]:
        row = column.row()
        row.alert = folder is not None and (folder / name).exists()
        row.label(text=name, icon="FILE_REFRESH" if row.alert else "FILE", translate=False)
    draw_rest(column, names, MOST_NAMES)


def browsed_folder(context: bpy.types.Context) -> Path | None:
    """Return the current folder of the file browser, or None, for marking names of existing files."""
    parameters = getattr(context.space_data, "params", None)
    folder = getattr(parameters, "directory", b"")
    return Path(folder.decode(errors="replace")) if folder else None

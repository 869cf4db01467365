"""Export of Second Life upload sets, mesh assets, model bundles and upload requests, and their models."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import bpy
from bpy.props import BoolProperty, EnumProperty

from ....blender_data.armature_modifiers import MESHABLE, armature_of
from ....blender_data.export_options import HIDDEN, KEEP_IMPORTED
from ....blender_data.exporting import object_selection
from ....blender_data.exporting.models.model_objects import ModelIndex, ModelObjects, find_models
from ....blender_data.exporting.object_selection import is_of_body, triangle_count
from ....blender_data.level_objects import LEVEL_PROPERTIES
from ....blender_data.names import name_in_file
from ....blender_data.property_groups.translation_context import CONTEXT
from ....io_formats.api import scene_name
from ....io_formats.core.errors import ExportError, MeshferryError
from ....io_formats.core.format import Format
from ....io_formats.core.messages import Text, counted
from ....io_formats.core.options import Option
from ....io_formats.core.scene import Scene
from ....io_formats.disk.file_sets import obsolete_files
from ....io_formats.passes.lod_names import LEVEL_SUFFIXES, PHYSICS_SUFFIX
from ....io_formats.second_life.animation.format import SECOND_LIFE_ANIMATION
from ....io_formats.second_life.asset.format import SECOND_LIFE_MESH
from ....io_formats.second_life.bundle.format import SECOND_LIFE_BUNDLE
from ....io_formats.second_life.bvh.format import SECOND_LIFE_BVH
from ....io_formats.second_life.options import LEVEL_LABELS
from ....io_formats.second_life.request.format import SECOND_LIFE_REQUEST
from ....io_formats.second_life.upload_set.format import SECOND_LIFE_UPLOAD
from ...files.clip_export import ExportClips
from ...files.export_dialog import OBJECT_SCOPES, suggested_file_name
from ...files.export_files import ExportFiles, browsed_folder
from ...layouts import Condition
from ...option_properties import export_table, in_sections, last_values, to_export_options
from ...sidebar import concerns, draw_wrapped, homes_of
from ...translations import iface_, rpt_

LEVELS = tuple(label.upper() for label in LEVEL_LABELS)
PHYSICS = "PHYSICS"
"""Name of the physics shape among the parts of a model; the others are the ``LEVELS``."""

PICKERS = dict(zip((*LEVELS, PHYSICS), (*LEVEL_PROPERTIES, "physics_object"), strict=True))
"""Property of the finest object that points to each part; empty for the finest level."""


def is_wanted(context: bpy.types.Context) -> bool:
    """Return whether the active object has a type to export to Second Life and was not imported from another family."""
    obj = context.object
    return obj is not None and obj.type in {*MESHABLE, "ARMATURE"} and concerns(context, "second_life")


def chosen_models(context: bpy.types.Context) -> list[ModelObjects]:
    """Return the models of the selection, the active one first, the others by name.

    Without a selection, use the active object.

    A selected LOD or physics object selects its model; a selected armature selects all meshes that it deforms, without
    bodies to fit clothes on.
    """
    active = context.view_layer.objects.active
    selected = sorted(context.view_layer.objects.selected, key=lambda obj: (obj != active, obj.name))
    if not selected and active is not None:
        selected = [active]
    index = ModelIndex(context.scene.objects)
    found: dict[Any, None] = {}
    for obj in selected:
        parts = [obj] if obj.type in MESHABLE else []
        if obj.type == "ARMATURE":
            worn = (one for one in context.scene.objects if armature_of(one) == obj and not is_of_body(one))
            parts = sorted(worn, key=lambda one: one.name)
        for part in parts:
            finest = index.finest_of(part)
            if finest.meshferry.role == "RENDER":
                found.setdefault(finest)
    return [index.model(finest) for finest in found]


HAS_MODEL: Condition = (lambda context: bool(chosen_models(context)), "Choose a mesh object")


def objects_by_part(model: ModelObjects) -> dict[str, list[Any]]:
    """Return the objects of a model by part: levels and physics. Parts without an object are left out."""
    shapes = [obj for obj in (model.physics, *model.hulls, model.base_hull) if obj is not None]
    levels = {LEVELS[level]: [obj] for level, obj in sorted(model.levels.items())}
    return {LEVELS[0]: [model.finest], **levels, **({PHYSICS: shapes} if shapes else {})}


def subject_of(models: Sequence[ModelObjects]) -> str:
    """Return a common name of several models for the sidebar."""
    if len(models) < 2:
        return str(models[0].finest.name) if models else ""
    return rpt_(Text("{} and {} more", models[0].finest.name, len(models) - 1))


def imported_from(obj: Any) -> Path | None:
    """Return the asset file that an object was imported from, if it still exists."""
    for collection in homes_of(obj):
        path = bpy.path.abspath(collection.meshferry.source_path)
        if path and collection.meshferry.file_format == SECOND_LIFE_MESH.name and os.path.isfile(path):
            return Path(path)
    return None


SECTION_ORDER = ("Levels of Detail", "Physics", "Armature", "Geometry", "Objects", "Materials", "File")
"""Sections that determine the land impact come first."""

ANIMATION_SECTIONS = ("Animation", "Armature", "Objects", "File")


def options_of(target: Format) -> tuple[Option, ...]:
    """Return the options of an export. Keep as Imported, which disables many others, is the last of its section."""
    return in_sections(sorted(export_table(target), key=lambda option: option is KEEP_IMPORTED), SECTION_ORDER)


UPLOAD_OPTIONS = options_of(SECOND_LIFE_UPLOAD)
UPLOAD_OPERATOR = "export_scene.second_life_upload"


def last_upload_values(context: bpy.types.Context) -> dict[str, Any]:
    """Return the options of the last export of an upload set, or the defaults of the export dialog."""
    return last_values(context, UPLOAD_OPERATOR, UPLOAD_OPTIONS)


def known_folder(context: bpy.types.Context) -> Path | None:
    """Return the folder of the last upload set or of the .blend file, or None if neither exists."""
    last = context.window_manager.operator_properties_last(UPLOAD_OPERATOR)
    for path in (last.filepath if last is not None else "", context.blend_data.filepath):
        folder = Path(bpy.path.abspath(path)).parent if path else None
        if folder is not None and folder.is_dir():
            return folder
    return None


def object_counts(objects: int, meshes: int) -> tuple[str, ...]:
    """Return ``30 objects`` and ``1 mesh`` for a summary; only the first if no objects share a mesh."""
    return (counted(objects, "object"), *([] if meshes == objects else [counted(meshes, "mesh", "meshes")]))


class ExportSecondLife(ExportFiles):
    """Base of the Second Life exporters: choice of the models, and the summary.

    A selected LOD or physics object selects its model; a selected armature selects all meshes that it deforms.
    """

    def source(self, context: bpy.types.Context, path: str) -> tuple[Any, str]:
        """Return the source of the export and its name."""
        source, name = super().source(context, path)
        if source.kind == "SELECTION":
            shown = [obj for obj in context.view_layer.objects.selected if obj.instance_type == "COLLECTION"]
            models = [model.finest for model in chosen_models(context)]
            source = object_selection.Source("OBJECTS", objects=(*models, *shown))
            if not source.objects:
                raise ExportError("No mesh is selected; select what is to be exported")
        return source, name

    def values(self) -> dict[str, Any]:
        """Return the values of the options. Selected objects are exported even if they are hidden."""
        values = super().values()
        has_chosen = not self.collection and self.chosen_source(bpy.context).kind == "OBJECTS"
        return {**values, HIDDEN.name: True} if has_chosen else values

    def mesh_count(self, context: bpy.types.Context, source: Any) -> int:
        """Return the number of models."""
        return len(self.models(context, source))

    def models(self, context: bpy.types.Context, source: Any) -> list[ModelObjects]:
        """Return the models of an ``exporter.Source``.

        Raises
        ------
        ExportError
            There is nothing to export.
        """
        return find_models(context, source, to_export_options(self.values()))

    def question(self, context: bpy.types.Context) -> str:
        """Return a question if models are far too large for the target, since such an export may take minutes."""
        from ....io_formats.second_life.asset.rules import MOST_TRIANGLES

        options = to_export_options(self.values())
        try:
            source, _name = self.source(context, self.filepath)
            models = find_models(context, source, options)
        except MeshferryError:
            return ""  # no question; the export will report the error
        counts = {
            model.finest.name: triangle_count(context, model.finest, use_modifiers=options.use_modifiers)
            for model in models
        }
        large = {name: count for name, count in counts.items() if count > MOST_TRIANGLES}
        if not large:
            return ""
        name = max(large, key=large.__getitem__)
        more = Text(" (and {} more objects)", len(large) - 1) if len(large) > 1 else ""
        text = Text(
            "'{}'{} has {:,} triangles, more than the {:,} that fit into one object of Second Life. The export may "
            "take minutes, and the upload will hardly work; a Decimate modifier makes it smaller",
            *(name, more, large[name], MOST_TRIANGLES),
        )
        return rpt_(text)

    def names(self, context: bpy.types.Context, source: Any) -> list[str]:
        """Return the names of the models."""
        return [name_in_file(model.finest) for model in self.models(context, source)]

    def summary_parts(self, written: Iterable[Scene]) -> tuple[str, ...]:
        """Return the phrases of the summary; levels and physics are not counted as objects."""
        from ....io_formats.second_life.models.models import models_of

        written = tuple(written)
        models = [model for scene in written for model in models_of(scene)]
        # ``mesh`` of each submodel has the triangles of all
        whole = [model for model in models if not model.finest.submodel]
        meshes = sum(self.stored_mesh_count(models_of(scene)) for scene in written)
        return (
            *object_counts(len(models), meshes),
            counted(sum(model.mesh.triangle_count for model in whole), "triangle"),
        )

    def stored_mesh_count(self, models: Sequence[Any]) -> int:
        """Return the number of meshes that the files hold for these models."""
        from ....io_formats.second_life.models.models import mesh_count

        return mesh_count(models)


class ExportSet(ExportSecondLife):
    """An export to several files that belong together, named after the chosen one."""

    def names(self, context: bpy.types.Context, source: Any) -> list[str]:
        """Return the name of the first model, which becomes the name of the file."""
        return super().names(context, source)[:1]

    def set_names(self, stem: str, models: Sequence[ModelObjects]) -> list[str]:
        """Return the names of the files to write except textures, the chosen one first."""
        raise NotImplementedError

    def shown_files(self, context: bpy.types.Context) -> list[str]:
        """Return the names of all files of the set."""
        models = self.models(context, self.shown_source(context))
        chosen = Path(self.filepath or suggested_file_name(context.collection.name, self.format))
        return self.set_names(scene_name(chosen), models)

    def files_title(self, count: int) -> str:
        """Return the title of the section that lists the files."""
        return counted(count, "File")

    def may_replace(self) -> bool:
        """Return whether existing companion files of a new file may be replaced."""
        return bool(self.use_replace)


class ExportUploadSet(ExportSet):
    """Write the files for the upload window of the Second Life viewer."""

    bl_label = "Export SL Upload"
    bl_description = (
        "Export objects to what the viewer's upload window takes: a Collada file for each level of detail and for "
        "the physics, with textures and PBR materials beside them"
    )

    option_table = UPLOAD_OPTIONS

    scope: EnumProperty(name="Export", description="Which objects are exported", items=OBJECT_SCOPES, default="AUTO")

    is_confirmed: BoolProperty(
        name="Replacing Confirmed",
        description="The user already confirmed that existing files are replaced",
        options={"HIDDEN", "SKIP_SAVE"},
    )
    use_last_folder: BoolProperty(
        name="Without Asking",
        description="Export to the folder of the last upload set, or of the .blend file, under the name of the model",
        options={"HIDDEN", "SKIP_SAVE"},
    )

    def invoke(self, context: bpy.types.Context, event: Any) -> set[str]:
        """Open the file browser unless the folder is known. Ask for confirmation before files are replaced."""
        folder = known_folder(context) if self.use_last_folder else None
        if folder is None:
            return super().invoke(context, event)
        self.filepath = str(folder / self.suggest_name(context))
        try:
            models = self.models(context, self.source(context, self.filepath)[0])
        except MeshferryError:
            return self.execute(context)  # which reports the error
        names = self.set_names(scene_name(Path(self.filepath)), models)
        there = [name for name in names if (folder / name).exists()] or obsolete_names(folder, names)
        if not there:
            return self.execute(context)
        self.is_confirmed = True
        message = iface_("{} exists already").format(there[0])
        manager: Any = context.window_manager
        return manager.invoke_confirm(
            self, event, title=iface_("Replace Files?"), message=message, confirm_text=iface_("Replace")
        )

    def may_replace(self) -> bool:
        """Return whether existing companion files of a new file may be replaced."""
        return bool(self.is_confirmed) or super().may_replace()

    def set_names(self, stem: str, models: Sequence[ModelObjects]) -> list[str]:
        """Return the names of the files of all levels, of any physics and of PBR materials."""
        from ....blender_data.exporting.models.generated_parts import has_physics_shape
        from ....blender_data.exporting.models.gltf_export import materials_for_gltf
        from ....io_formats.second_life.upload_set.codec import pbr_names

        options = to_export_options(self.values())
        has_physics = any(has_physics_shape(model, options) for model in models)
        suffixes = (*LEVEL_SUFFIXES, *([PHYSICS_SUFFIX] if has_physics else []))
        finest = [model.finest for model in models] if options.use_pbr_materials else []
        materials = [name_in_file(material) for material in materials_for_gltf(finest)]
        return [*(f"{stem}{suffix}{self.filename_ext}" for suffix in suffixes), *pbr_names(materials, stem)]

    def draw_notes(self, layout: Any, context: bpy.types.Context, names: Sequence[str]) -> None:
        """Draw which files of an earlier export are removed, and a note that textures are also written."""
        folder = browsed_folder(context)
        for name in obsolete_names(folder, names) if folder is not None else ():
            row = layout.row()
            row.alert = True
            row.label(text=iface_("{} is removed").format(name), icon="TRASH", translate=False)
        if self.use_textures:
            layout.label(text="and the textures", text_ctxt=CONTEXT, icon="TEXTURE")


def obsolete_names(folder: Path, names: Sequence[str]) -> list[str]:
    """Return the names of files of an earlier upload set that one with these names, the chosen one first, removes."""
    from ....io_formats.second_life.upload_set.codec import chosen_file

    stem = scene_name(Path(names[0]))
    chosen = chosen_file(stem, [Path(name).stem.removeprefix(stem) for name in names])
    return [place.name for place in obsolete_files(folder / names[0], [chosen])[0]]


class ExportAsset(ExportSecondLife):
    """Write mesh assets, one for each object."""

    bl_label = "Export SL Mesh"
    bl_description = (
        "Export each object, with levels of detail, physics and rig, to a mesh asset as the grid stores it: for "
        "OpenSim archives and tools. The viewer's upload window does not take it"
    )

    option_table = options_of(SECOND_LIFE_MESH)


class ExportBundle(ExportSet):
    """Write a model bundle with its companion."""

    bl_label = "Export SL Bundle"
    bl_description = (
        "For experts: export to a model as the viewer's upload window saves it. Set MeshImportUseSLM to TRUE in the "
        "viewer's debug settings, then choose the .dae beside it: the viewer opens the bundle in its place"
    )

    option_table = options_of(SECOND_LIFE_BUNDLE)

    def set_names(self, stem: str, models: Sequence[ModelObjects]) -> list[str]:
        """Return the names of the bundle and of the file that is chosen in the viewer."""
        return [stem + self.filename_ext, stem + SECOND_LIFE_UPLOAD.extensions[0]]

    def draw_notes(self, layout: Any, context: bpy.types.Context, names: Sequence[str]) -> None:
        """Draw how to open the files in the viewer."""
        text = rpt_("In the viewer: debug setting MeshImportUseSLM to TRUE, then choose the .dae")
        draw_wrapped(layout.column(align=True), context, text, "INFO")


class ExportUploadRequest(ExportSet):
    """Write the two request bodies of an upload."""

    bl_label = "Export SL Request"
    bl_description = (
        "Export objects to what a tool posts to the NewFileAgentInventory capability of a grid: the question for the "
        "fee, and the upload itself"
    )

    option_table = options_of(SECOND_LIFE_REQUEST)

    def set_names(self, stem: str, models: Sequence[ModelObjects]) -> list[str]:
        """Return the names of both request bodies."""
        return [stem + self.filename_ext, f"{stem}.fee{self.filename_ext}"]

    def stored_mesh_count(self, models: Sequence[Any]) -> int:
        """Return the number of meshes that the files hold for these models; for OpenSim, each has its own."""
        return len(models) if self.server == "OPENSIM" else super().stored_mesh_count(models)


class ExportAnimation(ExportClips):
    """Write animations, one for each clip."""

    bl_idname = "export_scene.second_life_anim"
    bl_label = "Export SL Anim"
    bl_description = (
        "Export actions, NLA strips or the pose shown of armatures, which may have Rigify or Mixamo bones, to "
        "animations of Second Life, which the viewer uploads as they are"
    )
    option_table = in_sections(export_table(SECOND_LIFE_ANIMATION), ANIMATION_SECTIONS)


class ExportBvh(ExportClips):
    """Write animations as text, one for each clip."""

    bl_idname = "export_scene.second_life_bvh"
    bl_label = "Export SL BVH"
    bl_description = (
        "Export actions, NLA strips or the pose shown of armatures, which may have Rigify or Mixamo bones, to the text "
        "format that the viewer's upload window shows before the upload. It holds no priority, loop and ease"
    )
    option_table = in_sections(export_table(SECOND_LIFE_BVH), ANIMATION_SECTIONS)


EXPORTERS = {
    SECOND_LIFE_UPLOAD.name: ExportUploadSet,
    SECOND_LIFE_MESH.name: ExportAsset,
    SECOND_LIFE_BUNDLE.name: ExportBundle,
    SECOND_LIFE_REQUEST.name: ExportUploadRequest,
    SECOND_LIFE_ANIMATION.name: ExportAnimation,
    SECOND_LIFE_BVH.name: ExportBvh,
}

"""Properties of materials, images, actions, collections and meshes."""

import bpy

from ..export_options import MERGING
from .declarations import collection, flag, integer, number, numbers, pointer, property_of, text
from .object_properties import MeshferryFile, NamedInFile


class MeshferryFileProperty(bpy.types.PropertyGroup):
    """A value of the file without a counterpart in Blender, which is shown to the user."""

    name: text("Name", "Name of the value")
    value: text("Value", "The value in the file")


class MeshferryMaterial(NamedInFile, bpy.types.PropertyGroup):
    """Properties of a material in its file."""

    identity: text("GUID", "Identifier of the material in its project, which distinguishes materials of the same name")
    fingerprint: text("Checksum on Import", "Checksum of the imported nodes, to find changes before an export")
    file_properties: collection(
        "In the Project", "Where the material came from, and what of it is not shown", type=MeshferryFileProperty
    )


class MeshferryImage(bpy.types.PropertyGroup):
    """The file from which an image was made; later imports find the image by it."""

    source_path: text("File", "File of the project that the image was made from")
    source_state: text("State", "Size and modification time of the file when the image was made")


class MeshferryJointPriority(bpy.types.PropertyGroup):
    """The priority of one joint in an animation."""

    name: text("Bone", "Name of the bone")
    priority: integer("Priority", "Priority of this bone", default=3, min=-1, max=6)


class MeshferryPlayback(bpy.types.PropertyGroup):
    """Settings of how a program plays an animation."""

    is_known: flag("Stored", "The settings came from a file or were set by the user")
    use_loop: flag("Loop", "Repeat the animation from loop in to loop out until it is stopped")
    loop_in: number("Loop In", "Start of the part that repeats", unit="TIME_ABSOLUTE")
    loop_out: number("Loop Out", "End of the part that repeats", unit="TIME_ABSOLUTE")
    ease_in: number("Ease In", "Time in which the animation takes over", min=0.0, default=0.3, unit="TIME_ABSOLUTE")
    ease_out: number("Ease Out", "Time in which the animation ends", min=0.0, default=0.3, unit="TIME_ABSOLUTE")
    priority: integer(
        "Priority",
        "Of several animations that move a bone, the one of the highest priority wins",
        default=3,
        min=-1,
        soft_min=0,
        soft_max=6,
    )
    joint_priorities: collection(
        "Bone Priorities", "Bones with another priority than the animation", type=MeshferryJointPriority
    )
    hand_pose: integer("Hand Pose", "Shape of the hands of the classic avatar", default=1, min=0, soft_max=13)
    emote: text("Expression", "Face expression of the classic avatar")
    original: text("Original File", "The imported file, so that bones that are not edited are exported as they were")


class MeshferryAction(bpy.types.PropertyGroup):
    """Properties of an action as a clip of a file."""

    use_export: flag("Export as a Clip", "Include this action when every action is exported as a clip", default=True)
    clip_name: text("Clip Name", "Name of the clip in the file; empty: the name of the action")
    fps: number(
        "Frame Rate",
        "Frames a second that the clip has in the file; 0: the frame rate of the scene",
        min=0.0,
        max=1000.0,
        precision=2,
    )
    frame_count: integer(
        "Frames in File",
        "Number of frames that the clip had in the file it came from; 0: it did not come from a file",
        min=0,
    )
    root_motion: flag("Root Motion", "The movement of the root bone moves the whole character in the engine")
    playback: pointer("Playback", "How the target program plays the animation", type=MeshferryPlayback)
    source_path: text("File", "The file that the action was imported from")
    file_format: text("Format", "Format of the file that the action was imported from")
    imported_range: numbers(
        "Range on Import",
        "Manual frame range that the import gave the action; while it is the same, keys outside extend it",
        size=2,
    )
    fingerprint: text("Checksum on Import", "Checksum of the imported keys, to find edits before a reload")
    import_options: text("Import Options", "Options of the import as JSON, for a reload")
    bone_axes: text(
        "Bone Axes",
        "Rule by which the bones lie that the keys were made for; empty: unknown, or that of other "
        "armatures if the action was imported",
    )
    has_shape_root: flag("Includes Movement by Shape", "Whether it is known what keys of the root bone include")
    shape_root: numbers(
        "Movement by Shape",
        "Distances in metres by which the shape of the figure moves the root bone, included in its keys",
        size=3,
    )


class MeshferryCollection(bpy.types.PropertyGroup):
    """Properties of a collection that represents a file."""

    file: pointer("File", "The file that the collection last went to or came from", type=MeshferryFile)
    exports: collection("Exports", "Last export in each format other than that of its source", type=MeshferryFile)
    unshown_nodes: text(
        "Nodes Not Shown", "Keys of nodes that an export added to the file together with a copied object, as JSON"
    )
    from_file: flag(
        "Came from a File",
        "The collection was made by importing a file, so each of its objects stays a node of its own on export",
    )
    file_format: text(
        "Format",
        "Format of the file that the collection was imported from; the sidebar shows what concerns that format",
    )
    source_path: text(
        "File",
        "The file that the collection was imported from",
        subtype="FILE_PATH",
        options={"ANIMATABLE", "PATH_SUPPORTS_BLEND_RELATIVE"},
    )
    import_id: text("Import", "Identifier that the imported objects have, too")
    import_options: text("Import Options", "Options of the import as JSON, for a reload")
    source_name: text("Name in File", "Name that the file gives itself inside, where that is not its file name")
    written_set: text(
        "Written Set", "Options and digests of the last files that were written from the collection as a set, as JSON"
    )
    merging: property_of(MERGING, f"{MERGING.description} when this collection is exported with the automatic choice")


class MeshferryCustomLayer(bpy.types.PropertyGroup):
    """A layer of a mesh without an equivalent in Blender, which is stored as an attribute."""

    name: text("Name in File", "Name that the layer has in the file")
    dtype: text("Number Type", "Type of the layer's numbers in the file, as NumPy writes it")
    dimension: integer("Components", "Numbers per vertex in the file", default=1, min=1)
    attribute: text("Attribute", "Attribute of the mesh that holds the layer's values")


class MeshferryMesh(bpy.types.PropertyGroup):
    """Properties of a mesh in its file that have no equivalent in Blender."""

    custom_layers: collection(
        "Custom Layers",
        "Layers of the file that are kept as attributes of the mesh and written back on export",
        type=MeshferryCustomLayer,
    )
    file_vertices: integer(
        "Vertices on Import",
        "Number of vertices the mesh had after its import; while it still has as many, "
        "its vertices are taken for those of the file",
        min=0,
    )
    is_welded: flag("Welded on Import", "The vertices that the file splits along seams were joined on import")
    file_corners: integer("Corners on Import", "Number of face corners the mesh had after its import", min=0)
    fingerprint: text("Checksums on Import", "Checksums of the imported data as JSON, to find edits before a reload")
    volume_factors: text("Factors by Volume", "The factors that the mesh got last for its collision volumes, as JSON")
    slot_names: text("Materials in File", "Name that the material of each slot has in the file, as JSON")
    symbols: text(
        "Symbols in File",
        "Symbols that materials have in the file by their names there, as JSON; they number the faces",
    )
    source_file: text(
        "Source File",
        "File that the mesh was made from in place of the engine's own, which was missing. "
        "It is not written over files of the engine's project",
    )
    source_identity: text("Missing Mesh", "Identifier in the engine's project of the mesh that was missing")
    backward_normals: number(
        "Backward Normals on Import",
        "Share of the file's normals that point away from their faces; "
        "an export only mentions exact normals that were turned round since",
        min=0.0,
        max=1.0,
    )

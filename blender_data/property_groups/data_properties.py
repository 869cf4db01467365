"""Properties of materials, images, actions, collections and meshes."""

import bpy
from bpy.props import (
    BoolProperty,
    CollectionProperty,
    EnumProperty,
    FloatProperty,
    FloatVectorProperty,
    IntProperty,
    PointerProperty,
    StringProperty,
)

from ..export_options import MERGING
from .object_properties import MeshferryFile, NamedInFile


class MeshferryFileProperty(bpy.types.PropertyGroup):
    """A value of the file without a counterpart in Blender, which is shown to the user."""

    name: StringProperty(name="Name", description="Name of the value")
    value: StringProperty(name="Value", description="The value in the file")


class MeshferryMaterial(NamedInFile, bpy.types.PropertyGroup):
    """Properties of a material in its file."""

    identity: StringProperty(
        name="GUID",
        description="Identifier of the material in its project, which distinguishes materials of the same name",
    )
    fingerprint: StringProperty(
        name="Checksum on Import", description="Checksum of the imported nodes, to find changes before an export"
    )
    file_properties: CollectionProperty(
        type=MeshferryFileProperty,
        name="In the Project",
        description="Where the material came from, and what of it is not shown",
    )


class MeshferryImage(bpy.types.PropertyGroup):
    """The file from which an image was made; later imports find the image by it."""

    source_path: StringProperty(name="File", description="File of the project that the image was made from")
    source_state: StringProperty(
        name="State", description="Size and modification time of the file when the image was made"
    )


class MeshferryJointPriority(bpy.types.PropertyGroup):
    """The priority of one joint in an animation."""

    name: StringProperty(name="Bone", description="Name of the bone")
    priority: IntProperty(name="Priority", description="Priority of this bone", default=3, min=-1, max=6)


class MeshferryPlayback(bpy.types.PropertyGroup):
    """Settings of how a program plays an animation."""

    is_known: BoolProperty(name="Stored", description="The settings came from a file or were set by the user")
    use_loop: BoolProperty(name="Loop", description="Repeat the animation from loop in to loop out until it is stopped")
    loop_in: FloatProperty(name="Loop In", description="Start of the part that repeats", unit="TIME_ABSOLUTE")
    loop_out: FloatProperty(name="Loop Out", description="End of the part that repeats", unit="TIME_ABSOLUTE")
    ease_in: FloatProperty(
        name="Ease In", description="Time in which the animation takes over", min=0.0, default=0.3, unit="TIME_ABSOLUTE"
    )
    ease_out: FloatProperty(
        name="Ease Out", description="Time in which the animation ends", min=0.0, default=0.3, unit="TIME_ABSOLUTE"
    )
    priority: IntProperty(
        name="Priority",
        description="Of several animations that move a bone, the one of the highest priority wins",
        default=3,
        min=-1,
        soft_min=0,
        soft_max=6,
    )
    joint_priorities: CollectionProperty(
        type=MeshferryJointPriority,
        name="Bone Priorities",
        description="Bones with another priority than the animation",
    )
    hand_pose: IntProperty(
        name="Hand Pose", description="Shape of the hands of the classic avatar", default=1, min=0, soft_max=13
    )
    emote: StringProperty(name="Expression", description="Face expression of the classic avatar")
    original: StringProperty(
        name="Original File",
        description="The imported file, so that bones that are not edited are exported as they were",
    )


class MeshferryAction(bpy.types.PropertyGroup):
    """Properties of an action as a clip of a file."""

    use_export: BoolProperty(
        name="Export as a Clip",
        description="Include this action when every action is exported as a clip",
        default=True,
    )
    clip_name: StringProperty(
        name="Clip Name",
        description="Name of the clip in the file; empty: the name of the action",
    )
    fps: FloatProperty(
        name="Frame Rate",
        description="Frames a second that the clip has in the file; 0: the frame rate of the scene",
        min=0.0,
        max=1000.0,
        precision=2,
    )
    frame_count: IntProperty(
        name="Frames in File",
        description="Number of frames that the clip had in the file it came from; 0: it did not come from a file",
        min=0,
    )
    root_motion: BoolProperty(
        name="Root Motion", description="The movement of the root bone moves the whole character in the engine"
    )
    playback: PointerProperty(
        type=MeshferryPlayback, name="Playback", description="How the target program plays the animation"
    )
    source_path: StringProperty(name="File", description="The file that the action was imported from")
    file_format: StringProperty(name="Format", description="Format of the file that the action was imported from")
    imported_range: FloatVectorProperty(
        name="Range on Import",
        description="Manual frame range that the import gave the action; while it is the same, keys outside extend it",
        size=2,
    )
    fingerprint: StringProperty(
        name="Checksum on Import", description="Checksum of the imported keys, to find edits before a reload"
    )
    import_options: StringProperty(name="Import Options", description="Options of the import as JSON, for a reload")
    bone_axes: StringProperty(
        name="Bone Axes",
        description="Rule by which the bones lie that the keys were made for; empty: unknown, or that of other "
        "armatures if the action was imported",
    )
    has_shape_root: BoolProperty(
        name="Includes Movement by Shape", description="Whether it is known what keys of the root bone include"
    )
    shape_root: FloatVectorProperty(
        name="Movement by Shape",
        description="Distances in metres by which the shape of the figure moves the root bone, included in its keys",
        size=3,
    )


class MeshferryCollection(bpy.types.PropertyGroup):
    """Properties of a collection that represents a file."""

    file: PointerProperty(
        type=MeshferryFile, name="File", description="The file that the collection last went to or came from"
    )
    unshown_nodes: StringProperty(
        name="Nodes Not Shown",
        description="Keys of nodes that an export added to the file together with a copied object, as JSON",
    )
    from_file: BoolProperty(
        name="Came from a File",
        description="The collection was made by importing a file, "
        "so each of its objects stays a node of its own on export",
    )
    file_format: StringProperty(
        name="Format",
        description="Format of the file that the collection was imported from; "
        "the sidebar shows what concerns that format",
    )
    source_path: StringProperty(
        name="File",
        description="The file that the collection was imported from",
        subtype="FILE_PATH",
        options={"ANIMATABLE", "PATH_SUPPORTS_BLEND_RELATIVE"},
    )
    import_id: StringProperty(name="Import", description="Identifier that the imported objects have, too")
    import_options: StringProperty(name="Import Options", description="Options of the import as JSON, for a reload")
    source_name: StringProperty(
        name="Name in File",
        description="Name that the file gives itself inside, where that is not its file name",
    )
    merging: EnumProperty(
        name=MERGING.label,
        description=f"{MERGING.description} when this collection is exported with the automatic choice",
        items=[(choice.key, choice.label, choice.description) for choice in MERGING.choices],
        default=MERGING.default,
    )


class MeshferryCustomLayer(bpy.types.PropertyGroup):
    """A layer of a mesh without an equivalent in Blender, which is stored as an attribute."""

    name: StringProperty(name="Name in File", description="Name that the layer has in the file")
    dtype: StringProperty(
        name="Number Type",
        description="Type of the layer's numbers in the file, as NumPy writes it",
    )
    dimension: IntProperty(
        name="Components",
        description="Numbers per vertex in the file",
        default=1,
        min=1,
    )
    attribute: StringProperty(name="Attribute", description="Attribute of the mesh that holds the layer's values")


class MeshferryMesh(bpy.types.PropertyGroup):
    """Properties of a mesh in its file that have no equivalent in Blender."""

    custom_layers: CollectionProperty(
        type=MeshferryCustomLayer,
        name="Custom Layers",
        description="Layers of the file that are kept as attributes of the mesh and written back on export",
    )
    file_vertices: IntProperty(
        name="Vertices on Import",
        description="Number of vertices the mesh had after its import; while it still has as many, "
        "its vertices are taken for those of the file",
        min=0,
    )
    is_welded: BoolProperty(
        name="Welded on Import", description="The vertices that the file splits along seams were joined on import"
    )
    file_corners: IntProperty(
        name="Corners on Import", description="Number of face corners the mesh had after its import", min=0
    )
    fingerprint: StringProperty(
        name="Checksums on Import", description="Checksums of the imported data as JSON, to find edits before a reload"
    )
    volume_factors: StringProperty(
        name="Factors by Volume", description="The factors that the mesh got last for its collision volumes, as JSON"
    )
    slot_names: StringProperty(
        name="Materials in File", description="Name that the material of each slot has in the file, as JSON"
    )
    symbols: StringProperty(
        name="Symbols in File",
        description="Symbols that materials have in the file by their names there, as JSON; they number the faces",
    )
    source_file: StringProperty(
        name="Source File",
        description="File that the mesh was made from in place of the engine's own, which was missing. "
        "It is not written over files of the engine's project",
    )
    source_identity: StringProperty(
        name="Missing Mesh", description="Identifier in the engine's project of the mesh that was missing"
    )
    backward_normals: FloatProperty(
        name="Backward Normals on Import",
        description="Share of the file's normals that point away from their faces; "
        "an export only mentions exact normals that were turned round since",
        min=0.0,
        max=1.0,
    )

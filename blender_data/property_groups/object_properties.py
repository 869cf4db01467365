"""Properties of files, bones and objects."""

import bpy

from ..export_options import PHYSICS_SHAPE
from .declarations import choice, collection, flag, integer, items_of, number, numbers, pointer, text


class NamedInFile:
    """The name of a data block in its file, for data blocks that Blender may have to rename."""

    source_name: text(
        "Name in File",
        "Name that this has in the file, where Blender had to give it another. "
        "Used on export while it keeps the name it got on import",
    )
    given_name: text(
        "Name on Import", "Name that Blender gave this on import; once it is renamed, its new name is exported"
    )


class MeshferryFile(bpy.types.PropertyGroup):
    """The file that a data block was last imported from or exported to."""

    path: text(
        "File",
        "The file that Re-export writes",
        subtype="FILE_PATH",  # text properties of other subtypes reject paths that are not UTF-8
        options={"ANIMATABLE", "PATH_SUPPORTS_BLEND_RELATIVE"},
    )
    format: text("Format", "Format of the file")
    digest: text("Digest", "SHA-256 of the file's content when it was read or written")
    options: text("Options", "Options of the export as JSON; empty: the file was imported")
    given: text("Given Options", "Names of options that override choices of the import, as JSON")
    clip_files: text("Files of Animations", "Files that the exported animations were imported from, as JSON")
    owner: text("Owner", "Name of the data block that the file belongs to, not to a copy")
    ledger: text("Ledger", "What exports removed from the file, as JSON; only set in the saved .blend file")


class MeshferryBone(NamedInFile, bpy.types.PropertyGroup):
    """The joint of a bone in its file. Its transform may have a scale, unlike a bone in Blender."""

    order: integer("Place in File", "Place of the bone in the file's table; -1: it was not imported", default=-1)
    bind_location: numbers("Joint Location", "Location of the joint relative to its parent's", size=3)
    bind_rotation: numbers(
        "Joint Rotation", "Rotation of the joint relative to its parent's", size=4, default=(1.0, 0.0, 0.0, 0.0)
    )
    bind_scale: numbers("Joint Scale", "Scale of the joint relative to its parent's", size=3, default=(1.0, 1.0, 1.0))
    rest_matrix: numbers(
        "Rest Matrix on Import",
        "Rest matrix that Blender gave the bone on import, row by row; "
        "while it is the same, the joint is exported as it was in the file",
        size=16,
    )
    bind_matrix: numbers(
        "Joint's World Matrix",
        "Bind transform of the joint in the space of its armature, with the scales of all joints above, row by row",
        size=16,
    )
    joint_name: text("Joint", "Name of the joint in the file, by which a reload finds the bone")
    parent_order: integer(
        "Parent on Import", "Place in the file's bone table of the joint that this one hung on; -1: none", default=-1
    )
    target_joint: text(
        "Joint", "Joint of the target skeleton that replaces the bone. If empty, the joint of its nearest parent"
    )
    is_control: flag("Control", "The bone only moves other bones. Exports leave it out", default=False)


class MeshferryArmature(bpy.types.PropertyGroup):
    """The bones of an armature as a whole."""

    bone_axes: text(
        "Bone Axes",
        "Rule by which the import or Meshferry laid out the bones, if actions depend on it. An action that "
        "was keyed for other axes poses the bones otherwise",
    )
    joint_names: text("Joints", "Names of the joints in the file, by which deleted bones are found")


class MeshferrySurfaceShape(bpy.types.PropertyGroup):
    """A shape key that a surface of the file contains."""

    name: text("Shape Key", "Name of the shape key")
    source_name: text("Name in File", "Name that the shape has in the file, maybe empty")


class MeshferrySurface(bpy.types.PropertyGroup):
    """A surface of a file: the triangles of one material slot."""

    name: text("Name", "Name of the surface in the file; need not be unique")
    material: pointer(
        "Material",
        "Material of the slot that the surface is; a surface follows its material when slots are moved",
        type=bpy.types.Material,
    )
    given_name: text(
        "Material on Import",
        "Name of the material on import; once the material is renamed, the surface gets its new name",
    )
    order: integer("Place in File", "Place of the surface in the file; -1: after all others", default=-1)
    lightmap_channel: integer("Lightmap UV", "UV channel of the surface's lightmap", default=1, min=0, max=1)
    lightmap_resolution: choice(
        "Lightmap Size",
        "Resolution of the surface's lightmap, in pixels",
        items=[(str(code), str(32 << code), f"{32 << code} × {32 << code} pixels") for code in range(8)],
        default="3",
    )
    has_uv0: flag("UV0", "The surface holds the first UV map", default=True)
    has_uv1: flag("UV1", "The surface holds the second UV map", default=True)
    has_colors: flag("Colors", "The surface holds vertex colours", default=True)
    has_weights: flag(
        "Weights", "The surface holds bone weights; it gets them anyway where vertex groups of bones move it"
    )
    shapes: collection(
        "Shapes", "Shape keys that the surface holds; it gets others where they move it", type=MeshferrySurfaceShape
    )
    base_name: text("Base Shape in File", "Name that the surface's base shape has in the file, mostly empty")
    has_domains: flag("Has Ranges", "The ranges below are those of the file")
    position_domain: numbers(
        "Position Range", "Least and most coordinates that the file stores the surface's points between", size=6
    )
    uv_domain: numbers("UV Range", "Least and most UVs that the file stores the surface's UVs between", size=4)


class MeshferrySkinJoint(bpy.types.PropertyGroup):
    """A joint to which the file binds a mesh."""

    name: text("Name", "Name of the joint in the file")
    inverse_bind: numbers("Inverse Bind Matrix", "From the space of the armature to the joint's, row by row", size=16)
    alt_inverse_bind: numbers("Alternative Inverse Bind Matrix", "Second matrix that the file has, row by row", size=16)
    position: numbers("Joint Position", "Wanted position relative to the joint's parent, in metres", size=3)


class MeshferrySkin(bpy.types.PropertyGroup):
    """The binding of a mesh to an armature in the file; exported unchanged with Keep as Imported."""

    joints: collection("Joints", "Joints in the order of the file", type=MeshferrySkinJoint)
    bind_shape: numbers("Bind Shape Matrix", "From the mesh's own space to the armature's, row by row", size=16)
    given_matrix: numbers(
        "Matrix on Import",
        "Matrix relative to the armature that Blender gave the object on import, row by row; "
        "while it is the same, the bind shape matrix holds",
        size=16,
    )
    has_positions: flag("Joint Positions", "The file moves joints")
    has_pelvis_offset: flag("Has Pelvis Offset", "The file gives one")
    pelvis_offset: number("Pelvis Offset", "Metres by which the whole avatar is lifted")
    lock_scale: flag("Lock Scale", "Body shape sliders do not scale joints whose positions are overridden")
    singular: text(
        "Singular Joints", "Bones with weights to which the file binds the mesh by matrices that cannot be inverted"
    )
    is_replaced: flag("Bound Anew", "The mesh was bound in Blender since, so the binding of the file is not shown")
    is_checked: flag(
        "Compared",
        "The binding of the file was compared with the bones, and an armature that shows it exists if it "
        "is another one",
    )
    is_aligned: flag("Aligned", "The joints rest exactly where the matrices bind them, in the space of the armature")


class MeshferryImportChoice(bpy.types.PropertyGroup):
    """The value that an option had when an object was imported."""

    name: text("Option", "Name of the import option")
    value: text("Value", "True, False or the name of a choice")


class MeshferryObject(NamedInFile, bpy.types.PropertyGroup):
    """Properties of an object in its file, which exports use."""

    file: pointer("File", "The file that the object last went to", type=MeshferryFile)
    exports: collection("Exports", "Last export in each format other than that of its source", type=MeshferryFile)
    is_root: flag(
        "Top-Level Node", "Export this object as a root of the file rather than below a root named like the collection"
    )
    is_linkset_root: flag(
        "Root of Linkset", "The object to which the others of its linkset are linked; uploads to OpenSim put it first"
    )
    body: text(
        "Body", "Name of the body that the mesh belongs to. Clothes are fitted on bodies; exports leave them out"
    )
    body_part: text("Part of the Figure", "Part of the target's own figure, of which shape keys follow the body shape")
    active_body: text("Active Body", "Of an armature: name of the body on which clothes are fitted now")
    import_id: text("Import", "The import that made the object; its collection has the same identifier")
    node_path: text("Node in File", "Name of the object's node in the file and of its parent, for a reload")
    node_key: text(
        "Key in File", "Identifies the object's node in a file that places models; an export finds the node by it"
    )
    is_model_part: flag(
        "Part of a Model", "The object is a part of the model that stands at a node of its file, and no node itself"
    )
    model_parts: integer("Parts of the Model", "Number of objects of the model that stands at the object's node")
    given_parent_key: text(
        "Node of Parent on Import", "Node of the parent that the object had when it was last in agreement with the file"
    )
    node_slots: text(
        "Surfaces of Slots",
        "Place of the surface of each material slot in the list of the node, as JSON; -1: not in the list",
    )
    given_materials: text(
        "Materials on Import",
        "Identity of the material of each slot when the object was last in agreement with the file",
    )
    given_mesh: text("Mesh on Import", "Identifies the mesh of the object's node in a file that places models")
    given_properties: text(
        "Properties on Import",
        "The custom properties that the file gives the object, as JSON. A reload changes them while they are the same",
    )
    shear: numbers(
        "Shear",
        "Matrix, row by row, that leads from the transform of the object to the one in the file, which "
        "Blender's objects cannot hold; zeros if none does",
        size=16,
    )
    given_hidden: flag(
        "Hidden on Import", "The object was disabled in viewports when it was last in agreement with the file"
    )
    has_hidden_surfaces: flag(
        "Hidden Surfaces", "The object is hidden since all surfaces of its node are, not the node itself"
    )
    given_space: text(
        "Space on Export", "Parent inverse, delta transform and what the last export applied to the mesh, as JSON"
    )
    given_transform: numbers(
        "Transform on Import",
        "Location, rotation and scale that the file gives the object. "
        "A reload places the object as in the file while it has not been moved",
        size=10,
    )
    file_matrix: text(
        "Matrix on Import", "The 16 numbers of the matrix that the file gives the object, in double precision"
    )
    has_rest: flag(
        "Own Rest Transform",
        "The file holds a rest transform apart from the animation; it is exported as it stands here",
    )
    rest_location: numbers("Rest Location", "Location while no animation plays", size=3, subtype="TRANSLATION")
    rest_rotation: numbers(
        "Rest Rotation", "Rotation while no animation plays", size=4, subtype="QUATERNION", default=(1.0, 0.0, 0.0, 0.0)
    )
    rest_scale: numbers("Rest Scale", "Scale while no animation plays", size=3, subtype="XYZ", default=(1.0, 1.0, 1.0))
    import_choices: collection(
        "Import Choices",
        "Options of the import that an export has to use again. Remove one to export like an object that "
        "was not imported",
        type=MeshferryImportChoice,
    )
    surfaces: collection(
        "Surfaces", "What the file says of the surfaces that its material slots are", type=MeshferrySurface
    )
    active_surface: integer("Active Surface", "Not used since 0.2: the active material slot is", min=0)
    lod: integer("Level of Detail", "0: the finest; others are exported with the object they stand for", min=0, max=63)
    lod_of: pointer(
        "LOD of",
        "The finest object of which this is a coarser level of detail; both are exported to one file",
        type=bpy.types.Object,
    )
    medium_level: pointer("Medium LOD", "Object that is the medium level of detail of this one", type=bpy.types.Object)
    low_level: pointer("Low LOD", "Object that is the low level of detail of this one", type=bpy.types.Object)
    lowest_level: pointer("Lowest LOD", "Object that is the lowest level of detail of this one", type=bpy.types.Object)
    physics_object: pointer("Physics", "Object that others collide with in place of this one", type=bpy.types.Object)
    physics_shape: choice(
        "Physics Shape",
        "What others collide with in place of this object",
        items=[
            ("DEFAULT", "As in Export Options", "The shape that the export options set for all objects"),
            *items_of(PHYSICS_SHAPE),
        ],
        default="DEFAULT",
    )
    usage: choice(
        "Use",
        "How the object is used in world, which determines what its cost is",
        items=[
            ("AUTO", "Automatic", "Worn if an armature deforms it, otherwise rezzed"),
            ("WORN", "Worn", "Attached to an avatar: its complexity counts, not its land impact"),
            ("REZZED", "Rezzed", "Placed on land: its land impact counts"),
            ("ANIMESH", "Animesh", "Placed on land with a skeleton of its own that animates it"),
        ],
        default="AUTO",
    )
    role: choice(
        "Role",
        "What the object is for in its file",
        items=[
            ("RENDER", "Shown", "A model, or a level of detail of one"),
            ("PHYSICS", "Physics", "What others collide with in place of the object it belongs to"),
            ("HULL", "Hull", "One of the convex hulls that others collide with"),
            ("BASE_HULL", "Base Hull", "The one convex hull around everything"),
        ],
        default="RENDER",
    )
    shape_of: pointer("Shape Of", "The object of which this is the physics shape or a hull", type=bpy.types.Object)
    skin: pointer("Binding", "How the file binds the mesh to its armature", type=MeshferrySkin)
    binding: pointer(
        "Shown Binding",
        "Armature that deforms the mesh as its file binds it, in place of its own",
        type=bpy.types.Object,
    )
    is_binding: flag(
        "Shows a Binding",
        "The armature only shows meshes as their files bind them to another one, whose bones it follows",
    )
    skeleton_guid: text(
        "Skeleton", "Identity of the skeleton file that an armature's animations refer to in the engine"
    )
    skeleton_path: text("Skeleton File", "Path of the skeleton file inside the engine's project")
    skeleton_data: text("Skeleton Data", "Rest pose, masks, profiles and retargeting of the skeleton file, as JSON")
    use_bone_table: flag(
        "Own Bone Table",
        "Use the joints that were chosen for the bones of this armature, not those of the bundled tables",
    )
    active_bone: integer("Bone", "Selected bone of the bone table", min=0)
    bone_palettes: text("Bone Colors", "Colour sets of bones while they show priorities, as JSON by bone name")
    rest_is_basis: flag(
        "Rest Shape Is the Basis",
        "The mesh rests in its Basis shape, without its vertex animation, rather than as it stands at the first frame",
    )

"""Document -> files: textures, and Collada 1.4.1 restricted to what the viewer reads (formats page, section 10.1).

The viewer uploads them apart from the meshes (*Build > Upload > Material*) and ignores texture transforms of the files,
so that repeats, offset and rotation are reported for the user to enter.
"""

from collections.abc import Collection, Iterable, Sequence
from xml.etree import ElementTree as ET

import numpy as np
import numpy.typing as npt

from ...core.format import OutputFile
from ...core.glb_materials import GltfMaterial, TextureUse, write_material
from ...core.messages import Text, counted, joined, listed
from ...passes.lod_names import PHYSICS_SUFFIX
from . import document as upload_set_document
from .document import SUFFIXES, ColladaFile, Geometry, Image, Instance, JointTree, Skin, UploadSet
from .levels import face_numbers

AUTHORING_TOOL = "Meshferry"
"""Name of the authoring tool in the header of each file; an import recognises files of Meshferry's own exports by
it."""

_SCHEMA = "http://www.collada.org/2005/11/COLLADASchema"
_WHEN = "2000-01-01T00:00:00Z"
"""The schema requires a time; it is constant so that the same content gives the same bytes."""

_UV_SET = "UVMap"

Element = ET.Element


def _add(parent: Element, tag: str, text: str | None = None, **attributes: object) -> Element:
    child = ET.SubElement(parent, tag, {key: str(value) for key, value in attributes.items()})
    child.text = text
    return child


class Collada:
    """Write the files of a set. Materials, textures and repeated geometries are encoded once.

    Parameters
    ----------
    textures:
        File names of the images.
    prefix:
        Prefix of these file names. The names of images in the document omit it, so that exporting the imported files
        again gives the same file names.
    """

    def __init__(self, document: UploadSet, textures: Sequence[str], prefix: str = "") -> None:
        self.materials = document.materials
        self.images = document.images
        self.textures = textures
        symbols = [material.symbol for material in document.materials]
        self._material_ids = [f"{n}-material" for n in _identifiers(symbols)]
        self._id_of_symbol = dict(zip(symbols, self._material_ids, strict=True))
        self._effect_ids = [f"{found.removesuffix('-material')}-effect" for found in self._material_ids]
        self._image_names = [image.name.removeprefix(prefix) for image in document.images]
        self._image_ids = [f"{n}-image" for n in _identifiers(self._image_names)]
        self._geometries: dict[tuple[int, str], Element] = {}

    def encode(self, file: ColladaFile) -> bytes:
        """Encode a file."""
        root = Element("COLLADA", xmlns=_SCHEMA, version="1.4.1")
        _asset(root)
        used = {face.symbol for instance in file.instances for face in instance.geometry.faces}
        materials = [number for number, material in enumerate(self.materials) if material.symbol in used]
        has_images = file.suffix != PHYSICS_SUFFIX
        if has_images:
            self._add_images(root, sorted({image for n in materials if (image := self.materials[n].image) is not None}))
        effects = _add(root, "library_effects")
        library = _add(root, "library_materials")
        for number in materials:
            self._add_effect(effects, number, has_image=has_images)
            material = self.materials[number]
            own = _add(library, "material", id=self._material_ids[number], name=material.name)
            _add(own, "instance_effect", url=f"#{self._effect_ids[number]}")
        geometries = list({id(instance.geometry): instance.geometry for instance in file.instances}.values())
        geometry_ids = _identifiers([geometry.name for geometry in geometries])
        id_of = {id(geometry): found for geometry, found in zip(geometries, geometry_ids, strict=True)}
        geometry_library = _add(root, "library_geometries")
        geometry_library.extend(map(self._geometry, geometries, geometry_ids))
        skinned = [
            (instance.skin, id_of[id(instance.geometry)]) for instance in file.instances if instance.skin is not None
        ]
        if skinned:
            controllers = _add(root, "library_controllers")
            for skin, geometry_id in skinned:
                _add_controller(controllers, skin, geometry_id)
        scenes = _add(root, "library_visual_scenes")
        scene = _add(scenes, "visual_scene", id="visual_scene-0", name="Scene")
        roots = [_add_tree(scene, tree, number, len(file.trees)) for number, tree in enumerate(file.trees)]
        node_ids = _identifiers([instance.name for instance in file.instances])
        for instance, node_id in zip(file.instances, node_ids, strict=True):
            self._add_instance(scene, instance, node_id, id_of[id(instance.geometry)], roots)
        _add(_add(root, "scene"), "instance_visual_scene", url="#visual_scene-0")
        ET.indent(root)
        encoded: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=False)
        return b'<?xml version="1.0" encoding="utf-8"?>\n' + encoded + b"\n"

    # -- materials ------------------------------------------------------------------------------

    def _add_images(self, root: Element, images: Sequence[int]) -> None:
        if not images:
            return
        library = _add(root, "library_images")
        for number in images:
            image = self.images[number]
            own = _add(library, "image", id=self._image_ids[number], name=self._image_names[number])
            _add(own, "init_from", _address(image, self.textures[number]))

    def _add_effect(self, effects: Element, number: int, *, has_image: bool) -> None:
        """Add the effect of a material: a Lambert shader with its image or colour."""
        material = self.materials[number]
        effect = _add(effects, "effect", id=self._effect_ids[number])
        profile = _add(effect, "profile_COMMON")
        image = material.image if has_image else None
        if image is not None:
            image_id = self._image_ids[image]
            surface = _add(_add(profile, "newparam", sid=f"{image_id}-surface"), "surface", type="2D")
            _add(surface, "init_from", image_id)
            sampler = _add(_add(profile, "newparam", sid=f"{image_id}-sampler"), "sampler2D")
            _add(sampler, "source", f"{image_id}-surface")
        shading = _add(_add(profile, "technique", sid="common"), "lambert")
        grey = material.emission
        _add(_add(shading, "emission"), "color", real_words(np.array((grey, grey, grey, 1.0)), 6), sid="emission")
        diffuse = _add(shading, "diffuse")
        if image is not None:
            _add(diffuse, "texture", texture=f"{self._image_ids[image]}-sampler", texcoord=_UV_SET)
        else:
            _add(diffuse, "color", real_words(np.array(material.color), 6), sid="diffuse")
        refraction = _add(shading, "index_of_refraction")  # Blender's importer warns if it is missing
        _add(refraction, "float", "1.45", sid="ior")

    # -- geometry -------------------------------------------------------------------------------

    def _geometry(self, geometry: Geometry, geometry_id: str) -> Element:
        key = (id(geometry), geometry_id)
        if key not in self._geometries:
            self._geometries[key] = _geometry_element(geometry, geometry_id)
        return self._geometries[key]

    # -- objects --------------------------------------------------------------------------------

    def _add_instance(
        self, scene: Element, instance: Instance, node_id: str, geometry_id: str, roots: Sequence[Sequence[str]]
    ) -> None:
        """Add the node of an instance, with the materials of its faces; ``roots`` are the root joints of each tree."""
        node = _add(scene, "node", id=f"{node_id}-node", name=instance.name, type="NODE")
        _add(node, "matrix", real_words(instance.matrix, 12), sid="transform")
        if instance.skin is not None:
            own = _add(node, "instance_controller", url=f"#{geometry_id}-skin")
            for root in roots[instance.skin.tree]:
                _add(own, "skeleton", f"#{root}")
        else:
            # The viewer matches the levels of an instance by this name, which is that of its geometry.
            own = _add(node, "instance_geometry", url=f"#{geometry_id}-mesh", name=instance.geometry.name)
        technique = _add(_add(own, "bind_material"), "technique_common")
        for face in instance.geometry.faces:
            bound = _add(
                technique, "instance_material", symbol=face.symbol, target=f"#{self._id_of_symbol[face.symbol]}"
            )
            _add(bound, "bind_vertex_input", semantic=_UV_SET, input_semantic="TEXCOORD", input_set=0)


def _identifiers(wanted: Sequence[str]) -> list[str]:
    """Return a unique XML id for each name, in order."""
    taken: set[str] = set()
    return [upload_set_document.unique_identifier(name, taken) for name in wanted]


def _asset(root: Element) -> None:
    asset = _add(root, "asset")
    _add(_add(asset, "contributor"), "authoring_tool", AUTHORING_TOOL)
    _add(asset, "created", _WHEN)
    _add(asset, "modified", _WHEN)
    _add(asset, "unit", name="meter", meter="1")
    _add(asset, "up_axis", "Z_UP")


def _address(image: Image, name: str) -> str:
    """Return the URL of an image relative to the files."""
    if image.is_copied or image.path is None:
        return name
    return image.path.as_uri() if image.path.is_absolute() else image.path.as_posix()


def _geometry_element(geometry: Geometry, geometry_id: str) -> Element:
    mesh_id = f"{geometry_id}-mesh"
    element = Element("geometry", id=mesh_id, name=geometry.name)
    mesh = _add(element, "mesh")
    _add_rows(mesh, f"{mesh_id}-positions", geometry.positions, "XYZ")
    _add_rows(mesh, f"{mesh_id}-normals", geometry.normals, "XYZ")
    if geometry.uvs is not None:
        _add_rows(mesh, f"{mesh_id}-map-0", geometry.uvs, "ST")
    vertices = _add(mesh, "vertices", id=f"{mesh_id}-vertices")
    _add(vertices, "input", semantic="POSITION", source=f"#{mesh_id}-positions")
    for face in geometry.faces:
        group = _add(mesh, "triangles", material=face.symbol, count=len(face.corners) // 3)
        _add(group, "input", semantic="VERTEX", source=f"#{mesh_id}-vertices", offset=0)
        _add(group, "input", semantic="NORMAL", source=f"#{mesh_id}-normals", offset=1)
        if geometry.uvs is not None:
            _add(group, "input", semantic="TEXCOORD", source=f"#{mesh_id}-map-0", offset=2, set=0)
        _add(group, "p", integer_words(face.corners))
    return element


def _add_rows(parent: Element, source_id: str, values: npt.NDArray[np.floating], params: Sequence[str]) -> None:
    """Add rows of numbers (n, k) with k named parameters."""
    _add_source(parent, source_id, real_words(values), len(values), params)


def _add_source(
    parent: Element, source_id: str, text: str, count: int, params: Sequence[str], kind: str = "float"
) -> None:
    """Add the text of ``count`` rows with these parameters; a matrix is one parameter of 16 numbers."""
    stride = 16 if kind == "float4x4" else len(params)
    source = _add(parent, "source", id=source_id)
    array_id = f"{source_id}-array"
    _add(source, "Name_array" if kind == "name" else "float_array", text, id=array_id, count=count * stride)
    technique = _add(source, "technique_common")
    accessor = _add(technique, "accessor", source=f"#{array_id}", count=count, stride=stride)
    for name in params:
        _add(accessor, "param", name=name, type=kind)


# -- numbers; the fast path matters: a body of 60,000 triangles has half a million numbers ---


def real_words(values: npt.NDArray[np.floating], digits: int = 9) -> str:
    """Return numbers in the array's order, separated by spaces; 9 digits restore every float32 exactly."""
    return _text(np.asarray(values) + 0.0, f"%.{digits}g")  # + 0.0 turns -0.0 into 0.0


def integer_words(values: npt.NDArray[np.integer]) -> str:
    """Return integers in the array's order, separated by spaces."""
    return _text(values, "%d")


def _text(values: npt.NDArray[np.generic], form: str) -> str:
    return " ".join([form] * values.size) % tuple(values.reshape(-1).tolist())


# -- skins ----------------------------------------------------------------------------------------


def _add_controller(controllers: Element, skin: Skin, geometry_id: str) -> None:
    skin_id = f"{geometry_id}-skin"
    controller = _add(controllers, "controller", id=skin_id, name=skin_id)
    element = _add(controller, "skin", source=f"#{geometry_id}-mesh")
    _add(element, "bind_shape_matrix", real_words(np.identity(4), 12))
    joints_id = f"{skin_id}-joints"
    # These joints are bones of the avatar table, whose names contain no spaces.
    _add_source(element, joints_id, " ".join(skin.joint_names), len(skin.joint_names), ("JOINT",), "name")
    poses = real_words(skin.inverse_bind, 12)
    _add_source(element, f"{skin_id}-bind_poses", poses, len(skin.inverse_bind), ("TRANSFORM",), "float4x4")
    present = skin.joint_weights > 0
    weights, number = np.unique(skin.joint_weights[present], return_inverse=True)
    _add_rows(element, f"{skin_id}-weights", weights[:, None], ("WEIGHT",))
    joints = _add(element, "joints")
    _add(joints, "input", semantic="JOINT", source=f"#{joints_id}")
    _add(joints, "input", semantic="INV_BIND_MATRIX", source=f"#{skin_id}-bind_poses")
    influences = _add(element, "vertex_weights", count=len(present))
    _add(influences, "input", semantic="JOINT", source=f"#{joints_id}", offset=0)
    _add(influences, "input", semantic="WEIGHT", source=f"#{skin_id}-weights", offset=1)
    _add(influences, "vcount", integer_words(present.sum(axis=1)))
    _add(influences, "v", integer_words(np.column_stack((skin.joint_indices[present], number.reshape(-1)))))


def _add_tree(scene: Element, tree: JointTree, number: int, trees: int) -> list[str]:
    """Add the joints of an armature; return the ids of its roots.

    Ids differ between armatures, sids are the joint names.
    """
    before = f"tree{number + 1}_" if trees > 1 else ""
    ids = [before + found for found in _identifiers([joint.name for joint in tree.joints])]
    holder_id = f"{before}armature-joints"
    above = _add(scene, "node", id=holder_id, name=tree.name, type="NODE")
    nodes: list[Element] = []
    for joint, joint_id in zip(tree.joints, ids, strict=True):
        parent = nodes[joint.parent] if joint.parent >= 0 else above
        node = _add(parent, "node", id=joint_id, name=joint.name, sid=joint.name, type="JOINT")
        _add(node, "matrix", real_words(joint.local, 12), sid="transform")
        nodes.append(node)
    return [found for joint, found in zip(tree.joints, ids, strict=True) if joint.parent < 0]


_LABELS = {
    TextureUse.BASE_COLOR: "base colour",
    TextureUse.METALLIC_ROUGHNESS: "metallic-roughness",
    TextureUse.NORMAL: "normal",
    TextureUse.EMISSIVE: "emissive",
}
_MOST_FACES_NAMED = 3


def pbr_names(materials: Iterable[str], stem: str) -> list[str]:
    """Return the file names of PBR materials from the names of the materials; each starts with the name of the set."""
    return upload_set_document.file_names(
        [f"{upload_set_document.plain_file_name(material)}.glb" for material in materials], stem
    )


def pbr_files(document: UploadSet, stem: str) -> list[OutputFile]:
    """Encode the PBR materials of a set; each file has a note with its faces and its repeats."""
    symbols: dict[int, list[str]] = {}
    found: dict[int, tuple[str, GltfMaterial]] = {}
    # a face with too many vertices is split into parts, which share one glTF material
    for material in document.materials:
        if material.gltf is not None:
            found.setdefault(id(material.gltf), (material.name, material.gltf))
            symbols.setdefault(id(material.gltf), []).append(material.symbol)
    numbers = _faces(document)
    files = pbr_names([name for name, _gltf in found.values()], stem)
    return [
        OutputFile(
            file,
            write_material(gltf),
            note=_note([face for symbol in symbols[key] for face in numbers.get(symbol, ())], gltf, file),
        )
        for (key, (_name, gltf)), file in zip(found.items(), files, strict=True)
    ]


Face = tuple[int, int, str]
"""Part of the mesh, number of the face in that part, and name of the object (empty if there is only one object)."""


def _faces(document: UploadSet) -> dict[str, list[Face]]:
    """Return the faces of each material, by its symbol; the viewer counts faces from 0."""
    instances = document.files[0].instances
    found: dict[str, list[Face]] = {}
    for instance in instances:
        name = instance.geometry.name if len(instances) > 1 else ""
        for symbol, (part, number) in face_numbers(face.symbol for face in instance.geometry.faces).items():
            found.setdefault(symbol, []).append((part, number, name))
    return found


def _face_text(face: Face) -> Text:
    part, number, name = face
    text = Text("face {}", number)
    text = Text("{} of part {}", text, part + 1) if part else text
    return Text("{} of '{}'", text, name) if name else text


def _note(faces: list[Face], gltf: GltfMaterial, file: str) -> Text:
    faces = list(dict.fromkeys(faces))
    rest = len(faces) - _MOST_FACES_NAMED
    where = joined(map(_face_text, faces[:_MOST_FACES_NAMED]))
    where = Text("{} and {}", where, counted(rest, "more face")) if rest > 0 else where
    is_plain = not any(part or name for part, _number, name in faces[:_MOST_FACES_NAMED])
    used = Text("{} '{}'", where, gltf.name) if is_plain else Text("'{}' on {}", gltf.name, where)
    return joined([Text("{} → {}", used, file), *_transforms(gltf)], "; ")


def _transforms(gltf: GltfMaterial) -> list[Text]:
    """Describe the texture transforms of a material; if all textures have the same transform, only once."""
    transforms = {label: gltf.textures[use].transform for use, label in _LABELS.items() if use in gltf.textures}
    shown = {
        label: upload_set_document.shown_transform(found.scale, found.offset, found.rotation)
        for label, found in transforms.items()
    }
    if len(set(shown.values())) == 1:
        return [text for text in list(shown.values())[:1] if text]
    return [Text("{} {}", Text(label), text or Text("repeats 1 × 1")) for label, text in shown.items()]


_OWN_MARK = f"<authoring_tool>{AUTHORING_TOOL}</authoring_tool>".encode()


def write_files(document: UploadSet, stem: str) -> list[OutputFile]:
    """Encode the files of all levels (``stem_LOD2.dae`` …), physics, textures and PBR materials; ``stem.dae`` is last.

    Existing files with other suffixes are marked as obsolete, since the viewer would use them because of their names.
    """
    textures = upload_set_document.file_names([image.name for image in document.images], stem)
    collada = Collada(document, textures, upload_set_document.set_prefix(stem))
    outputs = [OutputFile(f"{stem}{file.suffix}.dae", collada.encode(file)) for file in document.files]
    copies = [
        OutputFile(name, image.data if image.path is None else b"", copy_of=image.path)
        for image, name in zip(document.images, textures, strict=True)
        if image.is_copied
    ]
    chosen = chosen_file(stem, [file.suffix for file in document.files], outputs[0].data)
    chosen = chosen._replace(usage=_usage(document, [output.name for output in outputs]))
    return [*outputs[1:], *copies, *pbr_files(document, stem), chosen]


def _usage(document: UploadSet, files: Sequence[str]) -> str:
    """Return instructions for the viewer.

    The checkboxes come first, as Blender's status bar cuts long texts in the middle.
    """
    boxes = joined((Text("'{}'", box) for box in document.boxes), " and ")
    others = listed(files[1:], quote="")
    if boxes:
        return Text("tick {} when you upload {}; the viewer finds {} beside it", boxes, files[0], others)
    return Text("upload {}; the viewer finds {} beside it", files[0], others)


def chosen_file(stem: str, suffixes: Collection[str], data: bytes = b"") -> OutputFile:
    """Return the file to select in the viewer's file picker, for a set with these suffixes."""
    others = tuple(f"{stem}{suffix}.dae" for suffix in SUFFIXES if suffix not in suffixes)
    return OutputFile(
        f"{stem}.dae", data, obsolete=others, own_mark=_OWN_MARK, own_prefix=upload_set_document.set_prefix(stem)
    )


def write(document: UploadSet) -> bytes:
    """Encode only the file of the finest level."""
    return Collada(document, upload_set_document.file_names([image.name for image in document.images], "")).encode(
        document.files[0]
    )

"""PBR materials of an upload set: a ``.glb`` file for each, and the faces to which it belongs.

The viewer uploads them apart from the meshes (*Build > Upload > Material*) and ignores texture transforms of the files,
so that repeats, offset and rotation are reported for the user to enter.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from ...core.format import OutputFile
from ...core.glb_materials import GltfMaterial, TextureTransform, TextureUse, write_material
from ...core.messages import Text, counted, joined
from . import names
from .document import UploadSet
from .level_faces import face_numbers

_LABELS = {
    TextureUse.BASE_COLOR: "base colour",
    TextureUse.METALLIC_ROUGHNESS: "metallic-roughness",
    TextureUse.NORMAL: "normal",
    TextureUse.EMISSIVE: "emissive",
}
_MOST_FACES_NAMED = 3


def pbr_names(materials: Iterable[str], stem: str) -> list[str]:
    """Return the file names of PBR materials from the names of the materials; each starts with the name of the set."""
    return names.file_names([f"{names.plain_file_name(material)}.glb" for material in materials], stem)


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
    shown = {label: _shown(transform) for label, transform in transforms.items()}
    if len(set(shown.values())) == 1:
        return [text for text in list(shown.values())[:1] if text]
    return [Text("{} {}", Text(label), text or Text("repeats 1 × 1")) for label, text in shown.items()]


def _shown(transform: TextureTransform) -> Text:
    """Describe a transform with the values of the viewer's texture panel.

    Whole numbers in an offset are dropped, since they have no effect on repeating textures.
    """
    offset = [round(value % 1.0, 4) % 1.0 for value in transform.offset]
    degrees = round(math.degrees(transform.rotation), 3)
    parts = [
        Text("repeats {:g} × {:g}", *transform.scale) if tuple(transform.scale) != (1.0, 1.0) else "",
        Text("offset {:g}, {:g}", *offset) if any(offset) else "",
        Text("rotation {:g}°", degrees) if degrees else "",
    ]
    return joined(part for part in parts if part)

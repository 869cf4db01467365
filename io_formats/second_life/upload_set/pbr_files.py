"""PBR materials of an upload set: a ``.glb`` file for each, and the faces to which it belongs.

The viewer uploads them apart from the meshes (*Build > Upload > Material*) and ignores texture transforms of the files,
so that repeats, offset and rotation are reported for the user to enter.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from ...core.gltf_materials import GltfMaterial, TextureTransform, TextureUse, write_material
from ...core.messages import counted
from ...core.output_file import OutputFile
from . import names
from .document import UploadSet
from .face_numbers import face_numbers

_LABELS = {
    TextureUse.BASE_COLOR: "base colour",
    TextureUse.METALLIC_ROUGHNESS: "metallic-roughness",
    TextureUse.NORMAL: "normal",
    TextureUse.EMISSIVE: "emissive",
}
_MOST_FACES_NAMED = 3


def pbr_names(materials: Iterable[str], stem: str) -> list[str]:
    """Return the names of the files of PBR materials, given the names of the materials; the set's name is in front."""
    before = f"{names.plain_file_name(stem)}_" if stem else ""
    taken: set[str] = set()
    found: list[str] = []
    for material in materials:
        plain = names.plain_file_name(material)
        name = names.unique(plain if plain.startswith(before) else before + plain, taken)
        taken.add(name.casefold())
        found.append(name + ".glb")
    return found


def pbr_files(document: UploadSet, stem: str) -> list[OutputFile]:
    """Encode the PBR materials of a set; each file has a note with its faces and its repeats."""
    symbols: dict[int, list[str]] = {}
    found: dict[int, tuple[str, GltfMaterial]] = {}
    for material in document.materials:  # parts of a face with too many vertices share the glTF material of the whole
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


def _faces(document: UploadSet) -> dict[str, list[str]]:
    """Return the faces of each material, by its symbol, as ``face 2 of 'Boots'``; the viewer counts faces from 0."""
    instances = document.files[0].instances
    found: dict[str, list[str]] = {}
    for instance in instances:
        for symbol, (part, number) in face_numbers(face.symbol for face in instance.geometry.faces).items():
            text = f"face {number}"
            text += f" of part {part + 1}" if part else ""
            text += f" of '{instance.geometry.name}'" if len(instances) > 1 else ""
            found.setdefault(symbol, []).append(text)
    return found


def _note(faces: list[str], gltf: GltfMaterial, name: str) -> str:
    faces = list(dict.fromkeys(faces))
    rest = len(faces) - _MOST_FACES_NAMED
    where = ", ".join(faces[:_MOST_FACES_NAMED]) + (f" and {counted(rest, 'more face')}" if rest > 0 else "")
    used = f"'{gltf.name}' on {where}" if " of " in where else f"{where} '{gltf.name}'"
    return f"{used} → {name}" + "".join(f"; {text}" for text in _transforms(gltf))


def _transforms(gltf: GltfMaterial) -> list[str]:
    """Describe the texture transforms of a material, once if all textures have the same."""
    shown = {label: _shown(gltf.textures[use].transform) for use, label in _LABELS.items() if use in gltf.textures}
    if len(set(shown.values())) == 1:
        return [text for text in list(shown.values())[:1] if text]
    return [f"{label} {text or 'repeats 1 × 1'}" for label, text in shown.items()]


def _shown(transform: TextureTransform) -> str:
    """Return a transform as the viewer's texture panel shows it; whole offsets have no effect on repeating textures."""
    offset = [round(value % 1.0, 4) % 1.0 for value in transform.offset]
    degrees = round(math.degrees(transform.rotation), 3)
    across, up = transform.scale
    parts = [
        f"repeats {across:g} × {up:g}" if (across, up) != (1.0, 1.0) else "",
        f"offset {offset[0]:g}, {offset[1]:g}" if any(offset) else "",
        f"rotation {degrees:g}°" if degrees else "",
    ]
    return ", ".join(part for part in parts if part)

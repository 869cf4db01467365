"""Document -> files: textures, and Collada 1.4.1 restricted to what the viewer reads (formats page, section 10.1)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from ...core.format import OutputFile
from ...core.messages import Text, joined, listed
from . import names
from .collada import AUTHORING_TOOL, Collada
from .document import SUFFIXES, UploadSet
from .pbr_files import pbr_files

_OWN_MARK = f"<authoring_tool>{AUTHORING_TOOL}</authoring_tool>".encode()


def write_files(document: UploadSet, stem: str) -> list[OutputFile]:
    """Encode the files of all levels (``stem_LOD2.dae`` …), physics, textures and PBR materials; ``stem.dae`` is last.

    Existing files with other suffixes are marked as obsolete, since the viewer would use them because of their names.
    """
    textures = names.file_names([image.name for image in document.images], stem)
    collada = Collada(document, textures, names.set_prefix(stem))
    outputs = [OutputFile(f"{stem}{file.suffix}.dae", collada.encode(file)) for file in document.files]
    copies = [
        OutputFile(name, image.data if image.path is None else b"", copy_of=image.path)
        for image, name in zip(document.images, textures, strict=True)
        if image.is_copied
    ]
    chosen = chosen_file(stem, [file.suffix for file in document.files], outputs[0].data)
    chosen = replace(chosen, usage=_usage(document, [output.name for output in outputs]))
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
    return OutputFile(f"{stem}.dae", data, obsolete=others, own_mark=_OWN_MARK, own_prefix=names.set_prefix(stem))


def write(document: UploadSet) -> bytes:
    """Encode only the file of the finest level."""
    return Collada(document, names.file_names([image.name for image in document.images], "")).encode(document.files[0])

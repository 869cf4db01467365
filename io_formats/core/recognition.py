"""Results of recognising a file by its content; recognition of XML files and of files of other programs."""

import codecs
import contextlib
import functools
import re
from enum import IntEnum
from typing import NamedTuple

from .messages import Text


class Match(IntEnum):
    """The evidence for a format. The format with the strongest evidence reads the file."""

    NONE = 0
    PLAUSIBLE = 1
    """The first bytes are possible in the format. It has no signature."""
    LENGTH = 2
    """The file is exactly as long as its header requires. The format has no signature."""
    SIGNATURE = 3
    """The file starts with the format's signature."""


class NearMiss(NamedTuple):
    """A file that the format does not read but can explain, such as one of an unsupported version."""

    text: str
    """A sentence without a full stop."""
    has_signature: bool = False
    """Whether the file has a signature, which rules out every format without one."""

    def __bool__(self) -> bool:
        """Return False, like ``Match.NONE``, since the format does not recognise the file."""
        return False


_STARTS = (
    (b"glTF", "glTF binary; Blender imports it itself"),
    (b"PK\x03\x04", "a zip archive; unpack it first"),
    (b"BLENDER", "a .blend file; open it with File > Open"),
    (b"Kaydara FBX", "FBX; Blender imports it itself"),
    (b"ply", "PLY; Blender imports it itself"),
    (b"UnityFS", "a Unity asset bundle; extract the model first"),
    (b"version https://git-lfs", "a Git LFS pointer instead of the file itself; run 'git lfs pull' where it came from"),
    (b"\x00\x10[MeshSerializer_v", "an OGRE mesh"),
    (b"\x10\x00[MeshSerializer_v", "an OGRE mesh"),
    (b"\x00\x10[Serializer_v", "an OGRE skeleton"),
    (b"\x10\x00[Serializer_v", "an OGRE skeleton"),
    (b"@@b@", "a Paradox mesh or animation (Clausewitz engine)"),
)
_KINDS = (
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"\xff\x4f\xff\x51", "a JPEG 2000 image"),
    (b"\0\0\0\x0cjP  ", "a JPEG 2000 image"),
    (b"II*\0", "a TIFF image"),
    (b"MM\0*", "a TIFF image"),
    (b"DDS ", "a DDS texture"),
    (b"\x76\x2f\x31\x01", "an OpenEXR image"),
    (b"\x89HDF\r\n\x1a\n", "a MED mesh or another HDF5 file"),
    (b"MeshVersionFormatted", "an INRIA mesh (Medit)"),
    (b"$MeshFormat", "a Gmsh mesh"),
    (b"# vtk DataFile", "a VTK file"),
    (b"OggS", "an Ogg sound or video"),
    (b"RIFF", "a sound, video or WebP image (RIFF)"),
    (b"%PDF-", "a PDF document"),
    (b"\x7fELF", "a program"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!\x1a\x07", "a RAR archive"),
    (b"\x1f\x8b\x08", "a gzip archive"),
)
"""Starts of files that other programs read."""
_TEXT = rb"[\t\n\f\r\x20-\x7e\x80-\xff]+"
_TEXT_STARTS = (
    (b"<!DOCTYPE html", "a web page; the download went wrong"),
    (b"<html", "a web page; the download went wrong"),
)
_UNITY_CLASSES = ((b"AnimationClip:", "a Unity animation clip"), (b"Mesh:", "a Unity mesh asset"))


def signature_text(head: bytes) -> str:
    """Return a sentence about a file with another program's signature, or an empty string."""
    for magic, text in _STARTS:
        if head.startswith(magic):
            return Text("This is {}", Text(text))
    return _text(head)


def is_unity_asset(head: bytes) -> bool:
    """Return whether the Unity editor wrote this file as the text of a mesh or an animation clip."""
    return bool(_unity_class(head))


def _text(head: bytes) -> str:
    """Return a sentence about a text file of another program, such as HTML, OGRE or Unity, or an empty string."""
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    for magic, said in _TEXT_STARTS:
        if text[: len(magic)].lower() == magic.lower():
            return Text("This is {}", Text(said))
    if text.startswith(b"<"):
        root = re.match(rb"(?:<\?.*?\?>|<!--.*?-->|<!DOCTYPE[^>]*>|\s)*<([A-Za-z]+)[\s>]", text, re.DOTALL)
        if root and root[1] in (b"mesh", b"skeleton") and re.search(rb"<(sharedgeometry|submeshes|bones)[\s>]", text):
            return "This is an OGRE mesh or skeleton in XML"
    if text.startswith(b"<?xml"):
        return "This is XML"
    unity = _unity_class(head)
    return Text("This is {}", Text(unity)) if unity else ""


def likely_text(head: bytes) -> str:
    """Return a sentence about plain text or a file with another program's short signature, or an empty string."""
    text = head.removeprefix(b"\xef\xbb\xbf")
    kind = next((kind for magic, kind in _KINDS if text.lstrip().startswith(magic)), "")
    if not kind and re.fullmatch(_TEXT, text):
        with contextlib.suppress(UnicodeDecodeError):
            # An incremental decoder accepts a head that ends within a multi-byte character.
            codecs.getincrementaldecoder("utf-8")().decode(text)
            kind = "plain text"
    return Text("not a format that Meshferry reads; it looks like {}", Text(kind)) if kind else ""


def _unity_class(head: bytes) -> str:
    if not head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"%YAML"):
        return ""
    found = re.search(rb"^--- !u!\d+ &-?\d+[^\n]*\n(\w+:)", head, re.MULTILINE)
    return next((said for name, said in _UNITY_CLASSES if found and found[1] == name), "")


_START = r"(?:\s|<\?.*?\?>|<!--.*?-->|<!DOCTYPE[^>\[]*\[[^\]]*\]\s*>)*+(?:<!DOCTYPE\s+|<(?:[\w.-]+:)?)"
"""A document type is matched, too, so that the reader can state why it rejects the file. The repetition is possessive:
otherwise the matching time would double with each processing instruction."""
_ENCODINGS = ((b"\xff\xfe", "utf-16-le"), (b"<\0", "utf-16-le"), (b"\xfe\xff", "utf-16-be"), (b"\0<", "utf-16-be"))


def is_markup(head: bytes) -> bool:
    """Return whether the first character is ``<``, after a byte order mark and blanks."""
    return head.lstrip(b"\xef\xbb\xbf\xff\xfe\0 \t\n\v\f\r").startswith(b"<")


def has_root(head: bytes, *names: str) -> bool:
    """Return whether the root element or document type has one of these names, in any namespace."""
    encoding = next((name for mark, name in _ENCODINGS if head.startswith(mark)), "utf-8")
    return is_markup(head) and bool(_pattern(names).match(head.decode(encoding, "replace").lstrip("\ufeff")))


@functools.cache
def _pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"{_START}(?:{'|'.join(names)})[\s>/\[]", re.DOTALL)

"""What a file that no format recognises looks like: several programs share ``.mesh``, ``.anim`` and ``.skeleton``."""

from __future__ import annotations

import codecs
import contextlib
import math
import re
import struct

from .mesh_serializer import layout
from .mesh_serializer.likeness import likeness

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
    (b"<? LLSD/Binary ?>", "a Second Life file, but not a mesh"),
)
_KINDS = (
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
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
_TEXT = re.compile(rb"[\t\n\f\r\x20-\x7e\x80-\xff]+")
_TEXT_STARTS = (
    (b"<!DOCTYPE html", "a web page; the download went wrong"),
    (b"<html", "a web page; the download went wrong"),
)
_UNITY_CLASSES = ((b"AnimationClip:", "a Unity animation clip"), (b"Mesh:", "a Unity mesh asset"))
_UNIGINE_KINDS = {b"mr": "mesh", b"ms": "mesh", b"sk": "skinned mesh", b"sn": "skeleton", b"an": "animation"}
_VIEWER_CACHE = re.compile(rb"\x01\0\0\0.{8}\{\0\0\0.k\0\0\0", re.DOTALL)
"""A version, the size of the header and flags in front of a mesh asset."""


def looks_like(head: bytes, size: int) -> str:
    """Say what a file is that starts with ``head`` and is ``size`` bytes long, in a sentence without a full stop."""
    if size == 0:
        return "The file is empty"
    for magic, text in _STARTS:
        if head.startswith(magic):
            return f"This is {text}"
    said = (
        _unigine_version(head)
        or _text(head)
        or _second_life_data(head)
        or _second_life_motion(head)
        or _likely_kind(head)
        or likeness(head, size)
    )
    return said or "not a format that Meshferry reads"


def is_marked(head: bytes) -> bool:
    """Return whether a file starts with the mark of another program, whatever its length fits."""
    marked = any(head.startswith(magic) for magic, _ in _STARTS) or bool(_unigine_version(head))
    return marked or bool(_text(head) or _second_life_data(head))


def has_length_of_unity_mesh(head: bytes, size: int) -> bool:
    """Return whether a file is to the byte as long as it would have to be as a mesh of Unity's MeshSerializer.

    That says more than a first byte or two, which every hundredth of these meshes shares with some other format.
    """
    return layout.fits(head, size) or layout.fits_first(head, size) or layout.fits_cached(head, size)


def is_unity_asset(head: bytes) -> bool:
    """Return whether a file is a mesh or an animation clip that the Unity editor wrote as text."""
    return bool(_unity_class(head))


def _unigine_version(head: bytes) -> str:
    kind = _UNIGINE_KINDS.get(head[:2])
    if kind is None or not re.match(rb"..\d\d(?![0-9A-Za-z])", head[:5] + b" ", re.DOTALL):
        return ""
    return f"This looks like a UNIGINE {kind} of version {head[:4].decode('ascii')}, which is not supported"


def _text(head: bytes) -> str:
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    for magic, said in _TEXT_STARTS:
        if text[: len(magic)].lower() == magic.lower():
            return f"This is {said}"
    if text.startswith(b"<"):
        root = re.match(rb"(?:<\?.*?\?>|<!--.*?-->|<!DOCTYPE[^>]*>|\s)*<([A-Za-z]+)[\s>]", text, re.DOTALL)
        if root and root[1] in (b"mesh", b"skeleton") and re.search(rb"<(sharedgeometry|submeshes|bones)[\s>]", text):
            return "This is an OGRE mesh or skeleton in XML"
    if text.startswith(b"<?xml"):
        return "This is XML"
    unity = _unity_class(head)
    return f"This is {unity}" if unity else ""


def _likely_kind(head: bytes) -> str:
    """Name the kind of a file of other programs, or plain text."""
    text = head.removeprefix(b"\xef\xbb\xbf")
    kind = next((kind for magic, kind in _KINDS if text.lstrip().startswith(magic)), "")
    if not kind and _TEXT.fullmatch(text):
        with contextlib.suppress(UnicodeDecodeError):
            codecs.getincrementaldecoder("utf-8")().decode(text)  # the head may end within a character
            kind = "plain text"
    return f"not a format that Meshferry reads; it looks like {kind}" if kind else ""


def _unity_class(head: bytes) -> str:
    if not head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"%YAML"):
        return ""
    found = re.search(rb"^--- !u!\d+ &-?\d+[^\n]*\n(\w+:)", head, re.MULTILINE)
    return next((said for name, said in _UNITY_CLASSES if found and found[1] == name), "")


def _second_life_data(head: bytes) -> str:
    """Recognise an LLSD map that is none of the files that are read: a number of keys, and the first key."""
    if head[:3] == b"{\x00\x00" and head[5:8] == b"k\x00\x00":
        return "This is a Second Life file, but not a mesh"
    if _VIEWER_CACHE.match(head):
        return "This is a mesh in the cache of a Second Life viewer, where parts of it may be missing"
    return ""


def _second_life_motion(head: bytes) -> str:
    """Recognise a keyframe motion: version 1.0, a priority, a duration, a name, and the loop within the duration."""
    if len(head) < 21 or head[:4] != b"\x01\x00\x00\x00":
        return ""
    priority, duration = struct.unpack_from("<if", head, 4)
    end = head.find(b"\0", 12)
    if not (-1 <= priority <= 7 and 0 <= duration <= 3600) or end < 0 or end + 9 > len(head):
        return ""
    loop_in, loop_out = struct.unpack_from("<ff", head, end + 1)
    plausible = all(math.isfinite(time) and -1 <= time <= duration + 1 for time in (loop_in, loop_out))
    return "This is a Second Life animation" if plausible else ""

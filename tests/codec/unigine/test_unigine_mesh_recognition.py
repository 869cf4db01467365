"""Every known version is taken by its magic; whatever else has these extensions is called by its name."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from meshferry.io_formats import registry
from meshferry.io_formats.core.errors import UnsupportedFormatError
from meshferry.io_formats.core.format import Format
from meshferry.io_formats.mesh_serializer.format import MESH_SERIALIZER
from meshferry.io_formats.unigine.animation.format import UNIGINE_ANIMATION
from meshferry.io_formats.unigine.mesh.format import UNIGINE_MESH
from meshferry.io_formats.unigine.skeleton.format import UNIGINE_SKELETON

SECOND_LIFE_MOTION = (
    struct.pack("<HHif", 1, 0, 4, 2.5) + b"smile\0" + struct.pack("<ffiffII", 0.0, 2.5, 1, 0.3, 0.3, 1, 0)
)
UNITY_MESH = struct.pack("<HHB", 3, 1, 1 | 8) + bytes(24 + 3 * 6 + 16 + 3 * 4 + 6)
LLSD_MAP = b"{\0\0\0\x01k\0\0\0\x08material{\0\0\0\x01k\0\0\0\x04sizei\0\0\0\x10}}"
CLIP = b"%YAML 1.1\n%TAG !u! tag:unity3d.com,2011:\n--- !u!74 &7400000\nAnimationClip:\n  m_Name: Run\n"


@pytest.mark.parametrize(
    ("magics", "wanted"),
    [
        (("mr02", "ms10", "ms11", "ms12", "ms13", "ms14", "ms15", "sk10"), UNIGINE_MESH),
        (("an10", "an11", "an12", "an13"), UNIGINE_ANIMATION),
        (("sn10",), UNIGINE_SKELETON),
    ],
)
def test_known_versions_are_taken_by_their_magic(magics: tuple[str, ...], wanted: Format) -> None:
    for magic in magics:
        assert registry.by_content(magic.encode() + bytes(60), 64) is wanted


def test_real_files_are_taken_whatever_they_are_called(samples: Path) -> None:
    for path in sorted((samples / "unigine").glob("*.*")):
        if path.suffix not in (".mesh", ".anim"):
            continue
        wanted = UNIGINE_MESH if path.suffix == ".mesh" else UNIGINE_ANIMATION
        data = path.read_bytes()
        assert registry.by_content(data[: registry.HEAD_SIZE], len(data)) is wanted, path.name


@pytest.mark.parametrize(
    ("data", "named"),
    [
        (b"ms16\x04" + bytes(60), "UNIGINE mesh of version ms16"),
        (b"ms02" + bytes(60), "UNIGINE mesh of version ms02"),
        (b"ms09" + bytes(60), "UNIGINE mesh of version ms09"),
        (b"sk11" + bytes(60), "UNIGINE skinned mesh of version sk11"),
        (b"sn11" + bytes(60), "UNIGINE skeleton of version sn11"),
        (b"an14" + bytes(60), "UNIGINE animation of version an14"),
        (b"\x00\x10[MeshSerializer_v1.100]\n" + bytes(60), "an OGRE mesh"),
        (b"\x00\x10[Serializer_v1.10]\n" + bytes(60), "an OGRE skeleton"),
        (b'<?xml version="1.0"?>\n<mesh>\n  <submeshes>\n    <submesh', "OGRE mesh or skeleton in XML"),
        (b'<mesh>\n  <sharedgeometry vertexcount="4">', "OGRE mesh or skeleton in XML"),
        (b'<?xml version="1.0"?>\n<svg>', "XML"),
        (b"@@b@" + bytes(60), "Paradox"),
        (CLIP, "a Unity animation clip"),
        (CLIP.replace(b"!u!74", b"!u!43").replace(b"AnimationClip", b"Mesh"), "a Unity mesh asset"),
        (b"<? LLSD/Binary ?>\n" + LLSD_MAP, "a Second Life file, but not a mesh"),
        (LLSD_MAP, "a Second Life file, but not a mesh"),
        (struct.pack("<III", 1, 110, 0) + LLSD_MAP, "the cache of a Second Life viewer"),
        (SECOND_LIFE_MOTION, "a Second Life animation"),
        (b"<HTML><body>", "a web page"),
        (b"", "empty"),
        (b"ms16x and so on", "not a format that"),
        (UNITY_MESH + b"\0", "not a format that"),
        (SECOND_LIFE_MOTION.replace(struct.pack("<f", 2.5), struct.pack("<f", 1e9)), "not a format that"),
    ],
)
def test_what_is_not_ours_is_called_by_its_name(data: bytes, named: str) -> None:
    with pytest.raises(UnsupportedFormatError) as refusal:
        registry.by_content(data[: registry.HEAD_SIZE], len(data))
    assert named in str(refusal.value)


@pytest.mark.parametrize("data", [LLSD_MAP, struct.pack("<III", 1, 110, 0) + LLSD_MAP])
def test_files_like_second_life_meshes_have_a_signature(data: bytes) -> None:
    assert registry.by_name("second_life_mesh").sniff(data, len(data)).has_signature is True


def test_unity_meshes_are_left_to_their_format(samples: Path) -> None:
    files = [UNITY_MESH]
    for path in sorted((samples / "unity_meshserializer").rglob("*")):
        if path.suffix in (".mesh", ".data", ".bin"):
            files.append(path.read_bytes())
    assert len(files) > 5
    for data in files:
        assert registry.by_content(data[: registry.HEAD_SIZE], len(data)) is MESH_SERIALIZER

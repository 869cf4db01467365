"""Errors of recognition and reading that no test of a single format reaches: broken bytes, and part of the message."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import oracle
import pytest
from meshferry.io_formats import api
from meshferry.io_formats.core.errors import FormatError
from meshferry.io_formats.encodings.byte_reader import ByteStream
from meshferry.io_formats.mesh_serializer.format import MESH_SERIALIZER
from meshferry.io_formats.second_life.bundle.format import SECOND_LIFE_BUNDLE
from meshferry.io_formats.timbermesh.model.format import TIMBERMESH
from meshferry.io_formats.unigine import values
from meshfuzz import mesh_serializer_seeds
from meshfuzz import second_life_seeds as sl
from second_life_bytes import binary

pytest.importorskip("google.protobuf")

MESH = sl.asset({"high_lod": [sl.square()]})
LARGE = sl.asset({"high_lod": [sl.square(Position=bytes(6 * 60_000), Normal=None, TexCoord0=None)]})
TEXT = mesh_serializer_seeds.as_text(mesh_serializer_seeds.first(vertices=400))


def loose_mesh() -> bytes:
    """Return a model with a mesh of one single index, and a packed run of indices that ends inside a number."""
    position = oracle.chunk(1, "position") + oracle.scalar(2, 4) + oracle.scalar(3, 3) + oracle.chunk(4, bytes(36))
    mesh = oracle.scalar(1, 0) + oracle.chunk(1, b"\x01\xff")
    node = oracle.scalar(1, -1) + oracle.scalar(6, 3) + oracle.chunk(7, position) + oracle.chunk(8, mesh)
    return oracle.deflate(oracle.chunk(3, node))


def scene_of(data: bytes) -> Callable[[], Any]:
    return lambda: api.read_scene("broken", data=data)


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "a character that is not a digit, after the header": (
        lambda: MESH_SERIALIZER.read(TEXT[:-2] + b"zz"),
        "characters other than",
    ),
    "a bundle that is a list": (lambda: SECOND_LIFE_BUNDLE.read(binary([1])), "does not hold a map"),
    "a bundle of very many meshes": (
        lambda: SECOND_LIFE_BUNDLE.read(sl.bundle([b""] * 1025, [sl.instance()])),
        "it has 1,025 meshes",
    ),
    "a bundle that places nothing": (scene_of(sl.bundle([MESH], [sl.instance(mesh_id=7)])), "no object uses a mesh"),
    "a bundle that places a large mesh everywhere": (
        scene_of(sl.bundle([LARGE], [sl.instance()] * 400)),
        r"400 objects would take \d+ MiB",
    ),
    "an asset with the triangle that stands for none": (
        scene_of(sl.asset({"high_lod": [sl.square(TriangleList=bytes(6))]})),
        "broken: There is no geometry in the file",
    ),
    "an index that ends inside a number": (lambda: TIMBERMESH.read(loose_mesh()), "indices of a mesh are malformed"),
    "a number of more than five bytes": (
        lambda: values.read_integers(ByteStream(b"\x80" * 5 + b"\0\0"), 2, "the nodes"),
        "more than 5 bytes",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_with_the_reason(case: str) -> None:
    call, message = REFUSED[case]
    with pytest.raises(FormatError, match=message):
        call()

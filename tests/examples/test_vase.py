"""The bundled mesh with tangents: made by its script, right for the original reader, with all that a file can hold."""

from __future__ import annotations

from pathlib import Path

import mesh_serializer_oracle as oracle
import numpy as np
from example_scripts import EXAMPLES, script
from meshferry.io_formats import api
from meshferry.io_formats.mesh_serializer.format import MESH_SERIALIZER

VASE = EXAMPLES / "vase.data"


def test_the_file_is_what_the_script_makes(tmp_path: Path) -> None:
    script("make_vase").main(tmp_path)
    new, old = oracle.read((tmp_path / VASE.name).read_bytes()), oracle.read(VASE.read_bytes())
    assert new.triangles == old.triangles
    np.testing.assert_allclose(new.positions, old.positions, atol=1e-5)
    np.testing.assert_allclose(new.uvs, old.uvs, atol=1e-4)
    np.testing.assert_allclose(new.normals, old.normals, atol=0.02)
    np.testing.assert_allclose(new.tangents, old.tangents, atol=0.02)


def test_nobody_has_anything_against_it() -> None:
    loaded = api.load(VASE)
    assert loaded.format is MESH_SERIALIZER
    assert MESH_SERIALIZER.check(loaded.document) == []
    assert MESH_SERIALIZER.write(loaded.document) == loaded.data
    assert api.read_scene(VASE).warnings == []
    assert len(loaded.data) < 40_000


def test_it_holds_all_that_a_file_can() -> None:
    """Section 2 of the format page, in the file's own space."""
    plain = oracle.read(VASE.read_bytes())
    assert plain.format == 15
    positions, normals, tangents = (np.array(rows) for rows in (plain.positions, plain.normals, plain.tangents))
    assert np.ptp(positions[:, 1]) > 0.4 and abs(positions[:, 1].min()) < 1e-4, "it stands upright on the ground"
    triangles = np.array(plain.triangles)
    corners = positions[triangles]
    faces = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    assert (np.einsum("ij,ij->i", faces, normals[triangles].sum(axis=1)) > 0).all()
    assert {row[3] for row in plain.tangent_bytes} == {1, 255}
    # bitangent = w * cross(normal, tangent) goes where v grows
    uv = np.array(plain.uvs)[triangles]
    first, second = uv[:, 1] - uv[:, 0], uv[:, 2] - uv[:, 0]
    area = first[:, 0] * second[:, 1] - second[:, 0] * first[:, 1]
    along_v = (corners[:, 2] - corners[:, 0]) * first[:, :1] - (corners[:, 1] - corners[:, 0]) * second[:, :1]
    bitangents = np.cross(normals, tangents[:, :3]) * tangents[:, 3:]
    agree = np.einsum("ij,ij->i", bitangents[triangles].sum(axis=1), along_v * np.sign(area)[:, None]) > 0
    assert agree[np.abs(area) > 1e-6].all()

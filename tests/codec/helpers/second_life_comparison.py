"""What our reader found in a Second Life file, against what the oracle found: every array, every value."""

from __future__ import annotations

from typing import Any

import numpy as np
import second_life_oracle as oracle
from meshferry.io_formats.core.messages import Report
from meshferry.io_formats.second_life.asset.codec import Asset
from meshferry.io_formats.second_life.models import level_block, physics_block, skin_block
from meshferry.io_formats.second_life.models.llsd import RawString


def plain(value: Any) -> Any:
    """Convert an LLSD value to built-in types, and strings of undecodable bytes as the oracle does."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [plain(one) for one in value]
    return oracle.text_of(value) if isinstance(value, RawString) else value


def same_asset(asset: Asset, found: oracle.Asset) -> None:
    assert list(asset.header) == list(found.header)
    assert asset.header_size == found.header_size
    assert asset.prefix_size == found.prefix_size
    assert asset.trailing == found.trailing
    assert asset.opaque == ({"physics_havok": found.havok} if found.havok else {})
    said: list[str] = []
    for key, value in found.values.items():
        name = "physics_mesh" if key == "physics_shape" and key not in asset.blocks else key
        assert plain(asset.blocks[name]) == value, key
        assert asset.stored_sizes[name] == found.sizes[key], key
    for level, faces in found.levels.items():
        same_faces(level_block.faces_of(asset.blocks[level], Report(said, level)), faces, level)
    if found.physics_mesh is not None:
        faces = level_block.faces_of(asset.blocks["physics_mesh"], Report(said, "physics mesh"))
        same_faces(faces, found.physics_mesh, "physics mesh")
    if found.skin is not None:
        skin = skin_block.skin_of(asset.blocks["skin"], Report(said))
        assert skin is not None
        same_skin(skin, found.skin)
    if found.hulls is not None:
        hulls = physics_block.hulls_of(asset.blocks["physics_convex"])
        np.testing.assert_array_equal(hulls.domain, found.hulls.domain)
        assert len(hulls.hulls) == len(found.hulls.hulls)
        for mine, theirs in zip(hulls.hulls, found.hulls.hulls, strict=True):
            np.testing.assert_array_equal(mine, theirs)
        np.testing.assert_array_equal(hulls.base, found.hulls.base)
    assert said == []


def same_faces(faces: list[level_block.Face], found: list[oracle.Face], where: str) -> None:
    assert len(faces) == len(found), where
    for number, (face, theirs) in enumerate(zip(faces, found, strict=True)):
        place = f"{where}, face {number}"
        assert face.no_geometry == theirs.no_geometry, place
        if theirs.no_geometry:
            continue
        np.testing.assert_array_equal(face.positions, theirs.stored, place)
        np.testing.assert_array_equal(face.position_domain, theirs.domain, place)
        np.testing.assert_array_equal(face.triangles, theirs.triangles, place)
        for mine, stored in ((face.normals, theirs.stored_normals), (face.uvs, theirs.stored_uvs)):
            assert (mine is None) == (stored is None), place
            if mine is not None:
                np.testing.assert_array_equal(mine, stored, place)
        if theirs.uv_domain is not None:
            np.testing.assert_array_equal(face.uv_domain, theirs.uv_domain, place)
        assert (face.normalized_scale is None) == (theirs.scale is None), place
        if theirs.scale is not None:
            np.testing.assert_array_equal(face.normalized_scale, theirs.scale, place)
        assert (face.influences is None) == (theirs.weights is None), place
        if theirs.weights is not None:
            same_weights(face, theirs.weights, place)


def same_weights(face: level_block.Face, found: list[list[tuple[int, int]]], place: str) -> None:
    """Weights of nothing count for nothing: ours may have left them out."""
    assert face.joint_indices is not None and face.joint_weights is not None and face.influences is not None
    for vertex, pairs in enumerate(found):
        count = int(face.influences[vertex])
        mine = zip(
            face.joint_indices[vertex, :count].tolist(), face.joint_weights[vertex, :count].tolist(), strict=True
        )
        assert [pair for pair in mine if pair[1]] == [pair for pair in pairs if pair[1]], f"{place}, vertex {vertex}"
        assert not face.joint_weights[vertex, count:].any(), place


def same_skin(skin: skin_block.SkinBlock, found: oracle.Skin) -> None:
    assert skin.joint_names == found.joints
    np.testing.assert_array_equal(np.reshape(skin.inverse_bind, (-1, 4, 4)), found.inverse_bind)
    np.testing.assert_array_equal(np.reshape(skin.bind_shape, (4, 4)), found.bind_shape)
    assert (skin.alt_inverse_bind is None) == (found.overrides is None)
    if skin.alt_inverse_bind is not None:
        np.testing.assert_array_equal(np.reshape(skin.alt_inverse_bind, (-1, 4, 4)), found.overrides)
        assert skin.pelvis_offset == found.pelvis_offset
    assert skin.lock_scale == found.lock_scale

"""Our documents of UNIGINE files held against what the oracle finds in the same bytes: equal, value for value."""

from __future__ import annotations

from typing import Any

import numpy as np
import unigine_oracle as oracle


def same_mesh(document: Any, found: oracle.File) -> None:
    """Require that a mesh document says what the oracle says, to the bit."""
    assert document.version == found.magic
    if found.magic == "mr02":
        assert [bytes(surface.name) for surface in document.soup] == [soup.raw_name for soup in found.soup]
        for surface, soup in zip(document.soup, found.soup, strict=True):
            _same_bits(surface.vertices, np.hstack((soup.positions, soup.normals, soup.uvs)))
        return
    assert [(bone.name, bone.parent) for bone in document.bones] == found.bones
    _same_bits(document.bounds, found.bounds)
    _same_bits(document.transforms, found.transforms)
    assert [animation.name for animation in document.animations] == [name for name, _ in found.animations]
    for animation, (_, frames) in zip(document.animations, found.animations, strict=True):
        same_delta_frames(animation.frames, frames)
    assert [surface.name for surface in document.surfaces] == [surface.name for surface in found.surfaces]
    for surface, other in zip(document.surfaces, found.surfaces, strict=True):
        same_surface(surface, other, has_names=found.magic != "ms15")
    if found.leaf_size is not None:
        assert (document.leaf_size, document.memory_use) == (found.leaf_size, found.memory)
    assert (document.skeleton_guid, document.skeleton_path) == (found.guid, found.path)
    _same_bits(document.rest_transforms, found.rest_transforms)


def same_surface(surface: Any, other: oracle.Surface, *, has_names: bool) -> None:
    _same_bits(surface.bounds, other.bounds)
    if other.lightmap is not None:
        assert (surface.lightmap_channel, surface.lightmap_resolution) == other.lightmap
    assert len(surface.targets) == len(other.targets)
    if has_names:  # ms15 has one target a surface, without a name
        assert [target.name for target in surface.targets] == [target.name for target in other.targets]
    for target, theirs in zip(surface.targets, other.targets, strict=True):
        _same_bits(target.positions, theirs.positions)
        np.testing.assert_array_equal(target.tangents, theirs.tangents)
    assert (surface.weights is None) == (other.weights is None)
    if other.weights is not None:
        pairs = [pair for vertex in other.weights for pair in vertex]
        assert surface.weights.counts.tolist() == [len(vertex) for vertex in other.weights]
        assert surface.weights.bones.tolist() == [bone for bone, _ in pairs]
        assert surface.weights.values.tolist() == [weight for _, weight in pairs]
    for mine, theirs in ((surface.uv0, other.uv0), (surface.uv1, other.uv1)):
        assert (mine is None) == (theirs is None)
        if theirs is not None:
            _same_bits(mine, theirs)
    assert (surface.colors is None) == (other.colors is None)
    if other.colors is not None:
        np.testing.assert_array_equal(surface.colors, other.colors)
    np.testing.assert_array_equal(surface.c_indices, other.c_indices)
    np.testing.assert_array_equal(surface.t_indices, other.t_indices)


def same_animation(document: Any, found: oracle.File) -> None:
    """Require that an animation document says what the oracle says."""
    assert document.version == found.magic
    assert [(bone.name, bone.parent) for bone in document.bones] == found.bones
    _same_bits(document.transforms, found.transforms)
    ((name, frames),) = found.animations
    assert document.name == name
    assert (document.skeleton_guid, document.skeleton_path) == (found.guid, found.path)
    if found.fps is not None:
        assert (document.fps, document.root_motion) == (found.fps, found.root_motion)
    if found.bounds is not None:
        _same_bits(document.bounds, found.bounds)
    if found.magic == "an10":
        same_delta_frames(document.frames, frames)
    else:
        same_flagged_frames(document.frames, frames)


def same_delta_frames(mine: Any, frames: oracle.Frames) -> None:
    assert mine.bone_indices.tolist() == frames.bones
    assert (mine.mask, mine.frame_count) == (frames.mask, frames.count)
    assert mine.flags.tolist() == frames.flags
    translation, scale = np.asarray(mine.translation, np.float64), np.asarray(mine.scale, np.float64)
    if frames.ranges:
        minimum, extent, scale_minimum, scale_extent = np.asarray(frames.ranges).reshape(4, 3)
        _same_bits(mine.translation_range, np.float32([minimum, extent]))
        _same_bits(mine.scale_range, np.float32([scale_minimum, scale_extent]))
        translation = minimum + translation * extent / 65535
        scale = scale_minimum + scale * scale_extent / 65535
    else:
        _same_bits(mine.translation, frames.translation.astype(np.float32))
        _same_bits(mine.scale, frames.scale.astype(np.float32))
    for axis in range(3):
        if frames.mask >> axis & 1:
            np.testing.assert_array_equal(translation[..., axis], frames.translation[..., axis])
        if frames.mask >> 4 + axis & 1:
            np.testing.assert_array_equal(scale[..., axis], frames.scale[..., axis])
    np.testing.assert_array_equal(mine.rotation, np.rint(frames.rotation * 32767).astype(np.int64))


def same_flagged_frames(mine: Any, frames: oracle.Frames) -> None:
    assert mine.bone_indices.tolist() == frames.bones
    assert mine.frame_count == frames.count
    assert mine.flags.tolist() == frames.flags
    if frames.count:
        _same_bits(mine.translation, frames.translation.astype(np.float32))
        _same_bits(mine.rotation, frames.rotation.astype(np.float32))
        _same_bits(mine.scale, frames.scale.astype(np.float32))


def same_skeleton(document: Any, found: oracle.File) -> None:
    """Require that a skeleton document says what the oracle says."""
    assert [(bone.name, bone.parent) for bone in document.bones] == found.bones
    _same_bits(document.transforms, found.transforms)
    kinds = (document.blend_masks, document.time_profiles, document.weight_profiles)
    assert [[(profile.name, list(profile.values)) for profile in kind] for kind in kinds] == found.profiles
    assert [(mode, float(length)) for mode, length in document.retargeting] == found.retargets


def canonical(found: oracle.File) -> None:
    """Require that every compact integer has the engine's length (section 2.1)."""
    for value, length in found.compact:
        magnitude = abs(value)
        due = next((n for n, bound in enumerate((63, 8191, 1048575, 134217727), 1) if magnitude < bound), 5)
        assert length == due, f"{value} in {length} bytes"


def plain_widths(found: oracle.File) -> None:
    """Require that every index has the bytes that its pool asks for (section 3)."""
    for surface in found.surfaces:
        pools = surface.vertex_count, surface.corner_vertex_count
        assert surface.widths == tuple(1 if pool < 256 else 2 if pool < 65536 else 4 for pool in pools)


def _same_bits(mine: Any, theirs: Any) -> None:
    mine = np.asarray(mine)
    assert mine.dtype == np.float32
    assert mine.shape == theirs.shape or mine.size == theirs.size == 0
    np.testing.assert_array_equal(np.ascontiguousarray(mine).view(np.uint32), np.float32(theirs).view(np.uint32))

"""Coarser levels of detail that nobody made: Blender's Decimate, in a scene of its own."""

from __future__ import annotations

from ...io_formats.scene import Mesh


def make_level(mesh: Mesh, ratio: float, *, keep_borders: bool) -> Mesh:
    """Return a mesh with about ``ratio`` times the triangles, at least one and never more than there are.

    Parameters
    ----------
    mesh:
        Triangles with any layers, in any space; it is not changed. UVs, normals and joint weights are interpolated,
        materials and surfaces kept; tangents, colours, custom layers and shape keys are left out.
    keep_borders:
        Leave points of open edges where they are.

    The user's scene is not touched, and nothing stays behind in the .blend file.
    """
    raise NotImplementedError

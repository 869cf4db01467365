"""Conversion between the avatar's space and Blender's: a rotation by 90° about Z (formats page, section 6).

Second Life's avatar faces +X with its left at +Y; Blender's front view looks along +Y. Only signs and the order of axes
change, so converting and converting back gives exactly the same values. Static meshes are not rotated.
"""

from dataclasses import replace

import numpy as np

from ...core.scene import Mesh, Surface
from ...geometry.transforms import Basis, Matrix

BASIS = Basis(order=(1, 0, 2), signs=(1, -1, 1))
"""From the avatar's space to Blender's: (x, y, z) becomes (y, -x, z)."""

TO_BLENDER: Matrix = np.array(((0, 1, 0, 0), (-1, 0, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1)), np.float64)
TO_AVATAR: Matrix = TO_BLENDER.T.copy()
for _turn in (TO_BLENDER, TO_AVATAR):
    _turn.setflags(write=False)


def to_blender(matrices: Matrix) -> Matrix:
    """Convert transforms (…, 4, 4) from the avatar's space to Blender's; exact."""
    return TO_BLENDER @ matrices @ TO_AVATAR


def to_avatar(matrices: Matrix) -> Matrix:
    """Convert transforms (…, 4, 4) from Blender's space to the avatar's; exact."""
    return TO_AVATAR @ matrices @ TO_BLENDER


def turned_mesh(mesh: Mesh, basis: Basis = BASIS) -> Mesh:
    """Convert points, normals and ranges of a mesh from avatar space to Blender's, or by another basis.

    Shape keys and tangents are dropped, since files cannot store them.
    """
    return replace(
        mesh,
        points=basis.vectors(mesh.points),
        normal=mesh.normal and replace(mesh.normal, values=basis.vectors(mesh.normal.values)),
        tangent=None,
        shape_keys=[],
        surfaces=[_turned_surface(surface, basis) for surface in mesh.surfaces],
    )


def _turned_surface(surface: Surface, basis: Basis) -> Surface:
    domain = surface.position_domain
    if domain is None:
        return surface
    ends = np.array(domain, np.float64).reshape(2, 3)[:, list(basis.order)] * basis.signs
    turned = (*ends.min(axis=0).tolist(), *ends.max(axis=0).tolist())
    return replace(surface, position_domain=turned)

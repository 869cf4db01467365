"""Conversion between the avatar's space and Blender's: a rotation by 90° about Z (formats page, section 6).

Second Life's avatar faces +X with its left at +Y; Blender's front view looks along +Y. Only signs and the order of axes
change, so converting and converting back gives exactly the same values. Static meshes are not rotated.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ...core.scene import Layer, Mesh, Node, Surface
from ...geometry.axes import Basis

Matrix = npt.NDArray[np.float64]

BASIS = Basis(order=(1, 0, 2), signs=(1, -1, 1))
"""From the avatar's space to Blender's: (x, y, z) becomes (y, -x, z)."""

TO_BLENDER: Matrix = np.array(((0, 1, 0, 0), (-1, 0, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1)), np.float64)
TO_AVATAR: Matrix = TO_BLENDER.T.copy()
for _turn in (TO_BLENDER, TO_AVATAR):
    _turn.setflags(write=False)


def to_blender(matrices: Matrix) -> Matrix:
    """Convert transforms (…, 4, 4) from the avatar's space to Blender's; exact."""
    turned: Matrix = TO_BLENDER @ matrices @ TO_AVATAR
    return turned


def to_avatar(matrices: Matrix) -> Matrix:
    """Convert transforms (…, 4, 4) from Blender's space to the avatar's; exact."""
    turned: Matrix = TO_AVATAR @ matrices @ TO_BLENDER
    return turned


def turned_mesh(mesh: Mesh, *, back: bool = False) -> Mesh:
    """Convert a mesh from avatar space to Blender's space, or with ``back`` from Blender's to avatar space."""
    basis = BASIS.inverse if back else BASIS

    def turned_layer(layer: Layer | None) -> Layer | None:
        return replace(layer, values=basis.vectors(layer.values)) if layer is not None else None

    return replace(
        mesh,
        points=basis.vectors(mesh.points),
        normal=turned_layer(mesh.normal),
        tangent=turned_layer(mesh.tangent),
        shape_keys=[
            replace(
                key,
                points=basis.vectors(key.points),
                normal=turned_layer(key.normal),
                tangent=turned_layer(key.tangent),
            )
            for key in mesh.shape_keys
        ],
        surfaces=[_turned_surface(surface, basis) for surface in mesh.surfaces],
    )


def turned_node(node: Node, *, back: bool = False) -> Node:
    """Return a node with its mesh converted, but not its transform, for which the caller has a :class:`UnitCube`."""
    return replace(node, mesh=turned_mesh(node.mesh, back=back)) if node.mesh is not None else node


def _turned_surface(surface: Surface, basis: Basis) -> Surface:
    domain = surface.position_domain
    if domain is None:
        return surface
    ends = np.array(domain, np.float64).reshape(2, 3)[:, list(basis.order)] * basis.signs
    turned = (*ends.min(axis=0).tolist(), *ends.max(axis=0).tolist())
    return replace(surface, position_domain=turned)

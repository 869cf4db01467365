"""Shapes of figures that users set with sliders, for families of formats whose target has such figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Slider:
    """A setting of a figure between two ends, from 0 to 100 percent."""

    number: int
    """Identifies the slider in files, and so in Blender files."""
    label: str
    lowest: str
    """Text for 0 percent."""
    highest: str
    """Text for 100 percent."""
    standard: float
    """Percent at which all joints are where meshes are bound."""
    default: float
    """Percent of a new figure in the target program."""
    tab: str
    """Title of the group of sliders that it belongs to; empty if it is not shown as a slider."""
    sex: str
    """``both``, ``male`` or ``female``: the sex of the figures that it changes."""
    moves_joints: bool
    """Whether it changes joints, and so meshes that are bound to them."""


@dataclass(frozen=True)
class WornMesh:
    """What the file of a mesh that an armature deforms says of its n joints; hashable, since it is compared often."""

    used: tuple[str, ...]
    """Names in files of the bones for which the mesh has vertex groups."""
    joint_names: tuple[str, ...]
    """The joints that the file lists; none for a mesh that was not imported."""
    inverse_bind: bytes
    """(n, 4, 4) float64 inverse bind matrices, for column vectors, in the space of the armature."""
    joint_positions: bytes
    """(n, 3) float64 positions of the joints relative to their parents, in metres; empty if the file moves no joint."""
    is_aligned: bool
    """Whether the joints rest exactly where the matrices bind them."""
    is_locked: bool
    """Whether joints that the mesh moves keep their scale."""


@dataclass(frozen=True)
class JointShapes:
    """What a shape does to n joints of an armature in its rest pose, along the axes of the armature."""

    is_shaped: npt.NDArray[np.bool_]
    """(n,) whether the shape knows the joint; the values of all others have no meaning."""
    scale: Floats
    """(n, 3, 3) scale of the joint relative to its rest, which its children do not inherit; symmetric."""
    offset: Floats
    """(n, 3) movement of the head relative to the parent's joint, before the parent's scale, in metres."""
    root: int
    """Index of the joint whose offset only puts the figure on the floor, so that users may move it; -1 without it."""
    height: float
    """Height of the figure in metres, as the target program counts it."""
    body_height: float
    """Height in metres of the target program's own body from the soles to the crown."""


class BodyShapes(Protocol):
    """Functions of a family's module for the shapes of its figures."""

    def sliders(self) -> tuple[Slider, ...]:
        """Return all sliders, tab by tab in the order of the target program's editor."""

    def is_attachment(self, name: str) -> bool:
        """Return whether a joint of that name is a point to which rigid objects are attached."""

    def morph_weights(self, percents: Mapping[int, float]) -> Mapping[str, Mapping[str, float]]:
        """Return the values of shape keys of the target's own figure, by the names of its parts and of the keys.

        The parameter is as for :meth:`joint_shapes`.
        """

    def joint_shapes(
        self,
        percents: Mapping[int, float],
        names: Sequence[str],
        heads: Floats,
        worn: Sequence[WornMesh] = (),
        *,
        unmoved: Sequence[str] = (),
    ) -> JointShapes:
        """Return what a shape does to the joints of an armature.

        Parameters
        ----------
        percents:
            Positions of sliders by number; others stand at their ``standard``.
        names:
            Names that the n bones have in files; bones with other names do not follow the shape.
        heads:
            (n, 3) their heads at rest, in the space of the armature.
        worn:
            The meshes that the armature deforms. They decide which joints stay where they are, since their files move
            them; without any, these are the joints that rest elsewhere than those of the standard figure.
        unmoved:
            Names in files of bones that rest where an import put them.
        """

    def deformations(self, names: Sequence[str], heads: Floats, mesh: WornMesh, placed: Floats) -> dict[str, Floats]:
        """Return the matrices by which the bones of an armature at rest deform a mesh, as its file binds it.

        They are the identity for a mesh that is bound to the joints of the armature as these rest. A bone that is
        posed by P (in the space of the armature, relative to its rest) deforms the mesh by P times its matrix.

        Parameters
        ----------
        names, heads:
            As for :meth:`joint_shapes`.
        placed:
            (4, 4) from the armature's space, in which the points of the mesh are, to that of the file's matrices.

        Returns
        -------
        dict
            (4, 4) float64 for each bone that the file lists, by its name in files; NaN if the file's matrix cannot be
            inverted.
        """

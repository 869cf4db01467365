"""Data of the shapes of figures that users set with sliders.

A family of formats whose target has such figures names a module with the functions (``Family.body_shapes``).
"""

from dataclasses import dataclass

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

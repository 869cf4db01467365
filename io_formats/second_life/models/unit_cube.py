"""The unit cube of a model: the box that it fills, and its world transform (formats page, section 6)."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...core.errors import ExportError
from ...core.messages import Report, Text
from ...core.scene import FloatArray, Mesh, Node
from ...geometry.transforms import MIRROR, Basis, Matrix, matrix_of_transform, unmirrored
from ...passes.flatten import moved
from .llsd_arrays import bounds
from .models import Model
from .space import turned_mesh

FLAT = 1e-5
"""Extent in metres below which an axis counts as flat and gets the size 1 metre."""
_INSIDE = 1e-6
"""Tolerance for points outside the box due to rounding, as a share of the box."""
_SINGLE = 1e-6
"""Tolerance for entries of a matrix made of transforms in single precision, relative to the largest."""
_WORTH_SAYING = 1e-3
"""Share of the highest level's box by which other levels and shapes may exceed it before a warning is given."""


@dataclass(frozen=True)
class UnitCube:
    """The box of a model in the space of its points, and the transform of its unit cube."""

    centre: Matrix
    """(3,) float64."""
    size: Matrix
    """(3,) float64, all above 0."""
    transform: Matrix
    """(4, 4) float64 for column vectors, from the unit cube (±0.5) to the world in metres. For a rigged model, to the
    avatar's space (Z up, X forward): its bind shape matrix, without rotation."""

    def normalised(self, points: npt.NDArray[np.floating]) -> FloatArray:
        """Return points (n, 3) normalised to the unit cube, ±0.5, float32."""
        return ((points - self.centre) / self.size).astype(np.float32)

    def normals(self, normals: npt.NDArray[np.floating]) -> FloatArray:
        """Return unit normals (n, 3) in the space of the unit cube, float32."""
        turned = normals * self.size
        length = np.linalg.norm(turned, axis=1, keepdims=True)
        return (turned / np.where(length > 0, length, 1)).astype(np.float32)

    @property
    def metres(self) -> Matrix:
        """(3,): the size of the object."""
        lengths: Matrix = np.linalg.norm(self.transform[:3, :3], axis=0)
        return lengths

    @property
    def position(self) -> Matrix:
        """(3,) float64: the centre of the box, in the world."""
        return self.transform[:3, 3]

    @property
    def rotation(self) -> Matrix:
        """(3, 3): the rotation of the object."""
        return self.transform[:3, :3] / self.metres


def matrix_of(node: Node) -> Matrix:
    """Return a node's (4, 4) transform, for column vectors."""
    return matrix_of_transform(node.translation, node.rotation, node.scale)


def exact_matrix_of(node: Node) -> Matrix:
    """Return the matrix of the imported file if it equals the transform of the node, otherwise :func:`matrix_of`."""
    matrix, exact = matrix_of(node), node.file_matrix
    tolerance = _SINGLE * max(1.0, float(np.abs(matrix).max()))
    return exact if exact is not None and np.abs(exact - matrix).max() <= tolerance else matrix


def settled(model: Model, turn: Matrix | None = None) -> Model:
    """Return a model whose transform a file can store; the part that it cannot store is applied to the points.

    Parameters
    ----------
    turn:
        (4, 4): for a rigged model, from the space of its skeleton to the avatar's. The whole transform is applied to
        the points, which are then in metres in avatar space. None for a static model: only mirroring is applied, since
        files cannot store it.

    Raises
    ------
    ExportError
        A scale is 0, or a value is NaN or infinite.
    """
    finest = model.finest
    world = matrix_of(finest)
    if not np.isfinite(world).all() or min(abs(factor) for factor in finest.scale) < 1e-9:
        raise ExportError(
            "{}: its scale is 0, or its location is NaN or infinite; give it a size along each axis", model.name
        )
    if turn is not None:
        unmoved = {"translation": (0.0, 0.0, 0.0), "rotation": (1.0, 0.0, 0.0, 0.0), "scale": (1.0, 1.0, 1.0)}
        return model.with_meshes(lambda mesh: _moved(mesh, turn @ world), **unmoved)
    if min(finest.scale) > 0:
        return model
    rotation, scale, is_mirrored = unmirrored(finest.rotation, finest.scale)
    own = {"translation": finest.translation, "rotation": rotation, "scale": scale}
    return model.with_meshes(lambda mesh: _moved(mesh, MIRROR) if is_mirrored else mesh, **own)


def _moved(mesh: Mesh, change: Matrix) -> Mesh:
    """Apply a transform to a mesh; if it only permutes axes, the values stay exact."""
    linear = change[:3, :3]
    order = np.abs(linear).argmax(axis=1)
    signs = np.sign(linear[range(3), order])
    swap = np.zeros((3, 3))
    swap[range(3), order] = signs
    if not np.array_equal(swap, linear) or change[:3, 3].any() or np.linalg.det(swap) <= 0:
        return moved(mesh, change)
    basis = Basis((int(order[0]), int(order[1]), int(order[2])), (int(signs[0]), int(signs[1]), int(signs[2])))
    return turned_mesh(mesh, basis)


def is_as_imported(model: Model) -> bool:
    """Return whether a model's points are still in the unit cube of the imported file."""
    return any(surface.position_domain is not None for surface in model.mesh.surfaces)


@np.errstate(divide="ignore", over="ignore", invalid="ignore")
def unit_cube_of(model: Model, report: Report, *, as_imported: bool = False) -> UnitCube:
    """Return the unit cube of a model: the box of its highest level, enlarged if other parts exceed it.

    Parameters
    ----------
    model:
        As returned by :func:`settled`.
    report:
        Gets a warning about parts that exceed the box.
    as_imported:
        Whether the points of an imported model are already in the unit cube.
    """
    world = matrix_of(model.finest)
    if as_imported and is_as_imported(model):
        return UnitCube(np.zeros(3), np.ones(3), world)
    least, most = box = box_of(model.mesh)
    for node in model.nodes:
        if node is model.finest or node.mesh is None or not len(node.mesh.points):
            continue
        low, high = box_of(node.mesh)
        out = np.maximum(least - low, high - most)
        extent = most - least
        if np.any(out > _INSIDE * extent.max()):
            if np.any(out > _WORTH_SAYING * extent.max()):
                part = model.part_name(node)
                report.change(
                    "part-beyond-finest-level",
                    "its {} sticks out of the highest level by {:.3g} m; the box that all share was enlarged",
                    Text("hull '{}'", node.name) if node in model.hulls else part,
                    float((out * model.finest.scale).max()),
                )
            box = np.stack((np.minimum(box[0], low), np.maximum(box[1], high)))
    scale = np.abs(model.finest.scale)
    extent = (box[1] - box[0]).astype(np.float64)
    size = np.where(extent * scale < FLAT, 1 / scale, extent)
    centre = (box[0] + box[1]) / 2
    unit = np.diag((*size, 1.0))
    unit[:3, 3] = centre
    return UnitCube(centre, size, world @ unit)


def box_of(mesh: Mesh) -> Matrix:
    """Return the bounds (2, 3) of the points used by triangles, or of all points without triangles."""
    points = mesh.points
    if len(mesh.corner_point):
        used = np.zeros(len(points), bool)
        used[mesh.corner_point] = True
        points = points[used]
    return bounds(points)

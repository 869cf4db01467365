"""Land impact and weights of models, computed before the upload (formats page, section 11)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ...core.scene import Scene
from ..models import costs
from ..options import LEVELS, ModelWriteOptions

if TYPE_CHECKING:
    from ..models.level_block import Face
    from .codec import Asset
    from .mapping import DecodedAsset

CONVEX, HULLS, TRIANGLES = "CONVEX", "HULLS", "TRIANGLES"
"""Kinds of physics shapes: the base hull, the hulls in the model, or triangles."""

_SAME = 1e-6
"""Tolerance for comparing ranges of quantised values from the same file."""


@dataclass(frozen=True)
class Figures:
    """Cost of one object in world."""

    name: str
    triangles: tuple[int, ...]
    """Triangles of each of the four levels, the finest first; 0 for a missing level."""
    sizes: tuple[int, ...]
    """Compressed size of each level in bytes; 0 for a missing level."""
    joints: int
    """Number of joints that the mesh is bound to; 0 if it is not rigged."""
    download: float
    """Download weight of the object at its size in the scene."""
    physics: float
    """An estimate, since the simulator's rule is not published; 0 for triangles, whose weight is not known."""
    animesh: float
    """Weight that the object adds to an animated object of which it is a part."""
    physics_shape: str = CONVEX
    """:data:`CONVEX`, :data:`HULLS` or :data:`TRIANGLES`."""
    is_exact: bool = False
    """Whether the sizes are those of the stored file. Otherwise Meshferry encoded the model to measure it, and another
    encoder gives slightly different sizes."""
    weighted: tuple[float, ...] = ()
    """Charged triangles that each level contributes, see :func:`.costs.weighted_triangles`."""
    has_alpha: bool = False
    """Whether a face is blended with what is behind it."""
    same_mesh_as: str = ""
    """Name of an earlier object with the same mesh, since an upload stores equal meshes once; empty for the first."""

    @property
    def complexity(self) -> int:
        """Complexity of the object when worn, without the cost of textures and of settings made in world."""
        return costs.complexity(sum(self.weighted), self.traits)

    @property
    def traits(self) -> tuple[str, ...]:
        """The keys of ``costs.COMPLEXITY_FACTORS`` that apply to the object."""
        return (*(["alpha"] if self.has_alpha else []), *(["rigged"] if self.joints else []))


@dataclass(frozen=True)
class Total:
    """Cost of several linked objects."""

    download: float
    server: float
    physics: float
    animesh: float
    """Download weight as one animated object; 0 if none of them is rigged."""
    complexity: int
    """Complexity of the objects if they are worn."""
    is_least: bool = False
    """Whether the physics weight is a lower bound, because an object has physics of triangles, whose weight is not
    known."""


def figures_of_scene(scene: Scene, options: ModelWriteOptions) -> list[Figures]:
    """Return the costs of a scene's models, from the assets that an export would write.

    Models with the same content are encoded once. Further parts of a model of more than 8 faces are listed after it.

    Raises
    ------
    ExportError
        A model cannot be encoded.
    """
    from ..models.models import models_of
    from .mapping import assets_of, decode_blocks, submodel_suffix

    models = models_of(scene)
    found: list[Figures] = []
    decoded: dict[int, tuple[str, DecodedAsset]] = {}
    for model, parts in zip(models, assets_of(models, scene, options), strict=True):
        for part in parts:
            name = model.name + (f"_{submodel_suffix(part.submodel)}" if part.submodel else "")
            first, content = decoded.get(id(part.asset)) or ("", decode_blocks(part.asset))
            decoded.setdefault(id(part.asset), (name, content))
            one = figures_of_asset(name, content, part.unit_cube.metres.tolist())
            found.append(replace(one, same_mesh_as=first, has_alpha=_has_alpha(scene, part.materials)))
    return found


def figures_of_file(asset: Asset, scene: Scene, options: ModelWriteOptions) -> Figures | None:
    """Return the cost of a file's model at its size in a scene, or None if the model has been modified.

    Parameters
    ----------
    asset:
        The asset as read from the file.
    scene:
        A scene with the one model of the file, read with the option to keep it as imported.

    Raises
    ------
    ExportError
        The model cannot be encoded.
    """
    from ..models.models import models_of
    from .mapping import assets_of, decode_blocks

    models = models_of(scene)
    if len(models) != 1:
        return None
    now = assets_of(models, scene, options)[0][0]
    stored = decode_blocks(asset)
    if not _same_geometry(stored, decode_blocks(now.asset)):
        return None
    found = figures_of_asset(models[0].name, stored, now.unit_cube.metres.tolist(), is_exact=True)
    return replace(found, has_alpha=_has_alpha(scene, models[0].mesh.materials))


def _has_alpha(scene: Scene, materials: Sequence[str]) -> bool:
    """Return whether any of these materials is transparent."""
    transparent = {look.name for look in scene.materials if look.is_transparent or look.color[3] < 1}
    return not transparent.isdisjoint(materials)


def figures_of_asset(name: str, decoded: DecodedAsset, size: Sequence[float], *, is_exact: bool = False) -> Figures:
    """Return the cost of an asset at a size in metres, (3,)."""
    levels = {level: decoded.sizes[level] for level in LEVELS if level in decoded.levels}
    weighted = costs.weighted_triangles(levels, size)
    download = costs.download_weight(levels, size)
    shape, physics = _physics_of(decoded)
    charged = costs.animesh_triangle_weight(sum(costs.animesh_level_triangles(levels)))
    return Figures(
        name,
        tuple(sum(len(face.triangles) for face in decoded.levels.get(level, ())) for level in LEVELS),
        tuple(levels.get(level, 0) for level in LEVELS),
        len(decoded.skin.joint_names) if decoded.skin else 0,
        download,
        physics,
        download if decoded.skin is None else charged,
        shape,
        is_exact,
        weighted,
    )


def _physics_of(decoded: DecodedAsset) -> tuple[str, float]:
    """Return the kind of an asset's physics shape, and its estimated weight."""
    found = decoded.hulls
    if found.hulls:
        return HULLS, sum(costs.estimated_physics_weight(len(points)) for points in found.hulls)
    if any(len(face.triangles) for face in decoded.physics):
        return TRIANGLES, 0.0
    return CONVEX, costs.estimated_physics_weight(0 if found.base is None else len(found.base))


def total_of(figures: Iterable[Figures]) -> Total:
    """Return the weights of a linkset of these objects, without scripts."""
    figures = tuple(figures)
    download = sum(one.download for one in figures)
    physics = sum(one.physics for one in figures)
    server = costs.server_weight(len(figures))
    is_rigged = any(one.joints for one in figures)
    animesh = costs.ANIMESH_BASE + sum(one.animesh for one in figures) if is_rigged else 0.0
    is_least = any(one.physics_shape == TRIANGLES for one in figures)
    return Total(download, server, physics, animesh, sum(one.complexity for one in figures), is_least)


def _same_geometry(one: DecodedAsset, other: DecodedAsset) -> bool:
    """Return whether two assets have equal levels of detail, ignoring the order of vertices, and equal joints."""
    if one.levels.keys() != other.levels.keys():
        return False
    for level, faces in one.levels.items():
        others = other.levels[level]
        if len(faces) != len(others) or not all(map(_same_face, faces, others)):
            return False
    return (one.skin.joint_names if one.skin else None) == (other.skin.joint_names if other.skin else None)


def _same_face(one: Face, other: Face) -> bool:
    """Return whether two faces use equal positions and UVs over equal ranges."""
    return len(one.triangles) == len(other.triangles) and all(
        (values is None) == (others is None)
        and (
            values is None
            or others is None
            or np.array_equal(_used_rows(values, one.triangles), _used_rows(others, other.triangles))
        )
        and (domain is None or other_domain is None or np.allclose(domain, other_domain, atol=_SAME))
        for values, others, domain, other_domain in (
            (one.positions, other.positions, one.position_domain, other.position_domain),
            (one.uvs, other.uvs, one.uv_domain, other.uv_domain),
        )
    )


def _used_rows(values: npt.NDArray[np.uint16], triangles: npt.NDArray[np.uint16]) -> npt.NDArray[np.uint16]:
    """Return the unique rows of values (V, k) that triangles use, sorted."""
    return np.unique(values[np.unique(triangles)], axis=0)

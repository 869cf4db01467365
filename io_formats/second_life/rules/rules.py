"""Check models against the rules of uploader and simulator (formats page, sections 4.4, 5, 10 and 12)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...core.findings import Finding, Fix, warning
from ...core.messages import counted, listed
from ...core.scene import Layer, Mesh, Node, Role, Scene
from ..models.equal_models import findings_once
from ..models.faces import MOST_FACES, MOST_VERTICES
from ..models.levels import LEVEL_LABELS, LEVELS
from ..models.models import Model, models_of
from ..models.unit_cube import is_as_imported, nodes_of, unit_cube_of
from .bone_rules import BoneRules
from .checked_model import CheckedModel, Flags
from .degenerates import degenerate_triangles

MOST_TRIANGLES = 8 * 21_844
"""Most triangles of an object: a face has at most 21,844. Larger models are split, but uploading them takes minutes
and usually fails."""
MOST_HULLS = 256
MOST_HULL_POINTS = 256
LEAST_SIZE, MOST_SIZE = 0.01, 64.0
"""Range of an object's size along each axis in Second Life, in metres."""
OPEN_LEAST_SIZE, OPEN_MOST_SIZE = 0.001, 256.0
"""The same for OpenSim."""
MOST_UV = 1000.0

_FLAT_AXIS = 1e-5
"""Extent in metres below which an axis counts as flat; an export gives it the size 1 metre."""
_HULL_THICKNESS = 1e-4
"""Share of a hull's extent below which it is flat."""
_HEAVIER = 1.05
"""Ratio to the compressed size of the finer level above which a level is reported as heavier. It is over 1, since the
same triangles can take a few bytes more or less."""
_UNEVEN_SCALE = 1e-3


def check_scene(scene: Scene, *, is_upload: bool = True) -> list[Finding]:
    """Apply :func:`check_models` to all models of a scene, and report nodes that belong to no model."""
    models = models_of(scene)
    return [*check_models(models, scene, is_upload=is_upload), *_left_over(models, scene)]


def check_native_scene(scene: Scene) -> list[Finding]:
    """Apply :func:`check_scene` for formats that the uploader's test of physics does not see."""
    return check_scene(scene, is_upload=False)


def check_models(
    models: Sequence[Model],
    scene: Scene,
    *,
    sizes: Mapping[str, Mapping[str, int]] | None = None,
    stored: bool = False,
    is_upload: bool = True,
) -> list[Finding]:
    """Return errors for what the uploader rejects and warnings for unexpected results; each names its model.

    Parameters
    ----------
    models:
        Result of :func:`.models.models_of` for the scene.
    scene:
        Scene of the models. With ``Scene.as_imported``, unchanged imported models are treated as ``stored``.
    sizes:
        Compressed size of each block in bytes, by model name, if known.
    stored:
        The models are written unchanged: points are in the unit cube, nothing is generated or split.
    is_upload:
        The uploader or the grid tests the physics triangles: degenerate ones are errors, otherwise warnings.

    Returns
    -------
    list
        Findings, of models with the same content once. Their elements are indices of triangles and points in the
        ``Mesh`` of the named node, or names of joints. Findings on generated meshes have no elements.
    """

    def check(model: Model) -> list[Finding]:
        as_stored = stored or (scene.as_imported and is_as_imported(model))
        return _ModelRules(model, (sizes or {}).get(model.name, {}), as_stored, is_upload).check()

    return findings_once(models, check)


def _left_over(models: Sequence[Model], scene: Scene) -> Iterator[Finding]:
    """Warn about levels and shapes that their model cannot hold, such as a second physics mesh."""
    taken = {id(node) for model in models for node in nodes_of(model)}
    for node in scene.nodes:
        if node.mesh is None or id(node) in taken:
            continue
        number = -1 if node.model is None else node.model
        owner = scene.nodes[number].name if 0 <= number < len(scene.nodes) else ""
        what = f"level {node.lod}" if node.role is Role.RENDER else "another physics shape"
        text = f"it is {what} of '{owner}', which cannot hold it; left out"
        alone = "the object that it belongs to is not exported; left out"
        yield warning(f"Object '{node.name}'", text if owner else alone)


@dataclass(frozen=True)
class _ModelRules(CheckedModel):
    """The rules for numbers, sizes and levels, and the order of all rules."""

    is_upload: bool = True

    def check(self) -> list[Finding]:
        """Apply all rules; some only if the finest level has triangles and all values are finite."""
        if not self.model.mesh.triangle_count:
            return [self.error("its highest level has no triangles; there is nothing to show")]
        broken = list(self.numbers())
        findings = list(broken)
        if not broken:
            findings += [*self.extents(), *self.physics()]
        surfaces = _SurfaceRules(self.model, self.sizes, self.stored)
        bones = BoneRules(self.model, self.sizes, self.stored)
        rules = (self.size, self.levels, surfaces.materials, surfaces.uvs)
        for rule in (*rules, bones.joints, bones.weights, bones.stray_weights):
            findings += rule()
        return findings

    def size(self) -> Iterator[Finding]:
        """Warn about a model that is far too large for the target."""
        triangles = self.model.mesh.triangle_count
        if triangles > MOST_TRIANGLES and not self.stored:
            yield self.warning(f"it has {triangles:,} triangles, more than the {MOST_TRIANGLES:,} of one object")

    def numbers(self) -> Iterator[Finding]:
        """Check for NaN and infinite values."""
        finest = self.model.finest
        if not np.isfinite([*finest.translation, *finest.rotation, *finest.scale]).all():
            yield self.error("its location, rotation or scale is NaN or infinite")
        skin = finest.skin
        if skin is not None and not (np.isfinite(skin.inverse_bind).all() and np.isfinite(skin.bind_shape).all()):
            yield self.error("a matrix of its binding to the armature holds NaN or infinite values")
        for node in nodes_of(self.model):
            mesh = node.mesh
            if mesh is None or (node is not finest and node.generated_from):
                continue  # generated from the finest level, so it has the same invalid values
            for what, layer in (
                ("a position", Layer("", mesh.points)),
                ("a normal", mesh.normal),
                ("UVs", mesh.uvs[0] if mesh.uvs else None),
            ):
                broken = _broken_points(mesh, layer)
                if broken.any():
                    number = counted(int(broken.sum()), "vertex has", "vertices have")
                    text = f"{number} {what} with NaN or infinite coordinates; delete or correct them"
                    yield self.error(text, node, vertices=broken)

    def extents(self) -> Iterator[Finding]:
        """Check the size in metres, and scales that were not applied (section 12)."""
        finest, points = self.model.finest, _used_points(self.model.mesh)
        scale = np.array(finest.scale, np.float64)
        metres = np.ptp(points, axis=0).astype(np.float64) * np.abs(scale)
        metres = np.where(metres < _FLAT_AXIS, 1.0, metres)
        size = " × ".join(f"{length:.4g}" for length in metres)
        if metres.max() > OPEN_MOST_SIZE:
            yield self.error(f"it is {size} m; the maximum is {MOST_SIZE:g} m (in OpenSim {OPEN_MOST_SIZE:g} m)")
        elif metres.max() > MOST_SIZE:
            yield self.warning(f"it is {size} m; the maximum in Second Life is {MOST_SIZE:g} m")
        if metres.min() < OPEN_LEAST_SIZE:
            text = f"it is {size} m; OpenSim may leave out objects thinner than {OPEN_LEAST_SIZE * 1000:g} mm"
            yield self.warning(text)
        elif metres.min() < LEAST_SIZE:
            text = f"it is {size} m; Second Life makes it {LEAST_SIZE * 1000:g} mm along each axis at least"
            yield self.warning(text)
        if self.stored or is_as_imported(self.model):
            return  # an import puts the size of an object into its scale
        if (scale < 0).any():
            text = "its scale is negative, which the uploader would lose; apply it (Object > Apply > Scale)"
            yield self.warning(text, fix=Fix.APPLY_SCALE)
        elif np.ptp(scale) > _UNEVEN_SCALE * scale.max():
            text = "its scale is uneven and not applied; apply it (Object > Apply > Scale)"
            yield self.warning(text, fix=Fix.APPLY_SCALE)

    def levels(self) -> Iterator[Finding]:
        """Check for levels that are heavier than finer ones (section 12)."""
        finer = ""
        finer_count = finer_bytes = 0
        for number, node, mesh in self.level_nodes():
            size = self.sizes.get(LEVELS[number], 0)
            if finer and mesh.triangle_count > finer_count:
                text = f"it has {mesh.triangle_count:,} triangles, more than the {finer} level with {finer_count:,}"
                yield self.warning(text, node)
            elif finer and size > _HEAVIER * finer_bytes > 0:
                yield self.warning(f"it takes {size:,} bytes, more than the {finer} level with {finer_bytes:,}", node)
            finer, finer_count, finer_bytes = LEVEL_LABELS[number].lower(), mesh.triangle_count, size

    def physics(self) -> Iterator[Finding]:
        """Check for shapes that the uploader or the simulator rejects (section 5)."""
        hulls = [(node, node.mesh) for node in self.model.hulls if node.mesh is not None]
        if len(hulls) > MOST_HULLS:
            yield self.error(f"{len(hulls):,} hulls; {MOST_HULLS} at most: join parts, or choose another physics shape")
        for node, mesh in hulls:
            points = len(np.unique(mesh.points, axis=0))
            if points > MOST_HULL_POINTS:
                yield self.error(f"the hull has {points:,} vertices; {MOST_HULL_POINTS} at most", node)
        flat = [(node, mesh) for node, mesh in hulls if _is_flat(mesh)]
        for node, mesh in flat[:10]:
            text = "the hull is flat; it needs 4 vertices that are not in one plane"
            yield self.warning(text, node, vertices=np.ones(len(mesh.points), bool))
        if len(flat) > 10:
            yield self.warning(f"{len(flat) - 10:,} more of its hulls are flat")
        shape = self.model.physics
        if hulls or shape is None or shape.mesh is None or not shape.mesh.triangle_count:
            return
        unit_cube = unit_cube_of(self.model, as_imported=self.stored)
        bad = degenerate_triangles(unit_cube.normalised(shape.mesh.points), shape.mesh.corner_point)
        if bad.any():
            number = counted(int(bad.sum()), "triangle is", "triangles are")
            text = (
                f"{number} too thin or too small for physics; the uploader refuses the physics mesh: correct it, "
                "choose a simpler object, or the physics shape Convex Hull"
            )
            if is_as_imported(self.model):
                text += "; Keep as Imported writes it as it is"
            yield (self.error if self.is_upload else self.warning)(text, shape, triangles=bad)


class _SurfaceRules(CheckedModel):
    """The rules for materials and UVs."""

    def materials(self) -> Iterator[Finding]:
        """Compare the materials of the levels (section 10), and check their number and their vertices (section 12)."""
        finest = self.model.mesh
        known = dict.fromkeys(finest.materials[slot] for slot in _used_slots(finest))
        slots = max(len(finest.materials), 1) if self.stored else len(known)
        if slots > MOST_FACES:
            text = f"it has {slots} materials; an object has {MOST_FACES} faces at most"
            if self.stored:
                yield self.error(text)
            else:
                yield self.warning(f"{text}, so it becomes {-(-slots // MOST_FACES)} objects")
        shapes = [] if self.model.physics is None or self.model.physics.mesh is None else [self.model.physics]
        for node in [*(node for _number, node, _mesh in self.level_nodes()), *shapes]:
            mesh = node.mesh
            if mesh is None:
                continue
            yield from self.crowded_faces(node, mesh)
            if node is self.model.finest or (node is self.model.physics and not self.stored):
                continue  # an export gives physics meshes the materials of the highest level
            used = _used_slots(mesh)
            strange = [slot for slot in used if mesh.materials[slot] not in known]
            if strange and not node.generated_from:  # a generated level has the materials of a finer one
                names = self.material_names(dict.fromkeys(mesh.materials[slot] for slot in strange))
                text = f"{names}: not among the materials of the highest level; the uploader refuses that"
                yield self.error(text, node, triangles=np.isin(mesh.material_index, strange))

    def material_names(self, names: Iterable[str]) -> str:
        """Return the names of materials for a message; ``_face_1``, for a file without names, becomes ``face 1``."""
        named = [name or "no material" for name in names]
        return listed(named if self.model.name else [name.replace("_", " ").strip() for name in named])

    def crowded_faces(self, node: Node, mesh: Mesh) -> Iterator[Finding]:
        """Check for faces with more points than a face may have vertices; each point is at least one vertex.

        Faces that are split in all levels alike are reported only for the finest.
        """
        if len(mesh.points) <= MOST_VERTICES or not (self.stored or node is self.model.finest):
            return
        triangles = mesh.corner_point.reshape(-1, 3)
        for slot in _used_slots(mesh):
            points = len(np.unique(triangles[mesh.material_index == slot]))
            if points > MOST_VERTICES:
                name = f"material '{mesh.materials[slot]}'" if mesh.materials[slot] else f"material slot {slot + 1}"
                text = f"{name} has {points:,} vertices; a face has {MOST_VERTICES:,} at most"
                yield self.warning(text if self.stored else f"{text}, so it becomes several", node)

    def uvs(self) -> Iterator[Finding]:
        """Check for missing UVs, and for UVs with too large values (section 12)."""
        for _number, node, mesh in self.level_nodes(made=False):
            if not mesh.uvs:
                if not self.stored:
                    yield self.warning("it has no UV map, so textures do not show", node, fix=Fix.ADD_UV_MAP)
                continue
            if not len(mesh.uvs[0].values):
                continue
            values = mesh.uvs[0].values
            far: Flags = np.any((np.abs(values) > MOST_UV) & np.isfinite(values), axis=1)
            if far.any():
                points = _points_with(mesh, mesh.uvs[0], far)
                most = float(np.abs(values[np.isfinite(values)]).max())
                text = (
                    f"its UVs reach {most:.6g}; they are stored in {65535:,} steps over their range, "
                    "so textures will swim"
                )
                yield self.warning(text, node, vertices=points)


def _broken_points(mesh: Mesh, layer: Layer | None) -> Flags:
    """Return which points used by triangles have a NaN or infinite value, (P,)."""
    if layer is None or np.isfinite(layer.values.sum(dtype=np.float64)):
        return np.zeros(len(mesh.points), bool)
    broken: Flags = np.any(~np.isfinite(layer.values), axis=1)
    return _points_with(mesh, layer, broken)


def _points_with(mesh: Mesh, layer: Layer, values: Flags) -> Flags:
    """Return which points used by triangles have a value of the layer for which ``values`` is True, (P,)."""
    found = np.zeros(len(mesh.points), bool)
    if layer.index is not None:
        found[mesh.corner_point[values[layer.index]]] = True
    elif layer.per_corner:
        found[mesh.corner_point[values]] = True
    else:
        found[mesh.corner_point[values[mesh.corner_point]]] = True
    return found


def _used_points(mesh: Mesh) -> npt.NDArray[np.float32]:
    used = np.zeros(len(mesh.points), bool)
    used[mesh.corner_point] = True
    return mesh.points if used.all() else mesh.points[used]


def _used_slots(mesh: Mesh) -> list[int]:
    """Return the slots with triangles."""
    counts = np.bincount(mesh.material_index, minlength=len(mesh.materials))
    slots: list[int] = np.flatnonzero(counts[: len(mesh.materials)]).tolist()
    return slots


def _is_flat(mesh: Mesh) -> bool:
    """Return whether all points are in one plane, or fewer than four."""
    points = np.unique(mesh.points.astype(np.float64), axis=0)
    if len(points) < 4:
        return True
    if not np.isfinite(points).all():
        return False  # the coordinates themselves are the error
    away = points - points.mean(axis=0)
    axes = np.linalg.svd(away, full_matrices=False)[2]
    width = np.ptp(away @ axes.T, axis=0)
    return bool(width[2] < _HULL_THICKNESS * width[0])

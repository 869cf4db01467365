"""Check models against the rules of uploader and simulator (formats page, sections 4.4, 5, 10 and 12)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ...core.messages import Message, Report, Text, counted, error, listed, warning
from ...core.scene import FloatArray, IntArray, Layer, Mesh, Node, Role, Scene
from ..models.faces import MOST_FACES, MOST_VERTICES, material_text
from ..models.models import Model, findings_once, models_of
from ..models.physics_block import MOST_HULLS, MOST_POINTS
from ..models.unit_cube import box_of, is_as_imported, unit_cube_of
from ..options import LEVEL_LABELS, LEVELS
from .bone_rules import BoneRules, CheckedModel, Flags

_LEAST = np.float32(1e-7)
_LEAST_OF_EVEN = np.float32(1e-11)
"""Smallest squared cross product of two edges of similar lengths, for a triangle that is not degenerate. Edges of
different lengths (see ``_UNEVEN``) have the limit ``_LEAST``."""
_UNEVEN = np.float32(100)
"""Largest ratio of two squared edge lengths for which the lengths count as similar."""


def degenerate_triangles(points: FloatArray, corner_point: IntArray) -> npt.NDArray[np.bool_]:
    """Return which triangles have so little area that the uploader rejects the physics mesh, (T,).

    Parameters
    ----------
    points:
        (P, 3) in the unit cube (±0.5); computed in single precision, like the uploader.
    corner_point:
        (3 T,). A triangle with three equal corners is a placeholder and does not count.
    """
    triangles = corner_point.reshape(-1, 3)
    with np.errstate(over="ignore", invalid="ignore"):
        a, b, c = (points[triangles[:, corner]].astype(np.float32) * np.float32(0.5) for corner in range(3))
        ab, ac, cb = a - b, a - c, c - b
        first, second, third = _squared(ab), _squared(ac), _squared(cb)
        even = (first <= _UNEVEN * second) & (first <= _UNEVEN * third)
        even &= (second <= _UNEVEN * first) & (third <= _UNEVEN * first)
        least = np.where(even, _LEAST_OF_EVEN, _LEAST)
        found = (_squared(np.cross(ab, ac)) < least) | (_squared(np.cross(-ab, -cb)) < least)
        found |= first * third - _dot(ab, cb) ** 2 == 0
    placeholder = (triangles[:, 0] == triangles[:, 1]) & (triangles[:, 1] == triangles[:, 2])
    flags: npt.NDArray[np.bool_] = found & ~placeholder
    return flags


def _dot(one: FloatArray, other: FloatArray) -> FloatArray:
    product: FloatArray = one[:, 0] * other[:, 0] + one[:, 1] * other[:, 1] + one[:, 2] * other[:, 2]
    return product


def _squared(vectors: FloatArray) -> FloatArray:
    return _dot(vectors, vectors)


MOST_TRIANGLES = 8 * 21_844
"""Most triangles of an object: a face has at most 21,844. Larger models are split, but uploading them takes minutes
and usually fails."""
LEAST_SIZE, MOST_SIZE = 0.01, 64.0
"""Range of an object's size along each axis in Second Life, in metres."""
OPEN_LEAST_SIZE, OPEN_MOST_SIZE = 0.001, 256.0
"""Minimum and maximum size in OpenSim."""
MOST_UV = 1000.0

_FLAT_AXIS = 1e-5
"""Extent in metres below which an axis counts as flat; an export gives it the size 1 metre."""
_HULL_THICKNESS = 1e-4
"""Share of a hull's extent below which it is flat."""
_HEAVIER = 1.05
"""Ratio of the compressed size to that of the finer level above which a level is reported as too large. It is over 1,
since the same triangles can take a few bytes more or less."""
_UNEVEN_SCALE = 1e-3


def check_scene(scene: Scene, *, is_upload: bool = True) -> list[Message]:
    """Apply :func:`check_models` to all models of a scene, and report nodes that belong to no model."""
    models = models_of(scene)
    return [*check_models(models, scene, is_upload=is_upload), *_left_over(models, scene)]


def check_native_scene(scene: Scene) -> list[Message]:
    """Apply :func:`check_scene` for formats that never pass the uploader's test of physics triangles."""
    return check_scene(scene, is_upload=False)


def check_models(
    models: Sequence[Model],
    scene: Scene,
    *,
    sizes: Mapping[str, int] | None = None,
    stored: bool = False,
    is_upload: bool = True,
) -> list[Message]:
    """Return errors for what the uploader rejects and warnings for unexpected results; each names its model.

    Parameters
    ----------
    models:
        Result of :func:`.models.models_of` for the scene.
    scene:
        Scene of the models. With ``Scene.as_imported``, unchanged imported models are treated as ``stored``.
    sizes:
        Compressed size of each block of the only model in bytes, if known.
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

    def check(model: Model) -> list[Message]:
        as_stored = stored or (scene.as_imported and is_as_imported(model))
        return _ModelRules(model, sizes or {}, as_stored, is_upload).check()

    return findings_once(models, check)


def _left_over(models: Sequence[Model], scene: Scene) -> Iterator[Message]:
    """Warn about levels and shapes that a model cannot contain, such as a second physics mesh."""
    taken = {id(node) for model in models for node in model.nodes}
    for node in scene.nodes:
        if node.mesh is None or id(node) in taken:
            continue
        number = -1 if node.model is None else node.model
        owner = scene.nodes[number].name if 0 <= number < len(scene.nodes) else ""
        subject = Text("Object '{}'", node.name)
        if owner:
            what = Text("level {}", node.lod) if node.role is Role.RENDER else Text("another physics shape")
            yield warning(
                "part-left-out", "it is {} of '{}', which cannot hold it; left out", what, owner, item=subject
            )
        else:
            template = "the object that it belongs to is not exported; left out"
            yield warning("part-without-object-left-out", template, item=subject)


class _SurfaceRules(CheckedModel):
    """The rules for materials and UVs."""

    def materials(self) -> Iterator[Message]:
        """Compare the materials of the levels (section 10), and check their number and their vertices (section 12)."""
        finest = self.model.mesh
        known = dict.fromkeys(finest.materials[slot] for slot in _used_slots(finest))
        slots = max(len(finest.materials), 1) if self.stored else len(known)
        if slots > MOST_FACES:
            split = Text("" if self.stored else ", so it becomes {} objects", -(-slots // MOST_FACES))
            template = "it has {} materials; an object has {} faces at most{}"
            report = error if self.stored else warning
            yield report("too-many-materials", template, slots, MOST_FACES, split, **self.about())
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
                template = "{}: not among the materials of the highest level; the uploader refuses that"
                about = self.about(node, triangles=np.isin(mesh.material_index, strange))
                yield error("material-not-in-finest-level", template, names, **about)

    def material_names(self, names: Iterable[str]) -> Text:
        """Return the names of materials for a message; ``_face_1``, for a file without names, becomes ``face 1``."""
        named = [name or "no material" for name in names]
        return listed(named if self.model.name else [name.replace("_", " ").strip() for name in named])

    def crowded_faces(self, node: Node, mesh: Mesh) -> Iterator[Message]:
        """Check for faces with more points than a face may have vertices; each point is at least one vertex.

        Faces that are split in all levels alike are reported only for the finest.
        """
        if len(mesh.points) <= MOST_VERTICES or not (self.stored or node is self.model.finest):
            return
        triangles = mesh.corner_point.reshape(-1, 3)
        for slot in _used_slots(mesh):
            points = len(np.unique(triangles[mesh.material_index == slot]))
            if points > MOST_VERTICES:
                name = material_text(mesh.materials[slot], slot)
                rest = "" if self.stored else Text(", so it becomes several")
                template = "{} has {:,} vertices; a face has {:,} at most{}"
                yield warning("too-many-vertices", template, name, points, MOST_VERTICES, rest, **self.about(node))

    def uvs(self) -> Iterator[Message]:
        """Check for missing UVs, and for UVs with too large values (section 12)."""
        for _number, node, mesh in self.level_nodes(made=False):
            if not mesh.uvs:
                if not self.stored:
                    template = "it has no UV map, so textures do not show"
                    yield warning("no-uv-map", template, **self.about(node, is_fixable=True))
                continue
            if not len(mesh.uvs[0].values):
                continue
            values = mesh.uvs[0].values
            far: Flags = np.any((np.abs(values) > MOST_UV) & np.isfinite(values), axis=1)
            if far.any():
                points = _points_with(mesh, mesh.uvs[0], far)
                most = float(np.abs(values[np.isfinite(values)]).max())
                yield warning(
                    "large-uvs",
                    "its UVs reach {:.6g}; they are stored in {:,} steps over their range, so textures will swim",
                    most,
                    65535,
                    **self.about(node, vertices=points),
                )


@dataclass(frozen=True)
class _ModelRules(_SurfaceRules, BoneRules):
    """The rules for values, sizes and levels; its ``check`` applies all rules in order."""

    is_upload: bool = True

    def check(self) -> list[Message]:
        """Apply all rules; some only if the finest level has triangles and all values are finite."""
        if not self.model.mesh.triangle_count:
            template = "its highest level has no triangles; there is nothing to show"
            return [error("no-triangles", template, **self.about())]
        broken = list(self.numbers())
        findings = list(broken)
        if not broken:
            findings += [*self.extents(), *self.physics()]
        rules = (self.size, self.levels, self.materials, self.uvs, self.joints, self.weights, self.stray_weights)
        for rule in rules:
            findings += rule()
        return findings

    def size(self) -> Iterator[Message]:
        """Warn about a model that is far too large for the target."""
        triangles = self.model.mesh.triangle_count
        if triangles > MOST_TRIANGLES and not self.stored:
            template = "it has {:,} triangles, more than the {:,} of one object"
            yield warning("too-many-triangles", template, triangles, MOST_TRIANGLES, **self.about())

    def numbers(self) -> Iterator[Message]:
        """Check for NaN and infinite values."""
        finest = self.model.finest
        if not np.isfinite([*finest.translation, *finest.rotation, *finest.scale]).all():
            yield error("nan-transform", "its location, rotation or scale is NaN or infinite", **self.about())
        skin = finest.skin
        if skin is not None and not (np.isfinite(skin.inverse_bind).all() and np.isfinite(skin.bind_shape).all()):
            template = "a matrix of its binding to the armature holds NaN or infinite values"
            yield error("nan-binding", template, **self.about())
        for node in self.model.nodes:
            mesh = node.mesh
            if mesh is None or (node is not finest and node.generated_from):
                continue  # generated from the finest level, whose invalid values are already reported
            for code, what, layer in (
                ("nan-coordinates", "a position", Layer("", mesh.points)),
                ("nan-normals", "a normal", mesh.normal),
                ("nan-uv-coordinates", "UVs", mesh.uvs[0] if mesh.uvs else None),
            ):
                broken = _broken_points(mesh, layer)
                if broken.any():
                    number = counted(int(broken.sum()), "vertex has", "vertices have")
                    template = "{} {} with NaN or infinite coordinates; delete or correct them"
                    yield error(code, template, number, Text(what), **self.about(node, vertices=broken))

    def extents(self) -> Iterator[Message]:
        """Check the size in metres, and report scales that are not applied (section 12)."""
        finest, (least, most) = self.model.finest, box_of(self.model.mesh)
        scale = np.array(finest.scale, np.float64)
        metres = (most - least) * np.abs(scale)
        metres = np.where(metres < _FLAT_AXIS, 1.0, metres)
        size = " × ".join(f"{length:.4g}" for length in metres)
        about = self.about()
        if metres.max() > OPEN_MOST_SIZE:
            template = "it is {} m; the maximum is {:g} m (in OpenSim {:g} m)"
            yield error("object-too-large", template, size, MOST_SIZE, OPEN_MOST_SIZE, **about)
        elif metres.max() > MOST_SIZE:
            template = "it is {} m; the maximum in Second Life is {:g} m"
            yield warning("object-too-large", template, size, MOST_SIZE, **about)
        if metres.min() < OPEN_LEAST_SIZE:
            template = "it is {} m; OpenSim may leave out objects thinner than {:g} mm"
            yield warning("object-too-thin", template, size, OPEN_LEAST_SIZE * 1000, **about)
        elif metres.min() < LEAST_SIZE:
            template = "it is {} m; Second Life makes it {:g} mm along each axis at least"
            yield warning("object-thickened", template, size, LEAST_SIZE * 1000, **about)
        if self.stored or is_as_imported(self.model):
            return  # an import stores the size of an object as its scale
        about = self.about(is_fixable=True)
        if (scale < 0).any():
            template = "its scale is negative, which the uploader would lose; apply it (Object > Apply > Scale)"
            yield warning("negative-scale", template, **about)
        elif np.ptp(scale) > _UNEVEN_SCALE * scale.max():
            template = "its scale is uneven and not applied; apply it (Object > Apply > Scale)"
            yield warning("uneven-scale", template, **about)

    def levels(self) -> Iterator[Message]:
        """Check for levels whose data is larger than that of finer levels (section 12)."""
        finer = ""
        finer_count = finer_bytes = 0
        for number, node, mesh in self.level_nodes():
            size = self.sizes.get(LEVELS[number], 0)
            if finer and mesh.triangle_count > finer_count:
                template = "it has {:,} triangles, more than the {} level with {:,}"
                values = (mesh.triangle_count, Text(finer), finer_count)
                yield warning("level-with-more-triangles", template, *values, **self.about(node))
            elif finer and size > _HEAVIER * finer_bytes > 0:
                template = "it takes {:,} bytes, more than the {} level with {:,}"
                yield warning("level-with-more-bytes", template, size, Text(finer), finer_bytes, **self.about(node))
            finer, finer_count, finer_bytes = LEVEL_LABELS[number].lower(), mesh.triangle_count, size

    def physics(self) -> Iterator[Message]:
        """Check for shapes that the uploader or the simulator rejects (section 5)."""
        hulls = [(node, node.mesh) for node in self.model.hulls if node.mesh is not None]
        if len(hulls) > MOST_HULLS:
            template = "{:,} hulls; {} at most: join parts, or choose another physics shape"
            yield error("too-many-hulls", template, len(hulls), MOST_HULLS, **self.about())
        for node, mesh in hulls:
            points = len(np.unique(mesh.points, axis=0))
            if points > MOST_POINTS:
                template = "the hull has {:,} vertices; {} at most"
                yield error("hull-with-too-many-vertices", template, points, MOST_POINTS, **self.about(node))
        flat = [(node, mesh) for node, mesh in hulls if _is_flat(mesh)]
        for node, mesh in flat[:10]:
            about = self.about(node, vertices=np.ones(len(mesh.points), bool))
            yield warning("flat-hull", "the hull is flat; it needs 4 vertices that are not in one plane", **about)
        if len(flat) > 10:
            yield warning("flat-hull", "{:,} more of its hulls are flat", len(flat) - 10, **self.about())
        shape = self.model.physics
        if hulls or shape is None or shape.mesh is None or not shape.mesh.triangle_count:
            return
        unit_cube = unit_cube_of(self.model, Report(), as_imported=self.stored)
        bad = degenerate_triangles(unit_cube.normalised(shape.mesh.points), shape.mesh.corner_point)
        if bad.any():
            yield (error if self.is_upload else warning)(
                "degenerate-physics-triangles",
                "{} too thin or too small for physics; the uploader refuses the physics mesh: correct it, choose a "
                "simpler object, or the physics shape Convex Hull{}",
                counted(int(bad.sum()), "triangle is", "triangles are"),
                Text("; Keep as Imported writes it as it is") if is_as_imported(self.model) else "",
                **self.about(shape, triangles=bad),
            )


def _broken_points(mesh: Mesh, layer: Layer | None) -> Flags:
    """Return which points used by triangles have a NaN or infinite value, (P,)."""
    if layer is None or np.isfinite(layer.values.sum(dtype=np.float64)):
        return np.zeros(len(mesh.points), bool)
    broken: Flags = np.any(~np.isfinite(layer.values), axis=1)
    return _points_with(mesh, layer, broken)


def _points_with(mesh: Mesh, layer: Layer, values: Flags) -> Flags:
    """Return which points used by triangles have a value of the layer for which ``values`` is True, (P,)."""
    found = np.zeros(len(mesh.points), bool)
    marked = replace(layer, values=values[:, None], stored=None).at_corners(mesh.corner_point)
    found[mesh.corner_point[marked[:, 0]]] = True
    return found


def _used_slots(mesh: Mesh) -> list[int]:
    """Return the slots with triangles."""
    counts = np.bincount(mesh.material_index, minlength=len(mesh.materials))
    return np.flatnonzero(counts[: len(mesh.materials)]).tolist()


def _is_flat(mesh: Mesh) -> bool:
    """Return whether all points are in one plane, or fewer than four."""
    points = np.unique(mesh.points.astype(np.float64), axis=0)
    if len(points) < 4:
        return True
    if not np.isfinite(points).all():
        return False  # invalid coordinates are reported as an error of their own
    away = points - points.mean(axis=0)
    axes = np.linalg.svd(away, full_matrices=False)[2]
    width = np.ptp(away @ axes.T, axis=0)
    return bool(width[2] < _HULL_THICKNESS * width[0])

"""Check models against the rules of uploader and simulator (formats page, sections 4.4, 5, 10 and 12)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..core.findings import Elements, Finding, Fix, Severity, error, warning
from ..core.messages import counted, listed
from ..core.scene import Layer, Mesh, Node, Role, Scene
from ..geometry.connectivity import places
from . import skeleton_table
from .degenerates import degenerate_triangles
from .faces import MOST_FACES, MOST_VERTICES
from .models import LEVEL_LABELS, LEVELS, Model, models_of
from .placement import is_as_imported, nodes_of, placement_of

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

_RESERVED = re.compile(r"_(?:LOD|PHYS)")
_FLAT_AXIS = 1e-5
"""Extent in metres below which an axis counts as flat; an export gives it the size 1 metre."""
_HULL_THICKNESS = 1e-4
"""Share of a hull's extent below which it is flat."""
_WEIGHT_STEP = 2 / 65535
_TURNED = 0.01
_HEAVIER = 1.05
"""Ratio to the compressed size of the finer level above which a level is reported as heavier. It is over 1, since the
same triangles can take a few bytes more or less."""
_UNEVEN_SCALE = 1e-3

_Flags = npt.NDArray[np.bool_]


def check_scene(scene: Scene) -> list[Finding]:
    """Apply :func:`check_models` to all models of a scene, and report nodes that belong to no model."""
    models = models_of(scene)
    return [*check_models(models, scene), *_left_over(models, scene)]


def check_models(
    models: Sequence[Model],
    scene: Scene,
    *,
    sizes: Mapping[str, Mapping[str, int]] | None = None,
    stored: bool = False,
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

    Returns
    -------
    list
        Findings. Their elements are indices of triangles and points in the ``Mesh`` of the named node, or names of
        joints. Findings on generated meshes have no elements.
    """
    findings: list[Finding] = []
    keeps = scene.as_imported
    for model in models:
        as_stored = stored or (keeps and is_as_imported(model))
        findings += _ModelRules(model, (sizes or {}).get(model.name, {}), as_stored).check()
    return list(dict.fromkeys(findings))


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
class _Checked:
    """A model to check, and the texts and elements of findings about it."""

    model: Model
    sizes: Mapping[str, int]
    stored: bool

    def item(self, node: Node | None = None) -> str:
        """Return the name of the object concerned, or for a part without an object, the part and its model."""
        name = self.model.name
        if node is None or node is self.model.finest:
            return f"Object '{name}'" if name else ""
        if name and node.name and node.name != name and not node.generated_from:
            return f"Object '{node.name}'"
        part = self.part(node)
        return f"Object '{name}', {part}" if name else part[:1].upper() + part[1:]

    def part(self, node: Node) -> str:
        """Return what a node is in the model: ``high level``, ``physics mesh`` or ``hull``, for example."""
        for label, level in zip(LEVEL_LABELS, self.model.levels, strict=True):
            if level is node:
                return f"{label.lower()} level"
        return "physics mesh" if node is self.model.physics else "hull"

    def elements(self, kind: str, node: Node, members: _Flags) -> Elements | None:
        """Return triangles or vertices of a node as elements, if it is an object in Blender."""
        if node.generated_from:
            return None
        return Elements(kind, node.name, tuple(np.flatnonzero(members).tolist()))

    def fixable(self, message: str, fix: Fix, node: Node | None = None) -> Finding:
        """Return a warning with a fix about a node, by default the finest."""
        names = ((node or self.model.finest).name,)
        return Finding(Severity.WARNING, self.item(node), message, fix=fix, names=names)

    def level_nodes(self, *, made: bool = True) -> Iterator[tuple[int, Node, Mesh]]:
        """Yield the existing levels, the finest first; with ``made``, also those that an export generates."""
        for number, node in enumerate(self.model.levels):
            if node is not None and node.mesh is not None and (made or not node.generated_from):
                yield number, node, node.mesh


class _ModelRules(_Checked):
    """The rules for names, numbers, sizes and levels, and the order of all rules."""

    def check(self) -> list[Finding]:
        """Apply all rules; some only if the finest level has triangles and all values are finite."""
        findings = list(self.names())
        if not self.model.mesh.triangle_count:
            return [*findings, error(self.item(), "its highest level has no triangles; there is nothing to show")]
        broken = list(self.numbers())
        findings += broken
        if not broken:
            findings += [*self.extents(), *self.physics()]
        surfaces = _SurfaceRules(self.model, self.sizes, self.stored)
        bones = _BoneRules(self.model, self.sizes, self.stored)
        for rule in (self.size, self.levels, surfaces.materials, surfaces.uvs, bones.joints, bones.weights):
            findings += rule()
        return findings

    def names(self) -> Iterator[Finding]:
        """Check for names that the uploader confuses with level suffixes (section 10.1)."""
        found = _RESERVED.search(self.model.name)
        if found and not self.stored:
            text = f"its name contains '{found.group()}', behind which the uploader cuts names off; rename it"
            yield warning(self.item(), text)

    def size(self) -> Iterator[Finding]:
        """Warn about a model that is far too large for the target."""
        triangles = self.model.mesh.triangle_count
        if triangles > MOST_TRIANGLES and not self.stored:
            yield warning(
                self.item(), f"it has {triangles:,} triangles, more than the {MOST_TRIANGLES:,} of one object"
            )

    def numbers(self) -> Iterator[Finding]:
        """Check for NaN and infinite values."""
        finest = self.model.finest
        if not np.isfinite([*finest.translation, *finest.rotation, *finest.scale]).all():
            yield error(self.item(), "its location, rotation or scale is NaN or infinite")
        skin = finest.skin
        if skin is not None and not (np.isfinite(skin.inverse_bind).all() and np.isfinite(skin.bind_shape).all()):
            yield error(self.item(), "a matrix of its binding to the armature holds NaN or infinite values")
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
                    yield error(self.item(node), text, self.elements("vertices", node, broken))

    def extents(self) -> Iterator[Finding]:
        """Check the size in metres, and scales that were not applied (section 12)."""
        finest, points = self.model.finest, _used_points(self.model.mesh)
        extent = np.ptp(points, axis=0).astype(np.float64)
        scale = np.array(finest.scale, np.float64)
        metres = extent * np.abs(scale)
        metres = np.where(metres < _FLAT_AXIS, 1.0, metres)
        size = " × ".join(f"{length:.4g}" for length in metres)
        if metres.max() > OPEN_MOST_SIZE:
            text = f"it is {size} m; the maximum is {MOST_SIZE:g} m (in OpenSim {OPEN_MOST_SIZE:g} m)"
            yield error(self.item(), text)
        elif metres.max() > MOST_SIZE:
            text = f"it is {size} m; the maximum in Second Life is {MOST_SIZE:g} m"
            yield warning(self.item(), text)
        if metres.min() < OPEN_LEAST_SIZE:
            text = f"it is {size} m; OpenSim may leave out objects thinner than {OPEN_LEAST_SIZE * 1000:g} mm"
            yield warning(self.item(), text)
        elif metres.min() < LEAST_SIZE:
            text = f"it is {size} m; Second Life makes it {LEAST_SIZE * 1000:g} mm along each axis at least"
            yield warning(self.item(), text)
        if self.stored or is_as_imported(self.model):
            return  # an import puts the size of an object into its scale
        if (scale < 0).any():
            text = "its scale is negative, which the uploader would lose; apply it (Object > Apply > Scale)"
            yield self.fixable(text, Fix.APPLY_SCALE)
        elif np.ptp(scale) > _UNEVEN_SCALE * scale.max():
            text = "its scale is uneven and not applied; apply it (Object > Apply > Scale)"
            yield self.fixable(text, Fix.APPLY_SCALE)

    def levels(self) -> Iterator[Finding]:
        """Check for levels that are heavier than finer ones (section 12)."""
        finer = ""
        finer_count = finer_bytes = 0
        for number, node, mesh in self.level_nodes():
            size = self.sizes.get(LEVELS[number], 0)
            if finer and mesh.triangle_count > finer_count:
                text = f"it has {mesh.triangle_count:,} triangles, more than the {finer} level with {finer_count:,}"
                yield warning(self.item(node), text)
            elif finer and size > _HEAVIER * finer_bytes > 0:
                text = f"it takes {size:,} bytes, more than the {finer} level with {finer_bytes:,}"
                yield warning(self.item(node), text)
            finer, finer_count, finer_bytes = LEVEL_LABELS[number].lower(), mesh.triangle_count, size

    def physics(self) -> Iterator[Finding]:
        """Check for shapes that the uploader or the simulator rejects (section 5)."""
        hulls = [(node, node.mesh) for node in self.model.hulls if node.mesh is not None]
        if len(hulls) > MOST_HULLS:
            text = f"{len(hulls):,} hulls; {MOST_HULLS} at most: join parts, or choose another physics shape"
            yield error(self.item(), text)
        for node, mesh in hulls:
            points = np.unique(mesh.points, axis=0)
            if len(points) > MOST_HULL_POINTS:
                text = f"the hull has {len(points):,} vertices; {MOST_HULL_POINTS} at most"
                yield error(self.item(node), text)
        flat = [node for node, mesh in hulls if _is_flat(mesh)]
        for node in flat[:10]:
            text = "the hull is flat; it needs 4 vertices that are not in one plane"
            everything = np.ones(len(node.mesh.points) if node.mesh is not None else 0, bool)
            yield warning(self.item(node), text, self.elements("vertices", node, everything))
        if len(flat) > 10:
            yield warning(self.item(), f"{len(flat) - 10:,} more of its hulls are flat")
        shape = self.model.physics
        if hulls or shape is None or shape.mesh is None or not shape.mesh.triangle_count:
            return
        placement = placement_of(self.model, as_imported=self.stored)
        bad = degenerate_triangles(placement.normalised(shape.mesh.points), shape.mesh.corner_point)
        if bad.any():
            number = counted(int(bad.sum()), "triangle is", "triangles are")
            text = (
                f"{number} too thin or too small for physics; the uploader refuses the physics mesh: correct it, "
                "choose a simpler object, or use a convex hull instead"
            )
            yield error(self.item(shape), text, self.elements("triangles", shape, bad))


class _SurfaceRules(_Checked):
    """The rules for materials and UVs."""

    def materials(self) -> Iterator[Finding]:
        """Compare the materials of the levels (section 10), and check their number and their vertices (section 12)."""
        finest = self.model.mesh
        known = dict.fromkeys(finest.materials[slot] for slot in _used_slots(finest))
        slots = max(len(finest.materials), 1) if self.stored else len(known)
        if slots > MOST_FACES:
            text = f"it has {slots} materials; an object has {MOST_FACES} faces at most"
            if self.stored:
                yield error(self.item(), text)
            else:
                yield warning(self.item(), f"{text}, so it becomes {-(-slots // MOST_FACES)} objects")
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
                yield error(
                    self.item(node),
                    text,
                    self.elements("triangles", node, np.isin(mesh.material_index, strange)),
                )
            missing = [name for name in known if name not in {mesh.materials[slot] for slot in used}]
            if missing and node is not self.model.physics:
                verb = "has" if len(missing) == 1 else "have"
                text = f"{self.material_names(missing)} {verb} no triangles here and will vanish at this distance"
                yield warning(self.item(node), text)

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
                yield warning(self.item(node), text if self.stored else f"{text}, so it becomes several")

    def uvs(self) -> Iterator[Finding]:
        """Check for missing UVs, and for UVs with too large values (section 12)."""
        for _number, node, mesh in self.level_nodes(made=False):
            if not mesh.uvs:
                if not self.stored:
                    yield self.fixable("it has no UV map, so textures do not show", Fix.ADD_UV_MAP, node)
                continue
            if not len(mesh.uvs[0].values):
                continue
            values = mesh.uvs[0].values
            far: _Flags = np.any((np.abs(values) > MOST_UV) & np.isfinite(values), axis=1)
            if far.any():
                points = _points_with(mesh, mesh.uvs[0], far)
                most = float(np.abs(values[np.isfinite(values)]).max())
                text = (
                    f"its UVs reach {most:.6g}; they are stored in {65535:,} steps over their range, "
                    "so textures will swim"
                )
                yield warning(self.item(node), text, self.elements("vertices", node, points))


class _BoneRules(_Checked):
    """The rules for joints and weights."""

    def joints(self) -> Iterator[Finding]:
        """Check the joints of the mesh and its binding to them (sections 4.3 and 4.4)."""
        skeleton, skin = self.model.skeleton, self.model.finest.skin
        if skeleton is None:
            return
        used = np.unique(np.concatenate([_used_joints(mesh) for _number, _node, mesh in self.level_nodes()]))
        names = [skeleton.joints[joint].name for joint in used.tolist() if joint < len(skeleton.joints)]
        unknown = [name for name in names if skeleton_table.canonical(name) is None]
        if unknown:
            text = (
                f"{counted(len(unknown), 'bone moves', 'bones move')} it that the avatar does not have: "
                f"{listed(unknown)}; the uploader leaves out the whole rig"
            )
            yield error(self.item(), text, Elements("bones", skeleton.name, tuple(unknown)))
        known = {skeleton_table.canonical(name) for name in names} - {None}
        if len(known) > skeleton_table.MOST_JOINTS:
            text = f"{len(known)} bones move it; a mesh may have {skeleton_table.MOST_JOINTS}"
            yield error(self.item(), text)
        if self.stored and skin is not None:
            if len(skin.joint_names) > skeleton_table.MOST_JOINTS:
                text = f"it is bound to {len(skin.joint_names)} joints; a mesh may have {skeleton_table.MOST_JOINTS}"
                yield warning(self.item(), text)
            idle = [name for name in skin.joint_names if skeleton_table.canonical(name) is None and name not in unknown]
            if idle:
                yield warning(self.item(), f"it lists joints that the avatar does not have: {listed(idle)}")
            if _is_turned(skin.bind_shape):
                text = "its bind shape matrix has a rotation; the uploader warns about it, but the mesh works"
                yield warning(self.item(), text)

    def weights(self) -> Iterator[Finding]:
        """Check for vertices without weights, and for points at one position with different weights (section 4.1)."""
        if self.model.skeleton is None:
            return
        for _number, node, mesh in self.level_nodes(made=False):
            used = np.zeros(len(mesh.points), bool)
            used[mesh.corner_point] = True
            if mesh.joint_weights is None or mesh.joint_indices is None:
                yield warning(self.item(node), "no vertex has weights; all follow the first joint")
                continue
            loose = used & ~(mesh.joint_weights > 0).any(axis=1)
            if loose.any():
                number = counted(int(loose.sum()), "vertex has", "vertices have")
                text = f"{number} no weights and will follow the first joint"
                yield warning(self.item(node), text, self.elements("vertices", node, loose))
            if not self.stored:
                torn = used & _disagreeing(mesh)
                if torn.any():
                    number = counted(int(torn.sum()), "vertex is", "vertices are")
                    text = (
                        f"{number} at the position of another vertex with different weights; the uploader gives both "
                        "the weights of the last one"
                    )
                    yield warning(self.item(node), text, self.elements("vertices", node, torn))


def _broken_points(mesh: Mesh, layer: Layer | None) -> _Flags:
    """Return which points used by triangles have a NaN or infinite value, (P,)."""
    if layer is None or np.isfinite(layer.values.sum(dtype=np.float64)):
        return np.zeros(len(mesh.points), bool)
    broken: _Flags = np.any(~np.isfinite(layer.values), axis=1)
    return _points_with(mesh, layer, broken)


def _points_with(mesh: Mesh, layer: Layer, values: _Flags) -> _Flags:
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


def _used_joints(mesh: Mesh) -> npt.NDArray[np.int32]:
    """Return the joints with weights."""
    if mesh.joint_indices is None or mesh.joint_weights is None:
        return np.empty(0, np.int32)
    joints: npt.NDArray[np.int32] = np.unique(mesh.joint_indices[mesh.joint_weights > 0])
    return joints


def _is_flat(mesh: Mesh) -> bool:
    """Return whether all points are in one plane, or fewer than four."""
    points = np.unique(mesh.points.astype(np.float64), axis=0)
    if len(points) < 4:
        return True
    away = points - points.mean(axis=0)
    axes = np.linalg.svd(away, full_matrices=False)[2]
    width = np.ptp(away @ axes.T, axis=0)
    return bool(width[2] < _HULL_THICKNESS * width[0])


def _is_turned(matrix: npt.NDArray[np.float64]) -> bool:
    """Return whether a matrix rotates more than the uploader accepts: a quaternion over 0.01 from the identity."""
    linear = matrix[:3, :3]
    length = np.linalg.norm(linear, axis=0)
    if not np.isfinite(linear).all() or not (length > 0).all():
        return False
    cosine = (np.trace(linear / length) - 1) / 2
    half = np.arccos(np.clip(cosine, -1, 1)) / 2
    return bool(2 * np.sin(half / 2) > _TURNED)


def _disagreeing(mesh: Mesh) -> _Flags:
    """Return which points are at the same position as another point with different weights, (P,)."""
    none = np.zeros(len(mesh.points), bool)
    if mesh.joint_indices is None or mesh.joint_weights is None:
        return none
    place = places(mesh.points)
    shared = np.flatnonzero(np.bincount(place)[place] > 1)
    if not len(shared):
        return none
    weights = np.maximum(mesh.joint_weights[shared], 0).astype(np.float64)
    weights /= np.maximum(weights.sum(axis=1, keepdims=True), 1e-30)
    # Hash of each point's weights that does not depend on the order of its joints or on entries with weight 0.
    joints = mesh.joint_indices[shared].astype(np.float64)
    print_of = np.column_stack([(weights * np.sin(joints * factor + factor)).sum(axis=1) for factor in (1.37, 2.91)])
    order = np.argsort(place[shared], kind="stable")
    ordered = place[shared][order]
    first = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    leader = np.maximum.accumulate(np.where(first, np.arange(len(order)), 0))
    differs = (np.abs(print_of[order] - print_of[order][leader]) > 4 * _WEIGHT_STEP).any(axis=1)
    torn_places = np.zeros(int(place.max()) + 1, bool)
    torn_places[ordered[differs]] = True
    found: _Flags = torn_places[place]
    return found

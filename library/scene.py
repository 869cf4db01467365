"""Scenes as programs see them: views of nodes, skeletons and clips over the scene of the codecs.

Right-handed, metres, Z up, triangles counter-clockwise, v of UVs up. Matrices are (4, 4) float64 for column vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..io_formats.core import scene as core
from ..io_formats.core.errors import MeshferryError
from ..io_formats.core.messages import of_kind
from ..io_formats.geometry import hierarchy
from ..io_formats.geometry.transforms import decompose_matrix
from .mesh import Mesh, given_array, read_only

if TYPE_CHECKING:
    from ..io_formats.core.messages import Message

Matrix = npt.NDArray[np.float64]


class Skeleton:
    """Joints in the order of their indices, which ``Mesh.weights`` uses; parents may come after their children."""

    def __init__(self, skeleton: core.Skeleton) -> None:
        self._core = skeleton

    @property
    def name(self) -> str:
        """Name of the skeleton."""
        return self._core.name

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the joints."""
        return tuple(joint.name for joint in self._core.joints)

    @property
    def parents(self) -> npt.NDArray[np.int32]:
        """(J,) index of each joint's parent, -1 for roots."""
        return read_only(np.array([joint.parent for joint in self._core.joints], np.int32))

    @property
    def rest(self) -> Matrix:
        """(J, 4, 4) world matrices of the joints at rest."""
        return read_only(hierarchy.placed_matrices(self._core.joints))


class Clip:
    """An animation; :meth:`Scene.posed` and :meth:`Scene.joint_matrices` evaluate it."""

    def __init__(self, clip: core.Clip) -> None:
        self._core = clip

    @property
    def name(self) -> str:
        """Name of the animation."""
        return self._core.name

    @property
    def fps(self) -> float:
        """Frames per second; 0 if the file does not state them."""
        return self._core.fps or self._core.key_rate

    @property
    def frame_count(self) -> int:
        """Number of frames; 0 for a clip that has keys at arbitrary times."""
        return self._core.frame_count

    @property
    def duration(self) -> float:
        """Length in seconds, from the first frame to the last; 30 frames per second if the file states none."""
        if self._core.keys or self._core.times is not None:
            return self._core.duration
        return max(self._core.frame_count - 1, 0) / (self._core.fps or 30.0)


class Node:
    """An object of a scene, with a place and, unless it only groups others, a mesh."""

    __slots__ = ("_core", "_read", "_scene")

    def __init__(self, scene: Scene, node: core.Node, read: Callable[[], core.Mesh | None] | None = None) -> None:
        self._scene, self._core, self._read = scene, node, read

    @property
    def name(self) -> str:
        """Name of the node."""
        return self._core.name

    @name.setter
    def name(self, name: str) -> None:
        self._changed().name = name

    @property
    def parent(self) -> Node | None:
        """The node to whose space ``matrix`` is relative; None for a root."""
        return self._scene.nodes[self._core.parent] if self._core.parent >= 0 else None

    @property
    def matrix(self) -> Matrix:
        """Matrix relative to the parent. One with shear cannot be assigned, nor one to a node that a skeleton moves."""
        stored = self._core.file_matrix
        return read_only(hierarchy.local_matrices([self._core])[0] if stored is None else np.asarray(stored))

    @matrix.setter
    def matrix(self, matrix: npt.ArrayLike) -> None:
        found = given_array("matrix", matrix, np.float64, (4, 4))
        (translation, rotation, scale), rest = decompose_matrix(found)
        if rest is not None or found[3].tolist() != [0, 0, 0, 1]:
            template = "The matrix of '{}' has shear, perspective or a zero scale, which nodes cannot have"
            raise MeshferryError(template, self.name)
        if self._core.skeleton is not None and not np.array_equal(found, self.matrix):
            raise MeshferryError("A matrix has no effect on '{}', which its skeleton moves", self.name)
        node = self._changed()
        node.translation, node.rotation, node.scale, node.file_matrix = translation, rotation, scale, None

    @property
    def world_matrix(self) -> Matrix:
        """Matrix from the node's space, that of its mesh, to the scene's."""
        return self.matrix if self.parent is None else read_only(self.parent.world_matrix @ self.matrix)

    @property
    def mesh(self) -> Mesh | None:
        """The mesh, which several nodes may share; each has the same object then."""
        mesh = self._core.mesh if self._read is None else self._read()
        return None if mesh is None else self._scene._view(Mesh._of, mesh)

    @mesh.setter
    def mesh(self, mesh: Mesh | None) -> None:
        node, nodes = self._changed(), self._scene.nodes
        if mesh is None and node.mesh is not None:
            own = nodes.index(self)
            if any(other._core.model == own for other in nodes if other._core.mesh is not None):
                raise MeshferryError("'{}' has levels of detail or physics; set their meshes to None first", self.name)
        node.mesh = None if mesh is None else mesh._core
        if mesh is not None:
            self._scene._views[mesh._core] = mesh

    @property
    def skeleton(self) -> Skeleton | None:
        """The skeleton that deforms the mesh."""
        return None if self._core.skeleton is None else self._scene.skeletons[self._core.skeleton]

    @property
    def level(self) -> int:
        """Level of detail, 0 for the finest."""
        return self._core.lod

    @property
    def role(self) -> str:
        """Purpose of the mesh: ``render``, ``physics`` (a collision mesh) or ``hull`` (one convex part of it)."""
        return self._core.role.value

    def _changed(self) -> core.Node:
        """Return the codecs' node, to change it."""
        self._scene._changed()
        return self._core

    def __repr__(self) -> str:
        return f"<Node '{self.name}'>"


class Scene:
    """The content of a file, or of a file to be: nodes, skeletons and clips.

    Parameters
    ----------
    name:
        Name of the scene, which some formats store.
    """

    def __init__(self, name: str = "scene", *, _core: core.Scene | None = None) -> None:
        self._core = core.Scene(name) if _core is None else _core
        self._views: dict[Any, Any] = {}  # of meshes, skeletons and clips
        self.nodes: tuple[Node, ...] = tuple(Node(self, node) for node in self._core.nodes)
        """All nodes, in the order of the file."""
        if self._core.placement is not None:
            from .placed import placed_nodes  # few formats place models

            self.nodes = tuple(Node(self, *placed) for placed in placed_nodes(self._core.placement, self._core.report))

    @property
    def name(self) -> str:
        """Name of the scene."""
        return self._core.name

    @name.setter
    def name(self, name: str) -> None:
        self._core.name = name

    @property
    def format(self) -> str:
        """Name of the format that the scene was read from; empty for a new scene."""
        return self._core.format

    @property
    def messages(self) -> list[Message]:
        """Losses, changes and notes of the reader."""
        return self._core.warnings

    @property
    def materials(self) -> list[core.Material]:
        """What is known of materials besides their names, which ``Mesh.materials`` has."""
        return self._core.materials

    @property
    def skeletons(self) -> tuple[Skeleton, ...]:
        """All skeletons."""
        return tuple(self._view(Skeleton, skeleton) for skeleton in self._core.skeletons)

    @property
    def clips(self) -> tuple[Clip, ...]:
        """The animations."""
        return tuple(self._view(Clip, clip) for clip in self._core.clips)

    @property
    def meshes(self) -> tuple[Mesh, ...]:
        """Each mesh once, also those that several nodes share."""
        return tuple(dict.fromkeys(mesh for node in self.nodes if (mesh := node.mesh) is not None))

    def walk(self) -> Iterator[Node]:
        """Yield all nodes, parents before their children."""
        for index in hierarchy.parents_first([node._core.parent for node in self.nodes]):
            yield self.nodes[index]

    def add(
        self,
        name: str,
        mesh: Mesh | None = None,
        *,
        parent: Node | None = None,
        matrix: npt.ArrayLike | None = None,
        skeleton: Skeleton | None = None,
    ) -> Node:
        """Add a node at a matrix relative to its parent, and return it; the skeleton is added, too.

        A mesh with a skeleton becomes a root in the skeleton's space: the matrix, and its parent's, move its points.
        """
        place = np.identity(4) if matrix is None else given_array("matrix", matrix, np.float64, (4, 4))
        if mesh is not None and skeleton is not None:
            place, parent = place if parent is None else parent.world_matrix @ place, None
            if not np.array_equal(place, np.identity(4)):
                from ..io_formats.passes.flatten import moved

                mesh, place = Mesh._of(moved(mesh._core, place)), np.identity(4)
        node = Node(self, core.Node(name, -1 if parent is None else _index(self.nodes, parent)))
        node.mesh, node.matrix = mesh, place
        if skeleton is not None:
            if skeleton._core not in self._core.skeletons:
                self._core.skeletons.append(skeleton._core)
                self._views[skeleton._core] = skeleton
            node._core.skeleton = self._core.skeletons.index(skeleton._core)
        self._core.nodes.append(node._core)
        self.nodes += (node,)
        return node

    def merge(self, other: Scene) -> None:
        """Add copies of the nodes, skeletons, clips and materials of another scene; arrays are shared."""
        own, added = self._changed(), copied(other._changed())
        count = len(self.nodes)
        steps = {"parent": count, "lod_of": count, "shape_of": count, "target": count, "skeleton": len(own.skeletons)}

        def moved(part: Any) -> Any:
            """Return a node or a track with indices of the merged scene; tracks of joints keep their joint."""
            fixed = "target" if getattr(part, "skeleton", None) is not None else ""
            found = {name: getattr(part, name, None) for name in steps if name != fixed}
            return replace(part, **{name: n + steps[name] for name, n in found.items() if n is not None and n >= 0})

        own.nodes += map(moved, added.nodes)
        for clip in added.clips:
            transforms, keys, vertices = ([*map(moved, t)] for t in (clip.transforms, clip.keys, clip.vertices))
            own.clips.append(replace(clip, transforms=transforms, keys=keys, vertices=vertices))
        known = {material.name: material for material in own.materials}
        others = [other.name for other in added.materials if known.get(other.name, other).color != other.color]
        text = "{} the colour of those with the same name: {}"
        added.report.loss_of("other-colors", text, of_kind("material", others), "material takes", "materials take")
        own.materials += [copy(material) for material in added.materials if material.name not in known]
        own.skeletons += map(copy, added.skeletons)
        own.warnings += added.warnings
        self.nodes += tuple(Node(self, node) for node in own.nodes[count:])

    def add_clips(self, other: Scene) -> list[Message]:
        """Add the animations of another scene for bones of the same names; return what they lose."""
        from ..io_formats.passes.clips import adopt_clips

        return adopt_clips(self._core, other._core)

    def scale(self, factor: float) -> None:
        """Multiply all lengths: points, places of nodes and joints, bindings, and movement."""
        if not 0 < factor < np.inf:
            raise MeshferryError("A scene cannot be scaled by {:g}", factor)
        done: dict[int, Any] = {}
        old = self._changed()  # ``done`` has results by the identity of its parts
        own = [view for part, view in self._views.items() if view._core is part]
        self._core = _scaled(old, factor, done)
        for view in (*self.nodes, *own):
            view._core = done.get(id(view._core), view._core)
        self._views = {view._core: view for view in own}

    def joint_matrices(self, skeleton: Skeleton, clip: Clip, time: float) -> Matrix:
        """Return the (J, 4, 4) world matrices of a skeleton's joints at a time of a clip in seconds."""
        from .posing import world_matrices

        return world_matrices(self._core, self._frame(clip, time))[1 + _index(self.skeletons, skeleton)]

    def posed(self, clip: Clip, time: float) -> Mapping[Node, npt.NDArray[np.float32]]:
        """Return the points (n, 3) of each node's mesh at a time of a clip in seconds, in the scene's space.

        Times outside of the clip give its first or last frame.
        """
        from .posing import posed_points

        return dict(zip(self.nodes, posed_points(self._changed(), self._frame(clip, time)), strict=True))

    def to_gltf(self) -> tuple[bytes, list[Message]]:
        """Return a GLB file with meshes, skins, clips and shape keys, and messages about what it lacks.

        Images are left out. Clips have a key for each frame.
        """
        from .gltf import encode_scene

        return encode_scene(copied(self._changed()))

    def _frame(self, clip: Clip, time: float) -> core.Clip:
        """Return a clip with the single frame at a time in seconds."""
        from ..io_formats.passes.clips import sample_clip

        own = self._core.clips[_index(self.clips, clip)]
        own = replace(own, vertices=[*_following(own.vertices, self._core.nodes)])
        return sample_clip(own, self._core, own.fps, given_array("time", [time], np.float64, (1,)))

    def _view(self, make: Callable[[Any], Any], part: Any) -> Any:
        """Return the view of a part of the codecs' scene: always the same, unless another scene has scaled that one."""
        view = self._views.get(part)
        if view is None or view._core is not part:
            view = self._views[part] = make(part)
        return view

    def _changed(self) -> core.Scene:
        """Return the codecs' scene, to change it."""
        if self._core.placement is not None:
            raise MeshferryError("'{}' places models of other files: it cannot be changed", self.name)
        return self._core


def _index(parts: Sequence[Any], part: Any) -> int:
    """Return the index of a node, skeleton or clip of a scene."""
    if part not in parts:
        raise MeshferryError("'{}' is not in this scene", getattr(part, "name", part))
    return parts.index(part)


def copied(scene: core.Scene) -> core.Scene:
    """Return a copy that passes may change; arrays are shared.

    Raises
    ------
    MeshferryError
        A mesh has weights of joints that its skeleton does not have.
    """
    for node in scene.nodes:
        if node.skeleton is not None and node.mesh is not None and node.mesh.joint_indices is not None:
            skeleton = scene.skeletons[node.skeleton]
            if node.mesh.joint_indices.max(initial=-1) >= len(skeleton.joints):
                raise MeshferryError("'{}' has weights of joints that '{}' does not have", node.name, skeleton.name)
    meshes = {node.mesh: replace(node.mesh) for node in scene.nodes if node.mesh is not None}
    nodes = [replace(node, mesh=node.mesh and meshes[node.mesh]) for node in scene.nodes]
    clips = [replace(clip, vertices=[*_following(clip.vertices, nodes)]) for clip in scene.clips]
    return replace(scene, nodes=nodes, skeletons=[*scene.skeletons], clips=clips, warnings=[*scene.warnings])


def _following(tracks: Iterable[core.VertexTrack], nodes: Sequence[core.Node]) -> Iterator[core.VertexTrack]:
    """Yield tracks with the same offsets from points that were assigned; a mesh with other points ends its tracks."""
    for track in tracks:
        old, new = track.mesh, nodes[track.target].mesh
        if new is not None and (old is None or len(old.points) == len(new.points)):
            if old is not None and old.points is not new.points:
                points = track.points + (new.points - old.points)[: track.points.shape[1]]
                yield replace(track, points=points, mesh=replace(new))
            else:
                yield track


_PARTS = {"nodes", "mesh", "shape_keys", "skin", "skeletons", "joints", "clips", "transforms", "vertices", "keys"}
_LENGTHS = {"points", "translation", "values", "tail", "joint_positions", "pelvis_offset"}
_MATRICES = {"inverse_bind", "alt_inverse_bind", "bind_shape", "worlds"}
_OF_FILE = {"file_matrix": None, "original": b"", "is_changed": True}
"""Values by which parts state whether they are as in the file."""


def _scaled(part: Any, factor: float, done: dict[int, Any]) -> Any:
    """Return a part of a scene, such as a node or a track, with other lengths; ``done`` has the result of each."""
    if isinstance(part, list):
        return [_scaled(each, factor, done) for each in part]
    if part is None or id(part) in done:
        return done.get(id(part))
    made = done[id(part)] = copy(part)
    for name, value in vars(part).items():
        if name in _PARTS or (isinstance(value, core.Keys) and name in _LENGTHS):
            setattr(made, name, _scaled(value, factor, done))
        elif name in _OF_FILE:
            setattr(made, name, _OF_FILE[name])
        elif value is not None and name in _LENGTHS:
            is_tuple = isinstance(value, tuple)
            setattr(made, name, tuple(length * factor for length in value) if is_tuple else value * factor)
        elif value is not None and name in _MATRICES:
            moved = np.array(value)
            moved[..., :3, 3] *= factor
            setattr(made, name, moved)
    return made

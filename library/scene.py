"""Scenes as programs see them: views of nodes, skeletons and clips over the scene of the codecs.

Right-handed, metres, Z up, triangles counter-clockwise, v of UVs up. Matrices are (4, 4) float64 for column vectors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..io_formats.core import scene as core
from ..io_formats.core.errors import MeshferryError
from ..io_formats.geometry import hierarchy
from ..io_formats.geometry.transforms import decompose_matrix, matrix_of_transform
from .mesh import Mesh, given_array, read_only

if TYPE_CHECKING:
    from ..io_formats.core.messages import Message
    from ..io_formats.core.placement import Content, ModelUse, PlacedModel, PlacedNode

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
    def names(self) -> list[str]:
        """Names of the joints."""
        return [joint.name for joint in self._core.joints]

    @property
    def parents(self) -> npt.NDArray[np.int32]:
        """(J,) index of each joint's parent, -1 for roots."""
        return np.array([joint.parent for joint in self._core.joints], np.int32)

    @property
    def rest(self) -> Matrix:
        """(J, 4, 4) world matrices of the joints at rest."""
        return hierarchy.world_matrices(local_matrices(self._core.joints), self.parents.tolist())


class Clip:
    """An animation; :meth:`Scene.posed` and :meth:`Scene.joint_matrices` evaluate it."""

    def __init__(self, clip: core.Clip) -> None:
        self._core = clip

    @property
    def name(self) -> str:
        """Name of the animation."""
        return self._core.name

    @name.setter
    def name(self, name: str) -> None:
        self._core.name = name

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

    def __init__(self, scene: Scene, node: core.Node, placed: PlacedNode | None = None) -> None:
        self._scene, self._core, self._placed = scene, node, placed

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
        """Matrix relative to the parent. One with shear cannot be assigned."""
        if self._placed is not None:
            return read_only(self._placed.matrix)
        return matrix_of_transform(self._core.translation, self._core.rotation, self._core.scale)

    @matrix.setter
    def matrix(self, matrix: npt.ArrayLike) -> None:
        (translation, rotation, scale), rest = decompose_matrix(given_array("matrix", matrix, np.float64, (4, 4)))
        if rest is not None:
            raise MeshferryError("The matrix of '{}' has shear or a zero scale, which nodes cannot have", self.name)
        node = self._changed()
        node.translation, node.rotation, node.scale, node.file_matrix = translation, rotation, scale, None

    @property
    def world_matrix(self) -> Matrix:
        """Matrix from the node's space, that of its mesh, to the scene's."""
        return self.matrix if self.parent is None else self.parent.world_matrix @ self.matrix

    @property
    def mesh(self) -> Mesh | None:
        """The mesh, which several nodes may share; each has the same object then."""
        if self._placed is not None:
            return self._scene._placed_mesh(self._placed.content)
        return None if self._core.mesh is None else self._scene._mesh_of(self._core.mesh)

    @mesh.setter
    def mesh(self, mesh: Mesh | None) -> None:
        self._changed().mesh = self._scene._known(mesh)

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
        self._scene._require_editable()
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
        self._meshes: dict[int, Mesh] = {}
        self._models: Sequence[PlacedModel] = ()
        self._uses: dict[ModelUse, Mesh | None] = {}
        self.nodes: list[Node] = [Node(self, node) for node in self._core.nodes]
        """All nodes, in the order of the file."""
        self.skeletons: list[Skeleton] = [Skeleton(skeleton) for skeleton in self._core.skeletons]
        """All skeletons."""
        if self._core.placement is not None:
            from .placed import placed_nodes  # few formats place models

            placed, self._models = placed_nodes(self._core.placement, self._core.report)
            self.nodes = [Node(self, core.Node(one.name, one.parent), one) for one in placed]

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
    def clips(self) -> list[Clip]:
        """The animations; assign a list to leave some out."""
        return [Clip(clip) for clip in self._core.clips]

    @clips.setter
    def clips(self, clips: Sequence[Clip]) -> None:
        self._core.clips = [clip._core for clip in clips]

    @property
    def materials(self) -> list[core.Material]:
        """What is known of materials besides their names, which ``Mesh.materials`` has."""
        return self._core.materials

    @property
    def meshes(self) -> list[Mesh]:
        """Each mesh once, also those that several nodes share."""
        return list(dict.fromkeys(mesh for node in self.nodes if (mesh := node.mesh) is not None))

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
        """Add a node at a matrix relative to its parent, and return it; the skeleton is added, too."""
        self._require_editable()
        made = core.Node(name, self.nodes.index(parent) if parent is not None else -1)
        made.mesh = self._known(mesh)
        if skeleton is not None:
            if skeleton not in self.skeletons:
                self._core.skeletons.append(skeleton._core)
                self.skeletons.append(skeleton)
            made.skeleton = self.skeletons.index(skeleton)
        self._core.nodes.append(made)
        self.nodes.append(Node(self, made))
        if matrix is not None:
            self.nodes[-1].matrix = given_array("matrix", matrix, np.float64, (4, 4))
        return self.nodes[-1]

    def merge(self, other: Scene) -> None:
        """Add copies of the nodes, skeletons, clips and materials of another scene; arrays are shared."""
        self._require_editable()
        other._require_editable()
        nodes, skeletons = len(self.nodes), len(self.skeletons)
        added = other._copy()
        for node in added.nodes:
            node.parent += nodes if node.parent >= 0 else 0
            node.lod_of = None if node.lod_of is None else node.lod_of + nodes
            node.shape_of = None if node.shape_of is None else node.shape_of + nodes
            node.skeleton = None if node.skeleton is None else node.skeleton + skeletons
        for clip in added.clips:
            clip.transforms = [
                replace(track, target=track.target + nodes)
                if track.skeleton is None
                else replace(track, skeleton=track.skeleton + skeletons)
                for track in clip.transforms
            ]
            clip.keys = [replace(track, skeleton=track.skeleton + skeletons) for track in clip.keys]
            clip.vertices = [replace(track, target=track.target + nodes) for track in clip.vertices]
        own, known = self._core, {material.name for material in self._core.materials}
        own.nodes += added.nodes
        own.skeletons += added.skeletons
        own.clips += added.clips
        own.materials += [material for material in added.materials if material.name not in known]
        own.warnings += added.warnings
        self.nodes += [Node(self, node) for node in added.nodes]
        self.skeletons += [Skeleton(skeleton) for skeleton in added.skeletons]

    def add_clips(self, other: Scene) -> list[Message]:
        """Add the animations of another scene for bones of the same names; return what they lose."""
        from ..io_formats.passes.clips import adopt_clips

        return adopt_clips(self._core, other._core)

    def scale(self, factor: float) -> None:
        """Multiply all lengths: points, places of nodes and joints, bindings, and movement."""
        self._require_editable()
        if not 0 < factor < np.inf:
            raise MeshferryError("A scene cannot be scaled by {:g}", factor)
        from .scaling import scale  # few programs need it

        scale(self._core, factor)

    def joint_matrices(self, skeleton: Skeleton, clip: Clip, time: float) -> Matrix:
        """Return the (J, 4, 4) world matrices of a skeleton's joints at a time of a clip in seconds."""
        from .posing import joint_matrices

        return joint_matrices(self._core, self.skeletons.index(skeleton), clip._core, time)

    def posed(self, clip: Clip, time: float) -> Mapping[Node, npt.NDArray[np.float32]]:
        """Return the points (n, 3) of each node's mesh at a time of a clip in seconds, in the scene's space.

        Times outside of the clip give its first or last frame.
        """
        from .posing import posed_points

        self._require_editable()
        return dict(zip(self.nodes, posed_points(self._core, clip._core, time), strict=True))

    def to_gltf(self) -> tuple[bytes, list[Message]]:
        """Return a GLB file with meshes, skins, clips and shape keys, and messages about what it lacks.

        Images are left out. Clips have a key for each frame.
        """
        from .gltf import encode_scene

        self._require_editable()
        return encode_scene(self._copy())

    def _copy(self) -> core.Scene:
        """Return a copy that passes may change; arrays are shared."""
        own = self._core
        meshes = {id(node.mesh): replace(node.mesh) for node in own.nodes if node.mesh is not None}
        nodes = [replace(node, mesh=meshes.get(id(node.mesh))) for node in own.nodes]
        clips = [replace(clip) for clip in own.clips]
        return replace(own, nodes=nodes, skeletons=[*own.skeletons], clips=clips, warnings=[*own.warnings])

    def _known(self, mesh: Mesh | None) -> core.Mesh | None:
        """Return the codecs' mesh of a mesh that a node gets."""
        if mesh is None:
            return None
        self._meshes[id(mesh._core)] = mesh
        return mesh._core

    def _mesh_of(self, mesh: core.Mesh) -> Mesh:
        if id(mesh) not in self._meshes:
            self._meshes[id(mesh)] = Mesh._of(mesh)
        return self._meshes[id(mesh)]

    def _placed_mesh(self, use: Content | None) -> Mesh | None:
        """Return the mesh of a node of a placement, which is read on first use."""
        from ..io_formats.core.placement import ModelUse

        if not isinstance(use, ModelUse):
            return None
        if use not in self._uses:
            from .placed import mesh_of

            found = mesh_of(self._models[use.model], use, self._core.report)
            self._uses[use] = None if found is None else Mesh._of(found)
        return self._uses[use]

    def _require_editable(self) -> None:
        if self._core.placement is not None:
            raise MeshferryError("'{}' places models of other files: it cannot be changed", self.name)


def local_matrices(joints: Sequence[core.Joint]) -> Matrix:
    """Return the local bind matrices of joints, (J, 4, 4)."""
    places = [matrix_of_transform(joint.translation, joint.rotation, joint.scale) for joint in joints]
    return np.array(places).reshape(-1, 4, 4)


def transformed(points: npt.NDArray[np.floating], matrix: Matrix) -> Matrix:
    """Return points (n, 3) after a transform."""
    moved: Matrix = points @ matrix[:3, :3].T + matrix[:3, 3]
    return moved

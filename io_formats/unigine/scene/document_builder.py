"""Scene -> documents: the new scene file, its nodes, its parts and its meshes (docs/formats/unigine_writing.md)."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np

from ...core.capabilities import losses
from ...core.errors import ExportError
from ...core.messages import Report, counted, listed
from ...core.placement import Camera, Light, ModelUse, PartUse, PlacedNode, Placement, PlacementPart, SlotUse
from ...core.scene import Clip, Material, Mesh, Scene, Skeleton
from ...disk.file_names import distinct_file_names, file_name
from ...encodings.xml_files import DEPTH_LIMIT
from ...geometry.transforms import Floats
from ...passes.flatten import fit
from ...passes.lods import level_of
from ...passes.placements import placement_of_nodes
from ...projects import Projects
from ..mesh import checks as mesh_checks
from ..mesh import codec as mesh_codec
from ..mesh import document_builder as mesh_document_builder
from ..mesh import format as mesh_format
from ..mesh import mapping as mesh_mapping
from ..mesh.characters import CHARACTER_SDK, OLDER_SDK, skinned_asset
from ..mesh.document import MeshFile
from ..project.new_assets import AS_IT_IS, AssetKind, NewAsset, TargetFolder, sdk_of
from ..project.new_materials import material_assets
from ..skeleton.references import report_unproven
from ..values import printable
from .characters import CharacterFiles, WrittenClip, playing_values, pose_values, skinned_values
from .codec import MOST_NODES, POSE_KIND, NewSet, NodeIds, SceneFile, SceneNode, SurfaceSetting, encode_new
from .format import WriteOptions

_MOST_LEVELS = DEPTH_LIMIT - 10
"""Maximum depth of nodes: the limit of XML readers, minus the elements around the nodes."""
_FARTHEST = 1e18
_LEAST_SCALE = 1e-6
_LEVEL_DISTANCE = 10.0
"""Distance in metres from which the first coarser level of detail is shown, if none is stated. It is three times as
large for each further level."""


@dataclass(frozen=True)
class WrittenSurface:
    """A surface of a mesh file that is written."""

    name: str
    material: str
    """Name of the material in the model, or empty."""
    level: int


@dataclass(frozen=True)
class WrittenModel:
    """A mesh file that nodes refer to."""

    reference: str
    """Name of a new asset, or ``guid://`` and the GUID of a file of the project."""
    surfaces: tuple[WrittenSurface, ...]
    is_skinned: bool
    material: Callable[[str], str]
    """Function that returns the reference of a material by its name; empty without a material."""
    skeleton: str = ""
    """GUID of the skeleton file of a character of SDK 2.21 or later."""
    clips: Mapping[str, WrittenClip] = field(default_factory=dict)
    """Animations of the model by name."""


class NodeBuilder:
    """Builds the nodes of the parts of a placement, and counts data that they cannot store."""

    def __init__(
        self, models: Sequence[WrittenModel], parts: Sequence[str], report: Report, options: WriteOptions
    ) -> None:
        self._models = models
        self._parts = parts
        self._report = report
        self._flags = ("intersection", "collision") if options.use_collision else ("intersection",)
        self._has_poses = options.characters == "POSE"
        self._lights: list[str] = []
        self._flattened: list[str] = []
        self._guessed: list[str] = []

    def nodes(self, part: PlacementPart, title: str) -> list[SceneNode]:
        """Return the nodes of a part.

        If several nodes have no parent, they are put below a new root named ``title``.

        Raises
        ------
        ExportError
            There are too many nodes, or they are nested too deeply, or a transform is invalid.
        """
        ids = NodeIds()
        places: list[int] = []
        made: list[SceneNode] = []
        depths: list[int] = []
        if sum(node.parent < 0 for node in part.nodes) != 1:
            made.append(SceneNode("NodeDummy", printable(title), ids.new(title)))
            depths.append(1)
        root = len(made) - 1
        poses = self._poses(part) if self._has_poses else {}
        for number, node in enumerate(part.nodes):
            parent = places[node.parent] if node.parent >= 0 else root
            places.append(len(made))
            for found in self._made(node, parent, len(made), poses.get(number, ""), is_posed=node.parent in poses):
                found.identifier = ids.new(f"{found.parent} {found.name}")
                depths.append(depths[found.parent] + 1 if found.parent >= 0 else 1)
                made.append(found)
            if len(made) > MOST_NODES:
                raise ExportError("The scene has more than {:,} nodes", MOST_NODES)
            if depths[-1] > _MOST_LEVELS:
                raise ExportError("Node '{}' is nested more than {:,} levels deep", node.name, _MOST_LEVELS)
        return made

    def report_losses(self) -> None:
        """Report data that the nodes built so far cannot store."""
        self._report.loss_of("lights-left-out", "{} not written: {}", self._lights, "light is", "lights are")
        if self._flattened:
            number = counted(len(self._flattened), "node has", "nodes have")
            template = "{} a scale of zero, written as {:g}: {}"
            self._report.change("zero-scale", template, number, _LEAST_SCALE, listed(self._flattened))
        if self._guessed:
            names = list(dict.fromkeys(self._guessed))
            template = "levels of detail change at {:g} m, {:g} m and so on, since no file states their distances: {}"
            distances = _LEVEL_DISTANCE, _LEVEL_DISTANCE * 3
            self._report.note("default-lod-distances", template, *distances, listed(names))

    def _poses(self, part: PlacementPart) -> dict[int, str]:
        """Return the GUIDs of the skeletons by which plain nodes pose all skinned meshes below them."""
        found: dict[int, set[str]] = {}
        for node in part.nodes:
            skeleton = self._models[node.content.model].skeleton if isinstance(node.content, ModelUse) else ""
            if skeleton and node.parent >= 0 and part.nodes[node.parent].content is None:
                is_in_place = np.allclose(node.matrix, np.identity(4), rtol=0, atol=1e-6)
                found.setdefault(node.parent, set()).add(skeleton if is_in_place else "")
        return {number: guids.pop() for number, guids in found.items() if len(guids) == 1 and "" not in guids}

    def _made(self, node: PlacedNode, parent: int, index: int, pose: str, *, is_posed: bool) -> Iterable[SceneNode]:
        """Yield the new node for a placed node, followed by the nodes below it for its instances or its mesh.

        Parameters
        ----------
        pose:
            GUID of the skeleton by which the node poses its children.
        is_posed:
            Whether the parent poses the node.
        """
        content = node.content
        model = self._models[content.model] if isinstance(content, ModelUse) else None
        if isinstance(content, ModelUse) and node.instances is not None:
            yield self._node(node, parent, None)
            for number, matrix in enumerate(node.instances, 1):
                place = PlacedNode(f"{node.name or 'instance'}_{number}", 0, matrix, content)
                yield self._node(place, index, content)
        elif self._has_poses and model is not None and model.skeleton and not is_posed:
            yield self._pose(node, parent, model.skeleton)
            yield self._node(PlacedNode(node.name, 0, content=content), index, content)
        elif pose:
            yield self._pose(node, parent, pose)
        else:
            yield self._node(node, parent, content)

    def _pose(self, node: PlacedNode, parent: int, guid: str) -> SceneNode:
        made = self._node(node, parent, None)
        made.kind, made.values = POSE_KIND, pose_values(guid)
        return made

    def _node(self, node: PlacedNode, parent: int, content: object) -> SceneNode:
        made = SceneNode("NodeDummy", "", "", parent, not node.is_hidden, self._matrix(node))
        if isinstance(content, ModelUse):
            model = self._models[content.model]
            made.kind = "ObjectMeshSkinned" if model.is_skinned else "ObjectMeshStatic"
            made.values["mesh_name"] = model.reference
            if model.skeleton and self._has_poses:
                made.values = skinned_values(model.reference)
            elif model.skeleton or model.clips:
                made.kind = "ObjectMeshSkinnedLegacy" if model.skeleton else made.kind
                made.values = playing_values(model.reference, model.clips, content.animation)
            made.surfaces = self._surfaces(node, model, content)
        elif isinstance(content, PartUse):
            made.kind = "NodeReference"
            made.values["reference"] = self._parts[content.part]
        elif isinstance(content, Camera):
            made.kind = "PlayerDummy"
            made.values = _camera_values(content)
        elif isinstance(content, Light):
            self._lights.append(node.name)
        made.name = printable(node.name) or made.kind
        return made

    def _surfaces(self, node: PlacedNode, model: WrittenModel, use: ModelUse) -> tuple[SurfaceSetting, ...]:
        """Return the settings of all surfaces of a model; a level is visible until the next coarser one starts."""
        waiting: dict[str, list[SlotUse]] = {}
        for slot in use.slots:
            waiting.setdefault(printable(slot.name), []).append(slot)
        found = (waiting.get(one.name) or waiting.get("") for one in model.surfaces)  # slots may be empty in the mesh
        chosen = [same.pop(0) if same else SlotUse(one.name) for one, same in zip(model.surfaces, found, strict=True)]
        distances = [_distance(slot, surface) for slot, surface in zip(chosen, model.surfaces, strict=True)]
        levels = sorted({nearest for nearest, _ in distances})
        if any(is_guessed for _, is_guessed in distances):
            self._guessed.append(node.name)
        following = dict(zip(levels, [*levels, None][1:], strict=True))
        return tuple(
            SurfaceSetting(
                surface.name,
                model.material(slot.material if slot.material is not None else surface.material),
                not slot.is_hidden,
                nearest,
                following[nearest],
                self._flags,
            )
            for slot, surface, (nearest, _) in zip(chosen, model.surfaces, distances, strict=True)
        )

    def _matrix(self, node: PlacedNode) -> Floats:
        """Return the matrix of a node; a scale of zero is replaced by the smallest allowed one.

        Raises
        ------
        ExportError
            A number is NaN, infinite or too large.
        """
        matrix = np.array(node.matrix, np.float64)
        if not (np.abs(matrix) < _FARTHEST).all():
            raise ExportError("Node '{}' has no valid transform", node.name)
        lengths = np.linalg.norm(matrix[:3, :3], axis=0)
        if lengths.min() < _LEAST_SCALE:
            self._flattened.append(node.name)
            for axis in np.flatnonzero(lengths < _LEAST_SCALE):
                matrix[:3, axis] = _direction(matrix[:3, :3], int(axis)) * _LEAST_SCALE
        return matrix


def _direction(linear: Floats, axis: int) -> Floats:
    """Return the direction for one axis of a matrix that is perpendicular to the other two axes."""
    across = np.cross(linear[:, (axis + 1) % 3], linear[:, (axis + 2) % 3])
    length = np.linalg.norm(across)
    return across / length if length > 0 else np.identity(3)[axis]


def _distance(slot: SlotUse, surface: WrittenSurface) -> tuple[float, bool]:
    """Return the distance from which on a surface is shown, and whether that is the default distance."""
    if slot.nearest is not None:
        return slot.nearest, False
    level = slot.level or surface.level
    return (_LEVEL_DISTANCE * 3 ** min(level - 1, 8), True) if level else (0.0, False)


def _camera_values(camera: Camera) -> dict[str, str]:
    """Return the fields of a camera's element, in the order of the file."""
    main = "1" if camera.is_main else "0"
    angle = {"fov": f"{math.degrees(camera.field_of_view):.9g}"} if camera.field_of_view else {}
    return {
        **angle,
        "znear": f"{camera.near:.9g}",
        "zfar": f"{camera.far:.9g}",
        "oblique_frustum_plane": "0 0 -1 0",
        "is_oblique_frustum": "0",
        "is_main": main,
        "is_listener": main,
        "controlled": main,
    }


_MESH_VERSIONS = (((2, 21), "MS15"), ((2, 20), "MS14"), ((2, 19), "MS13"), ((2, 15), "MS12"))
_MOST_NAMES = 5


class SetBuilder:
    """Builds the documents of a new scene and of the files that belong to it.

    These files are in a folder named after the scene, so that file names of several scenes do not collide.
    """

    def __init__(
        self, scene: Scene, options: WriteOptions, path: Path | None, projects: Projects, latest: str = ""
    ) -> None:
        self.scene = scene
        self.report = scene.report
        latest = OLDER_SDK if options.characters == "UPGRADE" else latest
        self.target = TargetFolder(path, options.sdk_version, projects, latest)
        self.name = path.stem if path is not None else file_name(scene.name)
        self.has_own_nodes = scene.placement is None
        self.placement: Placement = placement_of_nodes(scene) if scene.placement is None else scene.placement
        self.new = NewSet(self.target)
        self.models: list[WrittenModel] = []
        self._materials = {material.name: material for material in scene.materials}
        self._references = {name: self._reference(material) for name, material in self._materials.items()}
        self._options = options
        self._is_new = self.target.sdk >= sdk_of(CHARACTER_SDK)
        is_upgraded = self.target.version == OLDER_SDK and options.characters == "UPGRADE"
        self._holds_clips = self._is_new or is_upgraded
        version = "AN13" if self._is_new else "AN11"
        self._files = CharacterFiles(self.target, f"{self.name}/", version, self.report)

    def build(self) -> SceneFile:
        """Return the document of the scene.

        Raises
        ------
        ExportError
            Data that no file can hold.
        """
        names = distinct_file_names(part.name for part in self.placement.parts[1:])
        parts = [self.target.reference(part.file) for part in self.placement.parts[1:]]
        pairs = zip(parts, names, strict=True)
        uses = [f"guid://{guid}" if guid else f"{self.name}/{name}.node" for guid, name in pairs]
        builder = self.node_builder(uses)
        documents = [
            SceneFile("nodes", self.target.version, builder.nodes(part, title))
            for part, title in zip(self.placement.parts, [self.name, *names], strict=True)
        ]
        builder.report_losses()
        for guid, use, document in zip(parts, uses, documents[1:], strict=True):
            if not guid:
                self.new.assets.append(NewAsset(use, AssetKind.NODE, partial(encode_new, document)))
        documents[0].new_set = self.new
        return documents[0]

    def node_builder(self, uses: Iterable[str] = ()) -> NodeBuilder:
        """Add the files of all models and of their materials, and return the builder of the nodes that use them.

        ``uses`` are the references to further parts.
        """
        self.models = self._models()
        self._add_materials(self.models)
        return NodeBuilder(self.models, ["", *uses], self.report, self._options)

    def stems(self) -> list[str]:
        """Return the names of the models' files without extensions, relative to the scene."""
        return [f"{self.name}/{name}" for name in distinct_file_names(model.name for model in self.placement.models)]

    def _reference(self, material: Material) -> str:
        """Return the GUID of a material that needs no new file; an empty text if a file is written for it.

        No file is needed for materials in the project, and for materials of which only the GUID is known.
        """
        is_known = self.target.has(material.identity, or_else=material.shading is None)
        return material.identity if material.identity and is_known else ""

    def _models(self) -> list[WrittenModel]:
        """Return a :class:`WrittenModel` for each model; meshes that are not in the project become assets."""
        found: list[WrittenModel] = []
        animated: list[str] = []
        for model, stem in zip(self.placement.models, self.stems(), strict=True):
            scene, name = model.read(), stem.rpartition("/")[2]
            file = self._mesh_scene(scene, name)
            reference = self.target.reference(model.file)
            if scene.clips and (reference or not scene.skeletons or not self._holds_clips):
                animated.append(model.name)
            written, document = self._mesh(file)
            if reference:
                guid = file.skeletons[0].guid if file.skeletons and self._is_new else ""
                written = replace(written, reference=f"guid://{reference}", skeleton=guid)
            else:
                written = self._with_files(written, document, file, scene.clips, stem)
            found.append(written)
        text = "{} whose animation is not in the scene; export it as .anim and choose it in the editor: {}"
        self.report.loss_of("animation-not-named", text, animated, "mesh", "meshes", most=_MOST_NAMES)
        if any(asset.kind is AssetKind.MESH_SKINNED for asset in self.new.assets):
            report_unproven(self.report)
            if self._options.characters == "POSE":
                self.report.note("pose-without-graph", "a skeleton pose moves once you assign an animation graph to it")
        self.new.assets += self._files.assets
        return found

    def _with_files(
        self, written: WrittenModel, document: MeshFile, file: Scene, clips: list[Clip], stem: str
    ) -> WrittenModel:
        """Add the files of a model that is not in the project, and return it with references to them."""
        name = stem.rpartition("/")[2]
        skeleton = file.skeletons[0] if file.skeletons else None
        if document.version == mesh_format.SEPARATE_SKELETON_VERSION:
            guid = self._files.name_skeleton(document, skeleton or Skeleton(name))
            reference = f"{stem}{mesh_format.SKINNED_EXTENSION}"
            asset = skinned_asset(reference, document, mesh_codec.write(document))
            written = replace(written, skeleton=guid)
        else:
            reference, data = f"{stem}.mesh", mesh_codec.write(document)
            asset = NewAsset(reference, AssetKind.MESH, lambda _guids: data, AS_IT_IS)
        Report(self.new.findings, name).add(*mesh_checks.check(document))
        self.report.add(*file.warnings)
        self.new.assets.append(asset)
        if skeleton is None or not self._holds_clips:
            return replace(written, reference=reference)
        made = self._files.clips(file.part(name, skeletons=[skeleton], clips=clips), written.skeleton)
        return replace(written, reference=reference, clips=made)

    def _mesh_scene(self, scene: Scene, name: str) -> Scene:
        """Return a scene with only the mesh of a model. Its warnings report losses."""
        lost = [] if self.has_own_nodes else losses(scene, mesh_format.CAPABILITIES)
        model = scene.part(scene.name, [replace(node) for node in scene.nodes], scene.skeletons)
        fit(model, mesh_format.CAPABILITIES)
        files = mesh_mapping.files_of(model, mesh_format.WriteOptions(mesh_files="JOINED"))
        if not files:
            raise ExportError("Model '{}' has no mesh", name)
        files[0].warnings = lost
        return files[0]

    def _mesh(self, scene: Scene) -> tuple[WrittenModel, MeshFile]:
        """Return a model whose reference is not set yet, and its document."""
        mesh = scene.nodes[0].mesh
        is_skinned = scene.nodes[0].skeleton is not None
        version = self._mesh_version(mesh, is_skinned=is_skinned)
        options = mesh_format.WriteOptions(mesh_version=version)
        document = mesh_document_builder.MeshBuilder(scene, options).build()
        names = _slot_materials(mesh, scene.nodes[0].name) if mesh is not None else {}
        surfaces = []
        for surface in document.surfaces:
            waiting = names.get(surface.name, [])
            material = waiting.pop(0) if waiting else ""
            surface.name = printable(surface.name)
            surfaces.append(WrittenSurface(surface.name, material, level_of(surface.name) or 0))
        return WrittenModel("", tuple(surfaces), is_skinned or version == "SK10", self.material), document

    def _mesh_version(self, mesh: Mesh | None, *, is_skinned: bool) -> str:
        version = next((name for sdk, name in _MESH_VERSIONS if self.target.sdk >= sdk), "MS11")
        has_keys = mesh is not None and bool(mesh.shape_keys)
        return "SK10" if self._is_new and (is_skinned or has_keys) else version

    def material(self, name: str) -> str:
        """Return the reference of a material by its name; empty if it has no file."""
        return self._references.get(name, "")

    def _add_materials(self, models: Sequence[WrittenModel]) -> None:
        """Add assets for the used materials that the project does not have."""
        used = dict.fromkeys(surface.material for model in models for surface in model.surfaces)
        nodes = (node for part in self.placement.parts for node in part.nodes)
        uses = [node.content for node in nodes if isinstance(node.content, ModelUse)]
        used |= dict.fromkeys(slot.material or "" for use in uses for slot in use.slots)
        names = [name for name in used if name and not self._references.get(name)]
        materials = [replace(self._materials.get(name, Material(name)), identity="") for name in names]
        made = material_assets(materials, self.target.version, set(), self.report)
        self._references |= {name: f"{self.name}/{asset}" for name, asset in made.names.items()}
        self.new.assets += [_in_folder(asset, f"{self.name}/") for asset in made.assets]


def _slot_materials(mesh: Mesh, title: str) -> dict[str, list[str]]:
    """Return the materials of each surface of a mesh, in order, by the name of the surface."""
    found: dict[str, list[str]] = {}
    slots = [surface.name for surface in mesh.surfaces]
    names = slots if len(slots) == len(mesh.materials) else mesh.materials
    for name, material in zip(names, mesh.materials, strict=True):
        found.setdefault(name or title, []).append(material)
    return found


def _in_folder(asset: NewAsset, folder: str) -> NewAsset:
    """Return an asset moved into a folder. Its encoder gets the names of the other assets relative to that folder."""

    def encode(guids: Mapping[str, str]) -> bytes:
        return asset.encode({name.removeprefix(folder): guid for name, guid in guids.items()})

    return replace(asset, name=folder + asset.name, encode=encode)

"""Document <-> Scene with a placement: nodes, lights, cameras and the files they refer to; facts and checks."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from ...core.errors import FormatError
from ...core.messages import Kind, Message, Named, Report, Text, Unresolved, counted, distinct
from ...core.placement import (
    Camera,
    Content,
    Light,
    LightKind,
    ModelUse,
    PartUse,
    PlacedModel,
    PlacedNode,
    Placement,
    PlacementPart,
    SlotUse,
)
from ...core.scene import Scene
from ...projects import Projects
from ..project.project import Project, open_project
from . import codec, references
from .codec import (
    CONTROLLED,
    MESH_KINDS,
    MOST_LEVELS,
    MOST_NODES,
    POSE_KIND,
    REFERENCE_FIELDS,
    SceneFile,
    SceneNode,
    SurfaceSetting,
    parse_number,
    parse_numbers,
)
from .format import ReadOptions, WriteOptions
from .references import LinkedFile, Problem, ProjectLinks, is_of_editor


def check(document: SceneFile) -> list[Message]:
    """Return findings about the file itself. Findings about files that it refers to come from :func:`link`."""
    report = Report([replace(message, kind=Kind.WARNING) for message in document.warnings])
    repeated = [
        name for name, count in Counter(node.identifier for node in document.nodes).items() if name and count > 1
    ]
    report.warning_of("repeated-node-id", "{} used by several nodes: {}", repeated, "id")
    for node in document.nodes:
        has_mesh = node.geometry is not None or node.values.get("mesh_name") or node.values.get("reference")
        if node.kind in MESH_KINDS and not has_mesh:
            report.warning("names-no-mesh", "names no mesh, so nothing is shown", item=Text("node '{}'", node.name))
    report.add(*(document.new_set.findings if document.new_set is not None else ()))
    return report.messages


def facts(document: SceneFile) -> dict[str, Any]:
    """Return counts of the elements of the file itself. Files that it refers to are not read."""
    nodes = document.nodes
    meshes = [node.geometry for node in nodes if node.geometry is not None]
    surfaces = [surface for mesh in meshes for surface in mesh.surfaces]
    return {
        "version": document.version,
        "nodes": len(nodes),
        "vertices": sum(len(surface.targets[0].positions) for surface in surfaces),
        "triangles": sum(len(surface.c_indices) // 3 for surface in surfaces),
        "surfaces": sum(len(node.surfaces) for node in nodes),
        "materials": len({surface.material for node in nodes for surface in node.surfaces if surface.material}),
        "uv_layers": 2 if any(surface.uv0 is not None for surface in surfaces) else 0,
        "color_layers": int(any(surface.colors is not None for surface in surfaces)),
        "types": dict(Counter(node.kind for node in nodes).most_common()),
        "meshes": len({node.values.get("mesh_name") for node in nodes if node.kind in MESH_KINDS} - {None}),
        "references": len({node.values.get(field) for node in nodes for field in REFERENCE_FIELDS.values()} - {None}),
        "warnings": document.warnings,
    }


_LIGHTS = {"LightOmni": LightKind.POINT, "LightProj": LightKind.SPOT, "LightWorld": LightKind.SUN}
_CAMERAS = dict.fromkeys(("PlayerSpectator", "PlayerDummy", "PlayerPersecutor", "PlayerActor"))
_FIELD_OF_VIEW = 60.0
_BRIGHTEST = 1e6
_FARTHEST = 1e6
_LEAST_ANGLE, _MOST_ANGLE = 1.0, 175.0


def light_of(node: SceneNode) -> Light | None:
    """Return the light of a node, or None if it is of another type."""
    kind = _LIGHTS.get(node.kind)
    if kind is None:
        return None
    values = node.values
    color = parse_numbers(values.get("color"))
    if color is None or len(color) < 3:
        color = parse_numbers("1 1 1")
    red, green, blue = (min(max(float(part), 0.0), 1.0) for part in color[:3])  # type: ignore[index]
    sizes = parse_numbers(values.get("shape"))
    is_point = values.get("shape_type", "0") == "0" or sizes is None or not len(sizes)
    return Light(
        kind,
        (red, green, blue),
        _within(parse_number(values.get("intensity"), 1.0), 0.0, _BRIGHTEST),
        0.0 if is_point or sizes is None else _within(float(sizes[0]), 0.0, _FARTHEST),
        _angle(values.get("fov")),
        _within(parse_number(values.get("penumbra"), 0.0), 0.0, 1.0),
    )


def camera_of(node: SceneNode) -> Camera | None:
    """Return the camera of a node, or None if it is of another type."""
    if node.kind not in _CAMERAS:
        return None
    values = node.values
    near = _within(parse_number(values.get("znear"), 0.1), 1e-4, _FARTHEST)
    return Camera(
        _angle(values.get("fov")),
        near=near,
        far=_within(parse_number(values.get("zfar"), 1000.0), near * 2, _FARTHEST * 4),
        is_main=values.get("is_main") == "1",
    )


def _angle(text: str | None) -> float:
    return math.radians(_within(parse_number(text, _FIELD_OF_VIEW), _LEAST_ANGLE, _MOST_ANGLE))


def _within(value: float, least: float, most: float) -> float:
    return min(max(value, least), most)


_PLAIN = {"", "NodeDummy", "NodePivot", "ObjectDummy", "NodeReference", "NodeLayer", POSE_KIND, *MESH_KINDS}
"""Node types that are imported completely, and types that have nothing but a transform."""
_SHOWN_VALUES = ("material", "width", "height", "radius", "fov", "reference", "layer", "mesh_name")
"""Values of nodes that Blender has no counterpart for; they are stored as custom properties."""
_NAMED = 8


class PlacementBuilder:
    """Builds the placement of a scene file and of all node files that it refers to. Each file is read once."""

    def __init__(self, name: str, links: ProjectLinks | None, options: ReadOptions) -> None:
        self._placement = Placement([])
        self.scene = Scene(name, placement=self._placement)
        self.unresolved = Unresolved()
        self._links = links
        self._options = options
        self._models: dict[tuple[str, ...], int] = {}
        self._found: dict[str, LinkedFile | None] = {}
        self._uses: dict[tuple[int, tuple[SurfaceSetting, ...]], ModelUse] = {}
        self._parts: dict[str, int] = {}
        self._stack: list[str] = []
        self._totals: list[int] = []
        self._depths: list[int] = []
        self._read_nodes = 0
        self._others: Counter[str] = Counter()

    def build(self, document: SceneFile, path: str = "") -> Scene:
        """Return the scene of a file, with warnings.

        Raises
        ------
        FormatError
            References are nested too deeply or give too many nodes.
        """
        self._add_part(document, self.scene.name, path)
        if self._links is not None:
            self.scene.materials = self._links.materials
            self.unresolved.report(self.scene.report)
            self.scene.warnings += self._links.warnings()
        if self._others:
            kinds = [f"{count:,} {kind}" for kind, count in self._others.most_common(_NAMED)]
            rest = sum(self._others.values()) - sum(count for _, count in self._others.most_common(_NAMED))
            more = Text(" and {:,} more", rest) if rest else ""
            nodes = counted(sum(self._others.values()), "node")
            has_lights, has_cameras = (not group.keys().isdisjoint(self._others) for group in (_LIGHTS, _CAMERAS))
            hint: str = ""
            if has_lights and has_cameras:
                hint = Text("; the options Lights and Cameras make lights and cameras")
            elif has_lights:
                hint = Text("; the option Lights makes lights")
            elif has_cameras:
                hint = Text("; the option Cameras makes cameras")
            template = "{} imported as empties: {}{}{}"
            self.scene.report.note("nodes-as-empties", template, nodes, ", ".join(kinds), more, hint)
        return self.scene

    def _add_part(self, document: SceneFile, name: str, path: str) -> int:
        """Add the nodes of a file, and of the files that it refers to; return the index of its part."""
        if len(self._stack) >= MOST_LEVELS:
            raise FormatError("Node files refer to one another more than {} levels deep: {}", MOST_LEVELS, path)
        self._read_nodes += len(document.nodes)
        if self._read_nodes > MOST_NODES:
            raise FormatError("The scene and the files that it refers to have more than {:,} nodes", MOST_NODES)
        has_one_root = document.root == "nodes" and sum(node.parent < 0 for node in document.nodes) == 1
        part = PlacementPart(name, path=path, digest=document.digest, has_one_root=has_one_root)
        index = len(self._placement.parts)
        self._placement.parts.append(part)
        self._totals.append(0)
        self._depths.append(1)
        self._stack.append(path)
        self.scene.report.about(name if path and index else "").add(*document.warnings)
        if self._links is not None:
            self._links.use_libraries(document.libraries)
        self._add_nodes(document, part)
        self._stack.pop()
        self._measure(part, index)
        if path:
            self._parts[path] = index
        return index

    def _add_nodes(self, document: SceneFile, part: PlacementPart) -> None:
        geometries = {node.identifier: node for node in document.nodes if node.geometry is not None}
        coarser: list[PlacedNode] = []
        is_product = is_of_editor(part.path)
        uses = Counter(node.identifier for node in document.nodes)
        self._find_poses(document.nodes)
        for node in document.nodes:
            content = self._content(node, geometries)
            placed = PlacedNode(node.name or node.kind, node.parent, node.matrix, content)
            placed.is_hidden, placed.kind = not node.is_enabled, node.kind
            is_known = node.parent < 0 or bool(part.nodes[node.parent].key)
            placed.key = node.identifier if is_known and uses[node.identifier] == 1 and not is_product else ""
            if isinstance(content, ModelUse):
                placed.instances = node.instances
                coarser += self._coarser(placed, content)
            elif content is None:
                placed.properties = {name: node.values[name] for name in _SHOWN_VALUES if name in node.values}
                if node.kind not in _PLAIN:
                    self._others[node.kind] += 1
            part.nodes.append(placed)
        part.nodes += coarser

    def _coarser(self, placed: PlacedNode, use: ModelUse) -> list[PlacedNode]:
        """Return additional nodes for the coarser levels of detail of a placed node."""
        if not self._options.use_coarser_levels:
            return []
        return [
            PlacedNode(
                f"{placed.name}_lod_{level}",
                placed.parent,
                placed.matrix,
                ModelUse(use.model, use.slots, level),
                placed.instances,
                placed.is_hidden,
                placed.kind,
            )
            for level in sorted({slot.level for slot in use.slots} - {0})
        ]

    def _measure(self, part: PlacementPart, index: int) -> None:
        """Count the nodes of a part including those of referenced files, and the depth of its references.

        The counts are computed from those of the referenced parts, without expanding them.
        """
        total, depth = 0, 1
        for node in part.nodes:
            total += 1 + (0 if node.instances is None else len(node.instances))
            if isinstance(node.content, PartUse):
                total += self._totals[node.content.part]
                depth = max(depth, 1 + self._depths[node.content.part])
        if total > MOST_NODES:
            raise FormatError(
                "With all references followed the scene has {:,} nodes; at most {:,} are read", total, MOST_NODES
            )
        if depth > MOST_LEVELS:
            raise FormatError("Node files refer to one another more than {} levels deep: {}", MOST_LEVELS, part.path)
        self._totals[index], self._depths[index] = total, depth

    def _content(self, node: SceneNode, geometries: Mapping[str, SceneNode]) -> Content | None:
        if node.kind in MESH_KINDS:
            return self._model_use(node, geometries)
        if node.kind in REFERENCE_FIELDS:
            reference = node.values.get(REFERENCE_FIELDS[node.kind], "")
            return self._part_use(node, reference) if reference else None
        if self._options.use_lights and (light := light_of(node)) is not None:
            return light
        return camera_of(node) if self._options.use_cameras else None

    def _find(self, reference: str) -> LinkedFile | None:
        if reference not in self._found:
            self._found[reference] = self._links.find(reference) if self._links is not None else None
        return self._found[reference]

    def _part_use(self, node: SceneNode, reference: str) -> PartUse | None:
        """Return the part for a node file, which is read once; None, with the problem noted, if it cannot be shown."""
        found = self._find(reference)
        if found is None:
            self.unresolved.add(Problem.NODE, reference)
            return None
        if found.is_source:
            self.unresolved.add(Problem.SOURCE_NODE, f"{node.name} ({found.path})")
            return None
        if found.path in self._stack:
            self.unresolved.add(Problem.LOOP, found.path)
            return None
        known = self._parts.get(found.path)
        if known is not None:
            return PartUse(known) if known >= 0 else None
        self._parts[found.path] = -1
        try:
            document = codec.read(found.read())
        except FormatError as problem:
            self.unresolved.add(Problem.BROKEN_NODE, Text("{}: {}", found.path, problem.message))
            return None
        index = self._add_part(document, PurePosixPath(found.path).stem, found.path)
        self._placement.parts[index].file = found.file
        return PartUse(index)

    def _model_use(self, node: SceneNode, geometries: Mapping[str, SceneNode]) -> ModelUse | None:
        """Return the use of the model that a node shows; nodes with equal surfaces share one."""
        if "cluster_file_id" in node.values and node.instances is None:
            self.unresolved.add(Problem.CLUSTER, node.name)
            return None
        model = self._model(node, geometries)
        if model is None:
            return None
        key = (model, node.surfaces)
        if key not in self._uses:
            self._uses[key] = ModelUse(model, self._slots(node))
        return self._uses[key]

    def _model(self, node: SceneNode, geometries: Mapping[str, SceneNode]) -> int | None:
        """Return the index of the model of a mesh node, or None if it has none."""
        reference = node.values.get("mesh_name", "")
        if not reference:
            other = node.values.get("reference", "")
            source = geometries.get(other) if node.geometry is None else node
            if source is None or source.geometry is None:
                if other:
                    self.unresolved.add(Problem.MESH, node.name)
                return None
            key: tuple[str, ...] = (str(id(source)),)
            if key not in self._models:
                self._add_model(key, PlacedModel(source.name, references.inline_mapping(source.geometry, source.name)))
            return self._models[key]
        found = self._find(reference)
        if found is None or found.is_source:
            return self._source_model(node, reference, found)
        animations = self._animations(node)
        key = (found.path, *(animation.path for animation in animations))
        if key not in self._models:
            model = PlacedModel(node.name, references.from_file(found, animations, node.name), found.path)
            model.file = found.full
            self._add_model(key, model)
        return self._models[key]

    def _source_model(self, node: SceneNode, reference: str, found: LinkedFile | None) -> int | None:
        """Return the index of a model made from the source of a missing mesh; None if the source is missing, too."""
        is_wanted = found is not None and self._links is not None and self._options.use_source_files
        source = self._links.source_mesh(reference) if is_wanted and self._links is not None else None
        if source is None:
            problem = Problem.MESH if found is None else Problem.SOURCE_MESH
            self.unresolved.add(problem, f"{node.name} ({found.path})" if found is not None else node.name)
            return None
        key = (source.guid,)
        if key not in self._models:
            read = references.from_source(source, node.name, [surface.name for surface in node.surfaces])
            self._add_model(key, PlacedModel(node.name, read, source.file.name, source.file, source.guid))
        return self._models[key]

    def _animations(self, node: SceneNode) -> list[LinkedFile]:
        """Return the animations that a node plays by itself, and those of the graph by which it is posed."""
        found: list[LinkedFile] = []
        own = node.values.get("anim_name", "")
        for reference in dict.fromkeys([*([own] if own else []), *node.graph_clips]):
            file = self._find(reference)
            if file is None or file.is_source:
                self.unresolved.add(Problem.ANIMATION, Named("animation", f"{node.name} ({reference})"))
            else:
                found.append(file)
        return found

    def _find_poses(self, nodes: Sequence[SceneNode]) -> None:
        """Find the animations of the graphs by which nodes pose the skinned meshes below them, or those they list."""
        by_id = {node.identifier: node for node in nodes}
        clips: list[list[str]] = []
        for node in nodes:
            own: list[str] = []
            if node.kind == POSE_KIND and self._links is not None and (graph := node.values.get("anim_script")):
                graph_clips = self._links.graph_clips(graph)
                if graph_clips is None:
                    self.unresolved.add(Problem.ANIMATION, Named("animation", f"{node.name} ({graph})"))
                own = graph_clips or []
                for name in node.values.get(CONTROLLED, "").split():
                    if name in by_id:
                        by_id[name].graph_clips = own
            is_listed = node.kind == POSE_KIND and CONTROLLED in node.values
            inherited = clips[node.parent] if node.parent >= 0 and node.kind != POSE_KIND else []
            clips.append([] if is_listed else own or inherited)
            if node.kind == "ObjectMeshSkinned" and not node.graph_clips:
                node.graph_clips = clips[-1]

    def _add_model(self, key: tuple[str, ...], model: PlacedModel) -> None:
        self._models[key] = len(self._placement.models)
        self._placement.models.append(model)

    def _slots(self, node: SceneNode) -> tuple[SlotUse, ...]:
        """Return the settings for the surfaces of a node.

        Levels of detail are numbered by the distances of the surfaces.
        """
        distances = sorted({surface.nearest for surface in node.surfaces} | {0.0})
        return tuple(
            SlotUse(
                surface.name,
                self._material(surface),
                not surface.is_enabled,
                distances.index(surface.nearest),
                surface.nearest,
            )
            for surface in node.surfaces
        )

    def _material(self, surface: SurfaceSetting) -> str | None:
        """Return the name of a surface's material, or None to use the material of the mesh file."""
        if not surface.material or self._links is None:
            return None
        return self._links.material(surface.material, surface.name)


def link(document: SceneFile, scene: Scene, path: Path, projects: Projects, options: ReadOptions) -> None:
    """Replace the placement of a scene by one that includes the files to which the document refers."""
    project = open_project(path, projects, options.project, is_scene=True)
    if project is None:
        return
    built, _ = _build(document, project, path, scene.name, options)
    scene.placement, scene.materials = built.placement, built.materials
    scene.warnings = built.warnings


def missing(document: SceneFile, path: Path, projects: Projects, options: ReadOptions) -> list[Message]:
    """Return messages about missing meshes, materials and node files, and about references that form cycles."""
    project = open_project(path, projects, options.project, is_scene=True)
    if project is None:
        return []
    scene, links = _build(document, project, path, path.stem, options)
    known = {*document.warnings, *links.not_shown()}
    return [message for message in distinct(scene.warnings) if not message.is_note and message not in known]


def _build(
    document: SceneFile, project: Project, path: Path, name: str, options: ReadOptions
) -> tuple[Scene, ProjectLinks]:
    links = ProjectLinks(project, with_materials=options.use_project_materials)
    return PlacementBuilder(name, links, options).build(document, project.relative(path) or path.name), links


def to_scene(document: SceneFile, name: str, options: ReadOptions) -> Scene:
    """Map a node or world file to a placement of its own nodes and meshes.

    References to other files are followed by :func:`link`.
    """
    return PlacementBuilder(name, None, options).build(document)


def files_of(scene: Scene, options: WriteOptions) -> list[Scene]:
    """Return the scene in a list; an empty list if it has neither meshes nor placed nodes."""
    placement = scene.placement
    has_nodes = bool(placement.parts[0].nodes) if placement is not None else any(node.mesh for node in scene.nodes)
    return [scene] if has_nodes else []


def from_scene(scene: Scene, options: WriteOptions) -> SceneFile:
    """Map a scene to a new file outside of any project."""
    return from_scene_at(scene, options, None, None)


def from_scene_at(scene: Scene, options: WriteOptions, path: Path | None, projects: Projects | None) -> SceneFile:
    """Map a scene to a new file at a path, and the files beside it.

    ``scene.warnings`` reports data that is left out.

    Raises
    ------
    ExportError
        Data that no file can hold, or a folder that only the editor writes into.
    """
    from .document_builder import SetBuilder  # imported here, since it imports the modules for meshes

    return SetBuilder(scene, options, path, projects or Projects()).build()

"""Document <-> Scene, one scene for each file, materials of its project, and what ``meshferry inspect`` prints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.errors import ExportError, MeshferryError
from ...core.import_choices import all_choices
from ...core.messages import Kind, Message, Text, joined
from ...core.scene import Node, Scene, Skeleton
from ...passes.flatten import meshes_in_one_space
from ...passes.join_meshes import join
from ...passes.lods import coarser_nodes, join_levels
from .document import MeshFile
from .format import BLOCK_VERSIONS, SEPARATE_SKELETON_VERSION, SKINNED_EXTENSION, ReadOptions, WriteOptions
from .scene_builder import SceneBuilder

if TYPE_CHECKING:
    from ...projects import Projects
    from ..project.scene_materials import ProjectMaterials


def files_of(scene: Scene, options: WriteOptions) -> list[Scene]:
    """Return a scene for each file, named after it: one for each object, or with ``mesh_files`` one of all objects.

    Coarser levels of detail go into the file of the finest one. The returned scenes share ``scene.warnings``.

    Raises
    ------
    ExportError
        Objects to be joined, or levels of one object, have different armatures.
    """
    if options.mesh_version == "SK10":
        from ..skeleton.references import report_unproven

        report_unproven(scene.report)
    whole: list[Node] = []
    for number, node in enumerate(scene.nodes):
        finest = node.lod_of
        if node.mesh is None or (_is_mesh(scene, finest) and finest != number):
            continue
        coarser = coarser_nodes(scene, number)
        skeleton = _common_skeleton(scene, [node, *coarser], "levels of detail")
        choices = all_choices([node, *coarser])
        whole.append(replace(join_levels(node, coarser), skeleton=skeleton, choices=choices))
    if options.mesh_files == "JOINED" and len(whole) > 1:
        skeleton = _common_skeleton(scene, whole, "objects to be joined into one file")
        mesh = join(meshes_in_one_space(whole))
        joined = replace(whole[0], name=scene.name, mesh=mesh, skeleton=skeleton, choices=all_choices(whole))
        return [_part(scene, joined, scene.name)]
    return [_part(scene, node, node.name) for node in whole]


def _is_mesh(scene: Scene, number: int | None) -> bool:
    return number is not None and 0 <= number < len(scene.nodes) and scene.nodes[number].mesh is not None


def _common_skeleton(scene: Scene, nodes: Sequence[Node], what: str) -> int | None:
    """Return the skeleton that the nodes share, or None; raise ExportError if they have different ones."""
    found: dict[int, str] = {}
    for node in nodes:
        if node.skeleton is not None:
            found.setdefault(node.skeleton, node.name)
    if len(found) > 1:
        named = joined(
            (Text("'{}' on '{}'", name, scene.skeletons[number].name) for number, name in found.items()), " and "
        )
        template = "The {} are deformed by different armatures ({}); a file holds only one. Export them separately"
        raise ExportError(template, what, named)
    return next(iter(found), None)


def _part(scene: Scene, node: Node, name: str) -> Scene:
    """Return a scene with only this node, its skeleton and its clips."""
    kept = replace(node, parent=-1, lod=0, lod_of=None, skeleton=None if node.skeleton is None else 0)
    part = replace(scene, name=name, nodes=[kept], skeletons=[], clips=[])
    if node.skeleton is None:
        return part
    part.skeletons = [scene.skeletons[node.skeleton]]
    for clip in scene.clips:
        tracks = [replace(track, skeleton=0) for track in clip.transforms if track.skeleton == node.skeleton]
        if tracks or not (clip.transforms or clip.vertices):
            part.clips.append(replace(clip, transforms=tracks, vertices=[]))
    return part


def to_scene(document: MeshFile, name: str, options: ReadOptions) -> Scene:
    """Map a mesh file to Blender's space.

    The scene has one node with all surfaces, or one for each level of detail (``use_lod_objects``). Layers of triangle
    vertices share one index. Repairs are reported in ``scene.warnings``.
    """
    return SceneBuilder(document, name, options).build()


def from_scene(scene: Scene, options: WriteOptions) -> MeshFile:
    """Map a scene with one mesh to a file whose folder is not known."""
    return from_scene_at(scene, options, None, None)


def from_scene_at(scene: Scene, options: WriteOptions, path: Path | None, projects: Projects | None) -> MeshFile:
    """Map a scene with one mesh to a file at a path, with the skeleton file of sk10 beside it.

    ``scene.warnings`` reports what is left out or repaired.

    Raises
    ------
    ExportError
        Data that the version, or any file, cannot hold; a version that the project of the file does not load, or that
        has another extension; a skeleton file with other joints in the folder. The message says what to do.
    """
    # What only writing needs takes as long to import as reading a small file.
    from ...projects import Projects
    from ..project.new_assets import TargetFolder
    from ..skeleton.references import report_unproven
    from .characters import CHARACTER_SDK, OLDER_SDK, add_companions, refuse_other_sdk
    from .document_builder import MeshBuilder

    is_skinned_name = path is not None and path.suffix.lower() == SKINNED_EXTENSION
    if is_skinned_name and "mesh_version" not in options.given and options.mesh_version != "SK10":
        options = options.with_values(mesh_version="SK10")
        report_unproven(scene.report)
    if path is not None and is_skinned_name != (options.mesh_version == "SK10"):
        template = "{}: files of sk10 have the extension {}, all others .mesh"
        raise ExportError(template, path.name, SKINNED_EXTENSION)
    document = MeshBuilder(scene, options).build()
    is_deformed = bool(document.bones) or any(len(surface.targets) > 1 for surface in document.surfaces)
    if is_deformed and document.version in BLOCK_VERSIONS:
        has_skeleton_file = document.version == SEPARATE_SKELETON_VERSION
        unstated = CHARACTER_SDK if has_skeleton_file else OLDER_SDK
        target = TargetFolder(path, unstated, projects or Projects())
        refuse_other_sdk(document.version, target, scene.name)
        if has_skeleton_file:
            number = scene.nodes[0].skeleton
            skeleton = scene.skeletons[number] if number is not None else Skeleton(scene.nodes[0].name)
            add_companions(document, skeleton, target, path, scene.name)
    return document


def facts(document: MeshFile) -> dict[str, Any]:
    """Return counts of the stored data.

    ``vertices`` counts coordinate vertices; ``warnings`` lists unusual content.
    """
    scene = to_scene(document, "", ReadOptions())
    mesh = scene.nodes[0].mesh
    surfaces = mesh.surfaces if mesh else []
    stored = [len(surface.targets[0].positions) for surface in document.surfaces if surface.targets]
    return {
        "version": document.version,
        "nodes": len(scene.nodes),
        "vertices": sum(stored) + sum(len(soup.vertices) for soup in document.soup),
        "triangles": scene.triangle_count,
        "surfaces": len(surfaces),
        "materials": len({surface.name for surface in surfaces if surface.name}),
        "uv_layers": len(mesh.uvs) if mesh else 0,
        "color_layers": len(mesh.colors) if mesh else 0,
        "bones": len(document.bones),
        "shape_keys": len(mesh.shape_keys) if mesh else 0,
        "clips": [
            {"name": animation.name, "kind": "bone", "frames": animation.frames.frame_count, "fps": 0.0}
            for animation in document.animations
        ],
        "warnings": list(dict.fromkeys([*document.warnings, *scene.warnings])),
    }


def link(_document: MeshFile, scene: Scene, path: Path, projects: Projects, options: ReadOptions) -> None:
    """Give a mesh the materials of its project, and the name of its asset if its file is named by a GUID.

    Surfaces keep their names, so that an export writes the same names.
    """
    if not options.use_project_materials:
        return
    meshes = [node.mesh for node in scene.nodes if node.mesh is not None and node.mesh.surfaces]
    names = [surface.name for mesh in meshes for surface in mesh.surfaces]
    try:
        found = _materials_of(names, path, projects, options)
    except MeshferryError as problem:
        scene.report.loss("project-not-used", "{}", problem.sentence())
        return
    if found is None:
        return
    materials, name_of = found
    if name := materials.project.name_of_runtime(path):
        _rename(scene, path.stem, name)
    for mesh in meshes:
        mesh.materials = [
            name_of.get(surface.name, name) for surface, name in zip(mesh.surfaces, mesh.materials, strict=True)
        ]
    scene.materials += materials.materials
    scene.warnings += materials.warnings()


def _rename(scene: Scene, old: str, new: str) -> None:
    """Replace the name of the file by another one wherever the scene was named after it."""
    parts: list[Any] = [scene, *scene.nodes, *scene.skeletons, *scene.clips]
    for part in parts:
        if part.name.startswith(old):
            part.name = new + part.name[len(old) :]


def missing(document: MeshFile, path: Path, projects: Projects, options: ReadOptions) -> list[Message]:
    """Return a message for each kind of file that the materials of a mesh need and that the project lacks."""
    try:
        found = _materials_of([surface.name for surface in document.surfaces], path, projects, options)
    except MeshferryError as problem:
        return [Message(Kind.LOSS, "", problem.sentence(), code="project-not-read")]
    return [*found[0].missing()] if found is not None else []


def _materials_of(
    names: list[str], path: Path, projects: Projects, options: ReadOptions
) -> tuple[ProjectMaterials, dict[str, str]] | None:
    """Return the materials of a mesh, and the name of the material of each surface that has one.

    The result is None outside of any project.
    """
    from ..project.project import open_project

    project = open_project(path, projects, options.project)
    if project is None:
        return None
    from ..project.scene_materials import ProjectMaterials

    references = project.materials_of_mesh(path, list(dict.fromkeys(names)))
    materials = ProjectMaterials(project, set(names) - set(references))
    return materials, {surface: materials.name_of(reference, surface) for surface, reference in references.items()}

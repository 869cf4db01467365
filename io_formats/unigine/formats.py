"""The UNIGINE formats, which share bones and frames."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..core.capabilities import Capabilities
from ..core.format import Family, FileFormat, Patcher, Reading, Sniffer, Writing
from .animation import options as animation_options
from .mesh import options as mesh_options
from .scene import options as scene_options
from .skeleton import options as skeleton_options

if TYPE_CHECKING:
    from .animation.document import AnimationFile
    from .mesh.document import MeshFile
    from .scene.document import SceneFile
    from .skeleton.document import SkeletonFile


def _mesh_sniffing() -> Sniffer:
    from .mesh import sniffing

    return sniffing


def _mesh_reading() -> Reading[MeshFile]:
    from .mesh import facts, linking, reader, scene_mapping

    return Reading(reader, scene_mapping, facts, linking)


def _mesh_writing() -> Writing[MeshFile]:
    from .mesh import checks, scene_mapping, writer

    return Writing(writer, scene_mapping, checks, context_checks=checks)


UNIGINE_MESH = FileFormat(
    name="unigine_mesh",
    label="UNIGINE Mesh",
    extensions=(".mesh", ".mesh_skinned"),
    capabilities=mesh_options.CAPABILITIES,
    only_read=(".mesh_skinned",),
    writing=_mesh_writing,
    sniffing=_mesh_sniffing,
    reading=_mesh_reading,
    import_options=mesh_options.IMPORT_OPTIONS,
    export_options=mesh_options.EXPORT_OPTIONS,
)


def _animation_sniffing() -> Sniffer:
    from .animation import sniffing

    return sniffing


def _animation_reading() -> Reading[AnimationFile]:
    from .animation import facts, reader, scene_mapping

    return Reading(reader, scene_mapping, facts)


def _animation_writing() -> Writing[AnimationFile]:
    from .animation import checks, scene_mapping, writer

    return Writing(writer, scene_mapping, checks)


UNIGINE_ANIMATION = FileFormat(
    name="unigine_animation",
    label="UNIGINE Animation",
    extensions=(".anim",),
    capabilities=Capabilities(meshes=False, skeletons=True, joint_clips=True),
    writing=_animation_writing,
    sniffing=_animation_sniffing,
    reading=_animation_reading,
    import_options=animation_options.IMPORT_OPTIONS,
    export_options=animation_options.EXPORT_OPTIONS,
)


def _skeleton_sniffing() -> Sniffer:
    from .skeleton import sniffing

    return sniffing


def _skeleton_reading() -> Reading[SkeletonFile]:
    from .skeleton import facts, reader, scene_mapping

    return Reading(reader, scene_mapping, facts)


def _skeleton_writing() -> Writing[SkeletonFile]:
    from .skeleton import checks, scene_mapping, writer

    return Writing(writer, scene_mapping, checks)


UNIGINE_SKELETON = FileFormat(
    name="unigine_skeleton",
    label="UNIGINE Skeleton",
    extensions=(".skeleton",),
    capabilities=Capabilities(meshes=False, skeletons=True),
    writing=_skeleton_writing,
    sniffing=_skeleton_sniffing,
    reading=_skeleton_reading,
    import_options=skeleton_options.IMPORT_OPTIONS,
    export_options=skeleton_options.EXPORT_OPTIONS,
)


def _scene_sniffing() -> Sniffer:
    from .scene import sniffing

    return sniffing


def _scene_reading() -> Reading[SceneFile]:
    from .scene import facts, linking, reader, scene_mapping

    return Reading(reader, scene_mapping, facts, linking)


def _scene_writing() -> Writing[SceneFile]:
    from .scene import checks, scene_mapping, writer

    return Writing(writer, scene_mapping, checks, set_writer=writer, path_mapping=scene_mapping)


def _scene_patching() -> Patcher:
    from .scene import patching

    return patching


UNIGINE_SCENE = FileFormat(
    name="unigine_scene",
    label="UNIGINE Scene",
    extensions=(".node", ".world"),
    capabilities=replace(mesh_options.CAPABILITIES, joint_clips=False, node_hierarchy=True, placement=True),
    only_read=(".world",),
    is_set=True,
    writing=_scene_writing,
    sniffing=_scene_sniffing,
    reading=_scene_reading,
    patching=_scene_patching,
    import_options=scene_options.IMPORT_OPTIONS,
    export_options=scene_options.EXPORT_OPTIONS,
    ambiguous=(".node", ".world"),
)

FAMILY = Family("unigine", "UNIGINE", (UNIGINE_MESH, UNIGINE_ANIMATION, UNIGINE_SKELETON, UNIGINE_SCENE), "unigine.md")

"""Functions that load the models of a placement: mesh files with an animation, or meshes inside scene files."""

from __future__ import annotations

from collections.abc import Callable

from ...core.errors import ExportError, FormatError
from ...core.recognition import signature_text
from ...core.scene import Scene
from ...passes.clips import adopt_clips
from ..animation import codec as animation_codec
from ..animation import mapping as animation_mapping
from ..mesh import reader as mesh_reader
from ..mesh import scene_mapping as mesh_mapping
from ..mesh.document import MeshFile
from .project_links import LinkedFile

_FORMAT = "unigine_mesh"
_HEAD = 4096


def inline_mapping(geometry: MeshFile, name: str) -> Callable[[], Scene]:
    """Return a function that maps a mesh inside a scene file."""

    def read() -> Scene:
        scene = mesh_mapping.to_scene(geometry, name)
        scene.format = _FORMAT
        return scene

    return read


def from_file(file: LinkedFile, animation: LinkedFile | None, name: str) -> Callable[[], Scene]:
    """Return a function that reads a mesh file, with the animation that it plays."""

    def read() -> Scene:
        try:
            data = file.read()
            if known := signature_text(data[:_HEAD]):
                raise FormatError(known)
            scene = mesh_mapping.to_scene(mesh_reader.read(data), name)
        except FormatError as problem:
            raise problem.in_file(file.path) from None
        scene.format = _FORMAT
        if animation is not None and scene.skeletons:
            _add_animation(scene, animation)
        return scene

    return read


def _add_animation(scene: Scene, file: LinkedFile) -> None:
    name = file.path.rpartition("/")[2].rpartition(".")[0]
    try:
        other = animation_mapping.to_scene(animation_codec.read(file.read()), name)
        scene.warnings += adopt_clips(scene, other)
    except (FormatError, ExportError) as problem:
        scene.report.loss("unreadable-animation", "Its animation '{}' cannot be used: {}", file.path, problem)

"""Nodes for objects that are new in an imported scene, with their files beside it, made like those of new scenes."""

import itertools
import os
import re
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path, PurePosixPath

from ...core.errors import ExportError
from ...core.messages import errors_of
from ...core.placement import KnownFiles, NewNode, NewNodes
from ...core.scene import Material, Scene
from ...disk.file_names import cautious_key, file_name
from ...disk.rooted_files import path_key
from ...projects import Projects
from ..mesh.format import SKINNED_EXTENSION
from . import codec
from .codec import NodeIds, SceneFile
from .document_builder import SetBuilder
from .format import WriteOptions
from .patching import find_spans, newline_of

_VERSION = re.compile(r"\d+(\.\d+){1,3}")


def new_nodes(
    document: SceneFile, scene: Scene, path: Path, projects: Projects, known: KnownFiles, reserved: Collection[str]
) -> NewNodes:
    """Return nodes for the first part of a scene's placement that can be added to an imported file.

    The version is that of the file, since the editor converts all of a file alike.

    Raises
    ------
    ExportError
        Data that no file can hold.
    """
    builder = _Additions(document, scene, path, projects, known)
    part = builder.placement.parts[0]
    nodes = builder.node_builder()
    made = nodes.nodes(part, builder.name)[-len(part.nodes) :]
    nodes.report_losses()
    broken = errors_of(builder.new.findings)
    if broken:
        raise ExportError.of(*broken)
    outputs, guids = codec.encode_assets(builder.target, builder.new.assets)
    ids = NodeIds(find_spans(document.original).identifiers.union(reserved))
    newline = newline_of(document.original)
    found = []
    for node in made:
        key = ids.new(node.name)
        lines = codec.node_lines(replace(node, identifier=key), guids)
        surfaces = [(surface.name, guids.get(surface.material, surface.material)) for surface in node.surfaces]
        found.append(NewNode(key, newline.join([*lines, b"</node>"]).decode(), node.kind, surfaces))
    messages = [*scene.warnings, *builder.new.findings]
    return NewNodes(found, [model.reference for model in builder.models], outputs, messages)


class _Additions(SetBuilder):
    """Builds the files of new models. Materials of the project are used by name."""

    def __init__(self, document: SceneFile, scene: Scene, path: Path, projects: Projects, known: KnownFiles) -> None:
        self._known = known
        version = document.version if _VERSION.fullmatch(document.version) else ""
        options = WriteOptions(sdk_version=version) if version else WriteOptions()
        super().__init__(scene, options, path, projects, version)

    def stems(self) -> list[str]:
        """Return the stems of the known files; new models get names that no other file has.

        Files of earlier exports that are not in use any more get new content.
        """
        folder = self.target.folder / self.name if self.target.folder is not None else Path()
        own = {cautious_key(name) for name in self._known.own}
        there = [f"{self.name}/{name}" for name in os.listdir(folder)] if folder.is_dir() else []
        taken = {cautious_key(name) for name in there} - own | {cautious_key(name) for name in self._known.used}
        found: list[str] = []
        for number, model in enumerate(self.placement.models):
            plain = f"{self.name}/{file_name(model.name)}"
            names = (f"{plain}_{count}" if count > 1 else plain for count in itertools.count(1))
            free = (name for name in names if taken.isdisjoint(cautious_key(name + ending) for ending in _ENDINGS))
            known = self._known.of_models.get(number)
            stem = str(PurePosixPath(known).with_suffix("")) if known else next(free)
            taken |= {cautious_key(stem + ending) for ending in _ENDINGS}
            found.append(stem)
        return found

    def _reference(self, material: Material) -> str:
        project, own = self.target.project, {path_key(self.target.relative(name)) for name in self._known.own}
        reference = super()._reference(material)
        if not reference and project is not None:
            named = project.material_named(material.name)
            path = project.find(named).path if named else None
            reference = named if path is not None and path_key(path) not in own else ""
        return reference


_ENDINGS = (".mesh", SKINNED_EXTENSION)

"""The list of formats, and one way to all of them.

Each format is a package with the same rooms: ``sniffing`` (recognition by content), ``reader``
and ``writer`` (bytes <-> document), ``scene_mapping`` (document <-> Scene), ``checks`` (the rules
of the program that will load the file), ``facts`` (what ``inspect`` prints) and ``options``.
Rooms are imported when first used, so that a missing library concerns its own format alone.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from .core.capabilities import Capabilities
from .core.errors import UnsupportedFormatError
from .core.findings import Finding
from .core.options import Option
from .core.output_file import OutputFile
from .core.recognition import Match, NearMiss
from .core.scene import Scene
from .unknown_files import likely_text, signature_text

HEAD_SIZE = 4096
"""Bytes of a file that ``sniff`` is given."""

_COUNTED = (
    "nodes",
    "vertices",
    "triangles",
    "surfaces",
    "materials",
    "uv_layers",
    "color_layers",
    "bones",
    "shape_keys",
)
"""What ``Format.facts`` counts, in the order in which it is told."""

Document = Any
"""A format's own document class; only its own rooms look inside."""


@dataclass(frozen=True)
class Format:
    """A file format: what it is called, how it is recognised, read and written, what it can hold."""

    name: str
    label: str
    package: str
    extensions: tuple[str, ...]
    """With the dot, in lower case; the first is the one to write."""
    capabilities: Capabilities
    only_read: tuple[str, ...] = ()
    """Those of ``extensions`` that stand for a version, or belong to a format, which is written under another."""
    ambiguous: tuple[str, ...] = ()
    """Those of ``extensions`` that all kinds of programs use: in a folder, only the content makes such a file ours."""
    is_read: bool = True
    """False: such files are only written; there is neither ``sniff`` nor ``read`` nor ``to_scene``."""
    is_set: bool = False
    """Whether a document becomes several files (``write_files``)."""

    @property
    def written_extensions(self) -> tuple[str, ...]:
        """Those of ``extensions`` under which files are written."""
        return tuple(extension for extension in self.extensions if extension not in self.only_read)

    def _room(self, room: str) -> ModuleType:
        return _room(self.package, room)

    def sniff(self, head: bytes, size: int) -> Match:
        """Return the evidence for this format in the first 4,096 bytes and the file size."""
        match: Match = self._room("sniffing").sniff(head, size) if self.is_read else Match.NONE
        return match

    def near_miss(self, head: bytes, size: int) -> NearMiss | None:
        """Explain a file that this format almost recognises."""
        explain = getattr(self._room("sniffing"), "near_miss", None) if self.is_read else None
        explained: NearMiss | None = explain(head, size) if explain is not None else None
        return explained

    def read(self, data: bytes, *, inflated_limit: int | None = None) -> Document:
        """Decode a file's bytes into the format's document.

        ``inflated_limit`` raises the bound on the uncompressed size, in bytes
        (default: the larger of 64 MiB and 64 times the file).

        Raises
        ------
        FormatError
            The data breaks the format; nothing else is raised for any input.
        """
        return self._room("reader").read(data, inflated_limit=inflated_limit)

    def write(self, document: Document) -> bytes:
        """Encode a document; ``write(read(data))`` has the content of ``data``."""
        encoded: bytes = self._room("writer").write(document)
        return encoded

    def write_files(self, document: Document, stem: str) -> list[OutputFile]:
        """Encode a document as the files that it becomes beside each other, the chosen one last.

        ``stem`` is the chosen file's name without its extension.
        """
        if self.is_set:
            outputs: list[OutputFile] = self._room("writer").write_files(document, stem)
            return outputs
        return [OutputFile(stem + self.extensions[0], self.write(document))]

    def same_content(self, one: bytes, other: bytes) -> bool:
        """Tell whether two files hold the same (compressed containers: the same inflated content)."""
        return bool(self._room("reader").same_content(one, other))

    def to_scene(self, document: Document, name: str, options: Mapping[str, Any] | None = None) -> Scene:
        """Map a document to Blender's space with this format's ``import_options``.

        ``name`` is used where the file has none; ``Scene.format`` is this format's name.
        """
        scene: Scene = self._room("scene_mapping").to_scene(document, name, options)
        scene.format = self.name
        return scene

    def files_of(self, scene: Scene, options: Mapping[str, Any] | None = None) -> list[Scene]:
        """Return the scenes that each become a file, named as the files are; most formats hold a scene whole."""
        scenes: list[Scene] = self._room("scene_mapping").files_of(scene, options)
        return scenes

    def from_scene(self, scene: Scene, options: Mapping[str, Any] | None = None) -> Document:
        """Map a scene to a document with this format's ``export_options``; drops are in ``scene.warnings``."""
        return self._room("scene_mapping").from_scene(scene, options)

    def check(self, document: Document) -> list[Finding]:
        """Apply the rules of the program that will load the file."""
        findings: list[Finding] = self._room("checks").check(document)
        return findings

    def check_scene(self, scene: Scene) -> list[Finding]:
        """Apply those of the rules that are about a scene, so that what they find can be shown in it.

        Together with those of :meth:`check`, for the document made of the scene, they are all.
        """
        found = getattr(self._room("checks"), "check_scene", None)
        findings: list[Finding] = found(scene) if found is not None else []
        return findings

    def facts(self, document: Document) -> dict[str, Any]:
        """Return what ``inspect`` prints, without ``file``, ``format`` and ``error``.

        The room tells what its files have; what they cannot have is counted as none.
        """
        facts: dict[str, Any] = self._room("facts").facts(document)
        return {"version": "", **dict.fromkeys(_COUNTED, 0), "clips": [], "warnings": [], **facts}

    @property
    def import_options(self) -> tuple[Option, ...]:
        """Options of ``to_scene``."""
        options: tuple[Option, ...] = self._room("options").IMPORT_OPTIONS if self.is_read else ()
        return options

    @property
    def export_options(self) -> tuple[Option, ...]:
        """Options of ``from_scene`` and ``files_of``."""
        options: tuple[Option, ...] = self._room("options").EXPORT_OPTIONS
        return options


TIMBERMESH = Format(
    name="timbermesh",
    label="Timbermesh",
    package="timbermesh",
    extensions=(".timbermesh", ".meshy"),
    capabilities=Capabilities(
        uv_layers=3,
        color_layers=1,
        custom_layers=True,
        normals=True,
        splits_vertices=True,
        materials=True,
        node_hierarchy=True,
        node_clips=True,
        vertex_clips=True,
    ),
)

UNIGINE_MESH = Format(
    name="unigine_mesh",
    label="UNIGINE Mesh",
    package="unigine.mesh",
    extensions=(".mesh", ".mesh_skinned"),
    capabilities=Capabilities(
        uv_layers=2,
        color_layers=1,
        normals=True,
        materials=True,
        shape_keys=True,
        skeletons=True,
        influences=4,
        joint_clips=True,
        levels_of_detail=True,
        surfaces=True,
    ),
    only_read=(".mesh_skinned",),
)
UNIGINE_ANIMATION = Format(
    name="unigine_animation",
    label="UNIGINE Animation",
    package="unigine.animation",
    extensions=(".anim",),
    capabilities=Capabilities(skeletons=True, joint_clips=True),
)
UNIGINE_SKELETON = Format(
    name="unigine_skeleton",
    label="UNIGINE Skeleton",
    package="unigine.skeleton",
    extensions=(".skeleton",),
    capabilities=Capabilities(skeletons=True),
)

_SECOND_LIFE = Capabilities(
    uv_layers=1,
    normals=True,
    splits_vertices=True,
    materials=True,
    skeletons=True,
    influences=4,
    levels_of_detail=True,
    surfaces=True,
    physics=True,
    placed_models=True,
)
SECOND_LIFE_MESH = Format(
    name="second_life_mesh",
    label="Second Life Mesh",
    package="second_life.mesh",
    extensions=(".llmesh", ".mesh"),
    capabilities=_SECOND_LIFE,
    only_read=(".mesh",),
)
SECOND_LIFE_BUNDLE = Format(
    name="second_life_bundle",
    label="Second Life Model Bundle",
    package="second_life.bundle",
    extensions=(".slm",),
    capabilities=_SECOND_LIFE,
    is_set=True,
)
SECOND_LIFE_UPLOAD = Format(
    name="second_life_upload",
    label="Second Life Upload Set",
    package="second_life.upload_set",
    extensions=(".dae",),
    capabilities=_SECOND_LIFE,
    is_read=False,
    is_set=True,
)
SECOND_LIFE_REQUEST = Format(
    name="second_life_request",
    label="Second Life Upload Request",
    package="second_life.request",
    extensions=(".llsd",),
    capabilities=_SECOND_LIFE,
    is_read=False,
    is_set=True,
)
SECOND_LIFE = (SECOND_LIFE_MESH, SECOND_LIFE_BUNDLE, SECOND_LIFE_UPLOAD, SECOND_LIFE_REQUEST)


MESH_SERIALIZER = Format(
    name="mesh_serializer",
    label="MeshSerializer2",
    package="mesh_serializer",
    extensions=(".data", ".bin", ".bytes", ".3d", ".mesh"),
    capabilities=Capabilities(uv_layers=1, normals=True, splits_vertices=True),
    only_read=(".mesh",),
    ambiguous=(".data", ".bin", ".bytes", ".3d"),
)

FORMATS: tuple[Format, ...] = (
    TIMBERMESH,
    UNIGINE_MESH,
    UNIGINE_ANIMATION,
    UNIGINE_SKELETON,
    *SECOND_LIFE,
    MESH_SERIALIZER,
)


@functools.cache
def _room(package: str, room: str) -> ModuleType:
    """Return a module of a format's package; what cannot be imported is tried again."""
    return importlib.import_module(f".{package}.{room}", __package__)


def by_name(name: str) -> Format:
    """Return the format of that name."""
    for candidate in FORMATS:
        if candidate.name == name:
            return candidate
    raise UnsupportedFormatError(f"There is no format '{name}'; known are {', '.join(f.name for f in FORMATS)}")


def by_extension(extension: str) -> Format | None:
    """Return the format to write for an extension (with or without its dot), or None."""
    wanted = "." + extension.lower().lstrip(".")
    for candidate in FORMATS:
        if wanted in candidate.written_extensions:
            return candidate
    return None


def by_content(head: bytes, size: int) -> Format:
    """Return the format that recognises the content.

    Raises
    ------
    UnsupportedFormatError
        No format recognises the content. The message names the likely file type.
    """
    best, best_match = FORMATS[0], Match.NONE
    for candidate in FORMATS:
        match = candidate.sniff(head, size)
        if match is Match.SIGNATURE:
            return candidate
        if match > best_match:
            best, best_match = candidate, match
    misses = [miss for candidate in FORMATS if (miss := candidate.near_miss(head, size)) is not None]
    signature = signature_text(head) or next((miss.text for miss in misses if miss.has_signature), "")
    if best_match and not signature:
        return best
    raise UnsupportedFormatError(signature or _unknown_text(head, size, misses))


def _unknown_text(head: bytes, size: int, misses: Sequence[NearMiss]) -> str:
    """Return a sentence about a file without a known signature."""
    if size == 0:
        return "The file is empty"
    return likely_text(head) or next((miss.text for miss in misses), "not a format that Meshferry reads")

"""Print a module for mypy that calls the functions of each format as `io_formats/core/format.py` does.

Formats import their modules by name, which mypy cannot follow. It finds wrong signatures, and documents of different
classes, in the printed module.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))
from load_package import load_package

load_package()
from meshferry.io_formats import registry  # noqa: E402
from meshferry.io_formats.core.format import FileFormat  # noqa: E402

HEAD = """
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from meshferry.io_formats.core.messages import Message, Text
from meshferry.io_formats.core.format import OutputFile
from meshferry.io_formats.core.placement import KnownFiles, NewNodes, NodeEdit
from meshferry.io_formats.core.placement import Patched
from meshferry.io_formats.projects import Projects
from meshferry.io_formats.core.recognition import Match, NearMiss
from meshferry.io_formats.core.scene import Scene
"""
PARAMETERS = (
    "data: bytes, path: Path, scene: Scene, projects: Projects, reading: {}, writing: {}, "
    "place: Path | None, known: Projects | None, edits: Sequence[NodeEdit], beside: KnownFiles"
)
READING = (
    ("format", "sniff", "match: Match | NearMiss = {}(data, 0)"),
    ("codec", "read", "document = {}(data, inflated_limit=None)"),
    ("codec", "same_content", "is_same: bool = {}(data, data)"),
    ("mapping", "to_scene", "scene = {}(document, '', reading)"),
    ("mapping", "facts", "facts: dict[str, Any] = {}(document)"),
)
WRITING = (
    ("mapping", "from_scene", "document = {}(scene, writing)"),
    ("mapping", "files_of", "scenes: list[Scene] = {}(scene, writing)"),
    ("codec", "write", "encoded: bytes = {}(document)"),
)
PATHS = (("codec", "read_path", "document = {}(path)"),)
SETS = (("codec", "write_files", "files: list[OutputFile] = {}(document, '')"),)
PARTNERS = (("mapping", "join", "document = {}(document, {{'': document}})"),)
LINKED = (
    ("mapping", "link", "{}(document, scene, path, projects, reading)"),
    ("mapping", "missing", "missing: list[Message] = {}(document, path, projects, reading)"),
)
PATCHED = (
    ("patching", "patch", "patched: Patched = {}(data, edits)"),
    ("patching", "refusal", "refusal: Text | None = {}(path, reading)"),
)
ADDING = (("additions", "new_nodes", "made: NewNodes = {}(document, scene, path, projects, beside, ())"),)
OPTIONAL = (
    ("mapping", "from_scene_at", "document = {}(scene, writing, place, known)"),
    ("checks", "check", "messages: list[Message] = {}(document)"),
    ("checks", "check_scene", "of_scene: list[Message] = {}(scene)"),
    ("checks", "check_in_context", "in_context: list[Message] = {}(document, writing, place)"),
    ("checks", "check_links", "of_links: list[Message] = {}(document, path, projects, reading)"),
)


def calls_of(known: FileFormat) -> list[tuple[str, str, str]]:
    """Return the modules and functions that a format must have, with the calls of them."""
    return [
        *(READING if known.is_read else ()),
        *(PATHS if known.reads_paths else ()),
        *(PARTNERS if known.partner_suffixes else ()),
        *(LINKED if known.is_linked else ()),
        *(WRITING if known.is_written else ()),
        *(SETS if known.is_set else ()),
        *(PATCHED if known.is_patched else ()),
        *(ADDING if known.adds_models else ()),
        *(call for call in OPTIONAL if hasattr(known.modules(call[0]), call[1])),
    ]


print(HEAD)
for known in registry.FORMATS:
    lines = []
    for module, name, call in calls_of(known):
        function = getattr(known.modules(module), name)
        print(f"import {function.__module__}")
        lines.append("    " + call.format(f"{function.__module__}.{function.__name__}"))
    kinds = (known.import_options, known.export_options)
    print(*(f"import {kind.__module__}" for kind in kinds), sep="\n")
    parameters = PARAMETERS.format(*(f"{kind.__module__}.{kind.__name__}" for kind in kinds))
    print(f"def {known.name}({parameters}) -> None:", *lines, "", sep="\n")

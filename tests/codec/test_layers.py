"""Which layer may import which, and how `io_formats` works without Blender and protobuf."""

from __future__ import annotations

import ast
import functools
import graphlib
import io
import json
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import oracle
import pytest

ROOT = Path(__file__).resolve().parents[2]
BLENDER = {"bpy", "bmesh", "mathutils", "bpy_extras", "gpu", "bl_math", "idprop", "aud", "blf", "addon_utils"}
FILE_FORMATS = re.compile(r"timbermesh|unigine|second.?life|mesh.?serializer(?!_v)|timberborn", re.IGNORECASE)
"""``[MeshSerializer_v`` is the signature of OGRE's meshes."""
NEUTRAL = ("core", "encodings", "geometry", "passes", "disk", "api.py", "partner_files.py", "projects.py")
FAMILIES = {"timbermesh", "unigine", "second_life", "mesh_serializer"}


def run_python(program: str, *arguments: object) -> Any:
    """Run a program in an interpreter of its own and return the JSON that it prints."""
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)],
        check=False,
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        env=oracle.environment(),
        cwd=ROOT / "tests",
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def modules(layer: str) -> list[Path]:
    found = sorted((ROOT / layer).rglob("*.py"))
    assert found, layer
    return found


def statements(node: ast.AST, *, is_run: bool = True) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    """Yield the import statements, also in functions, and whether they are run: not those for type checkers."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, is_run
        elif not isinstance(child, ast.expr):
            is_typing = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test)
            yield from statements(child, is_run=is_run and not is_typing)


@functools.cache
def import_statements(path: Path) -> list[tuple[ast.Import | ast.ImportFrom, bool]]:
    return list(statements(ast.parse(path.read_text(encoding="utf-8"))))


def imports(path: Path) -> Iterator[str]:
    """Yield every module that a file imports, anywhere in it; relative ones as ``meshferry.…``."""
    package = ["meshferry", *path.relative_to(ROOT).parent.parts]
    for node, _is_run in import_statements(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        else:
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


def test_imports_are_found() -> None:
    """The walk finds relative imports, those in functions and those under another name."""
    found = {name for path in modules("io_formats") for name in imports(path)}
    assert "meshferry.io_formats.core.errors" in found
    assert "google.protobuf" in found
    assert "meshferry.io_formats.timbermesh.model.codec" in found


def test_io_formats_imports_neither_blender_nor_other_layers() -> None:
    for path in modules("io_formats"):
        for name in imports(path):
            assert name.split(".")[0] not in BLENDER, f"{path}: {name}"
            if name.split(".")[0] == "meshferry":
                assert name == "meshferry.io_formats" or name.startswith("meshferry.io_formats."), f"{path}: {name}"


def test_only_timbermesh_imports_protobuf() -> None:
    for layer in LAYERS:
        for path in modules(layer):
            if "timbermesh" not in path.parts:
                assert not any(name.split(".")[0] == "google" for name in imports(path)), path


def test_blender_data_imports_no_higher_layer_and_names_no_format() -> None:
    for path in modules("blender_data"):
        for name in imports(path):
            assert not name.startswith(("meshferry.operators", "meshferry.cli", "meshferry.library")), f"{path}: {name}"
        named = FILE_FORMATS.search(path.read_text(encoding="utf-8"))
        assert named is None, f"{path} names {named[0]}"


@pytest.mark.parametrize("entry", NEUTRAL)
def test_neutral_modules_of_io_formats_name_no_format(entry: str) -> None:
    path = ROOT / "io_formats" / entry
    for module in [path] if path.suffix else modules(f"io_formats/{entry}"):
        named = FILE_FORMATS.search(module.read_text(encoding="utf-8"))
        assert named is None, f"{module} names {named[0]}"


def test_every_entry_of_io_formats_is_neutral_or_a_family() -> None:
    entries = {path.name for path in (ROOT / "io_formats").iterdir()} - {"__init__.py", "__pycache__"}
    assert entries == {*NEUTRAL, *FAMILIES, "registry.py"}


LAYERS = ("io_formats", "blender_data", "operators", "cli", "library")
MOST_LINES, MOST_MODULES = 450, 15


def lines_with_code(path: Path) -> int:
    """Return the number of lines of a module without docstrings, comments and blank lines."""
    text = path.read_text(encoding="utf-8")
    documented: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        body = getattr(node, "body", None)
        for item in body if isinstance(body, list) else []:
            if (
                isinstance(item, ast.Expr)
                and isinstance(item.value, ast.Constant)
                and isinstance(item.value.value, str)
            ):
                documented.update(range(item.lineno, (item.end_lineno or item.lineno) + 1))
    blank = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    lines = set[int]()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in blank:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - documented)


def test_modules_and_folders_have_a_readable_size() -> None:
    for layer in LAYERS:
        for path in modules(layer):
            is_short = len(path.read_text(encoding="utf-8").splitlines()) <= MOST_LINES
            assert is_short or lines_with_code(path) <= MOST_LINES, path
        for folder in {path.parent for path in modules(layer)}:
            names = {path.name for path in folder.glob("*.py")} - {"__init__.py"}
            assert len(names) <= MOST_MODULES, f"{folder} has {len(names)} modules"


def imported_modules(path: Path) -> Iterator[Path]:
    """Yield the modules of the package that a module imports."""
    for node, is_run in import_statements(path):
        if is_run and isinstance(node, ast.ImportFrom) and node.level:
            base = path.parents[node.level - 1].joinpath(*(node.module or "").split("."))
            for alias in node.names:
                yield next(
                    found
                    for found in (base / f"{alias.name}.py", base / alias.name, base.with_suffix(".py"), base)
                    if found.exists()
                )


@functools.cache
def folder_imports() -> dict[str, set[str]]:
    """Return which folders import which folders beside them."""
    found: dict[str, set[str]] = {}
    for path in (path for layer in LAYERS for path in modules(layer)):
        for target in imported_modules(path):
            own, other = path.relative_to(ROOT).parent.parts, target.relative_to(ROOT).parent.parts
            depth = next((n for n, pair in enumerate(zip(own, other, strict=False)) if pair[0] != pair[1]), None)
            if depth is not None:
                found.setdefault("/".join(own[: depth + 1]), set()).add("/".join(other[: depth + 1]))
    return found


def test_folders_beside_each_other_form_no_cycle() -> None:
    order = list(graphlib.TopologicalSorter(folder_imports()).static_order())  # raises CycleError
    assert len(order) > 20


def test_rigging_importing_and_exporting_are_apart() -> None:
    folders = {"blender_data/rigging", "blender_data/importing", "blender_data/exporting"}
    assert "blender_data/rigging" in folder_imports()["blender_data/importing"]
    assert not folder_imports()["blender_data/rigging"] & folders
    for folder in ("importing", "exporting"):
        assert folder_imports()[f"blender_data/{folder}"] & folders == {"blender_data/rigging"}


def test_imports_within_the_package_are_relative() -> None:
    """The installed package has another name: ``bl_ext.<repository>.meshferry``."""
    for layer in ("io_formats", "blender_data", "operators", "library"):
        for path in modules(layer):
            for node, _is_run in import_statements(path):
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                if isinstance(node, ast.ImportFrom) and not node.level:
                    names = [node.module or ""]
                assert not any(name.split(".")[0] == "meshferry" for name in names), path


IMPORT_ALL = """
import importlib, json, pkgutil, sys
for blocked in json.loads(sys.argv[1]):
    sys.modules[blocked] = None
from load_package import load_package
load_package()
from meshferry import io_formats as layer
names = [found.name for found in pkgutil.walk_packages(layer.__path__, "meshferry.io_formats.")]
for name in names:
    importlib.import_module(name)
print(json.dumps({"names": names, "loaded": sorted(name for name, module in sys.modules.items() if module)}))
"""


@pytest.mark.parametrize("blocked", [[], sorted(BLENDER), ["google", "google.protobuf", *sorted(BLENDER)]])
def test_every_module_of_io_formats_can_be_imported_alone(blocked: list[str]) -> None:
    found = run_python(IMPORT_ALL, json.dumps(blocked))
    assert len(found["names"]) >= 30
    loaded = {name.split(".")[0] for name in found["loaded"]}
    assert not loaded & BLENDER
    # protobuf waits until the first file is read
    assert not any(name.startswith("google.protobuf") for name in found["loaded"])


WITHOUT_PROTOBUF = """
import contextlib, io, json, sys
sys.modules["google"] = None
sys.modules["google.protobuf"] = None
sys.modules["bpy"] = None
from load_package import load_package
load_package()
from meshferry.cli.main import main
from meshferry.io_formats import registry
from meshferry.io_formats.timbermesh.model.format import TIMBERMESH
from meshferry.io_formats.core.errors import FormatError, MissingLibraryError
from meshferry.io_formats.timbermesh.model import codec
messages = []
for attempt in (
    lambda: TIMBERMESH.read(b"\\x1a\\0"),
    lambda: TIMBERMESH.read(b"no file at all"),
    lambda: TIMBERMESH.write(codec.Model()),
    lambda: TIMBERMESH.same_content(b"\\x1a\\0", b"\\x1a\\2\\x12\\0"),
):
    try:
        attempt()
    except MissingLibraryError as problem:
        messages.append(str(problem))
sniffed = registry.by_content(b"\\x1a\\0", 2).name
stdout = io.StringIO()
with contextlib.redirect_stdout(stdout):
    status = main(["formats"])
print(json.dumps({"messages": messages, "sniffed": sniffed, "status": status, "out": stdout.getvalue()}))
"""


def test_without_protobuf_only_its_format_fails() -> None:
    found = run_python(WITHOUT_PROTOBUF)
    assert len(found["messages"]) == 4
    for text in found["messages"]:
        assert "needs the library 'protobuf'" in text
        assert "pip install protobuf" in text
        assert "\n" not in text
    assert found["sniffed"] == "timbermesh"
    assert found["status"] == 0
    assert "Timbermesh (.timbermesh, .meshy)" in found["out"]


STARTS = {
    "recognition": """
from meshferry.io_formats import registry
registry.by_content(b"sn10", 4)
try:
    registry.by_content(b"{" + b"\\0" * 64, 65)
except ValueError:
    pass""",
    "read": """
import meshferry
meshferry.read("../examples/vase.data")""",
    "read of other formats": """
import meshferry
for name in ("lamp.mesh", "lamp_nod.anim", "windmill.timbermesh", "tunic.llmesh", "dance.anim"):
    meshferry.read("../examples/" + name)""",
    "version": """
from meshferry.cli.main import main
assert main(["--version"]) == 0""",
    "register": """
import bpy, meshferry
meshferry.register()
meshferry.unregister()""",
}


@pytest.mark.parametrize(
    ("start", "unwanted"),
    [
        ("recognition", r"numpy|.*\.codec"),
        ("read", r"tempfile|.*\.(timbermesh|unigine|second_life)\..*|.*\.(document_builder|passes\.flatten)"),
        ("read of other formats", r"concurrent\.futures|logging|.*\.(game_names|sliders|mesh\.document_builder)"),
        ("version", r"numpy|bpy|meshferry\.(cli\.(conversions|batch)|blender_data|operators).*"),
        pytest.param(
            "register",
            r".*\.(codec|mapping|patching|checks|scene_builder|document_builder|importer|exporter|reload)|"
            r"meshferry\..*\.(placements|models\.generated.*|upload_set\.levels|core\.placement|core\.shading)",
            marks=[pytest.mark.needs_bpy, pytest.mark.slow],
        ),
    ],
)
def test_nothing_is_loaded_before_it_is_needed(start: str, unwanted: str) -> None:
    """NumPy would double the start of a batch's driver, and codecs and importers that of each Blender."""
    program = f"import json, sys{STARTS[start]}\nprint()\nprint(json.dumps(list(sys.modules)))"
    assert not [name for name in run_python(program) if re.fullmatch(unwanted, name)]

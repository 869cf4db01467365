"""Meanings between layers are fields of dataclasses; what only passes through is read by its own format alone."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import get_type_hints

import pytest
from meshferry.blender_data.export_options import ExportOptions
from meshferry.blender_data.importing.import_options import ImportOptions
from meshferry.cli.conversions.blend_files import BlendOptions
from meshferry.io_formats.core import scene as sc
from meshferry.io_formats.core.errors import MeshferryError
from meshferry.io_formats.core.options import Options, resolve
from meshferry.io_formats.registry import FORMATS

ROOT = Path(__file__).resolve().parents[2]
PASSED_ON = "pass_through"


def reads(tree: ast.AST) -> Iterator[str]:
    """Yield how a module looks into what passes through: subscripts, ``get``, attributes, ``isinstance``."""
    for node in ast.walk(tree):
        looked_into: list[ast.expr] = []
        if isinstance(node, ast.Subscript | ast.Attribute):
            looked_into = [node.value]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            looked_into = node.args  # isinstance, getattr, vars, cast
        elif isinstance(node, ast.Compare):
            looked_into = [node.left, *node.comparators]
        for value in looked_into:
            if isinstance(value, ast.Attribute) and value.attr == PASSED_ON:
                yield ast.unparse(node)


def modules_of_no_format() -> list[Path]:
    """Return the modules outside the packages of the formats."""
    families = {path for path in (ROOT / "io_formats").iterdir() if any(path.rglob("mapping.py"))}
    assert len(families) >= 4
    found = [
        path
        for layer in ("io_formats", "blender_data", "operators", "cli", "library")
        for path in sorted((ROOT / layer).rglob("*.py"))
        if not families & set(path.parents)
    ]
    assert len(found) > 200
    return found


@pytest.mark.parametrize(
    "line",
    [
        "node.pass_through['key']",
        "node.pass_through.get('key')",
        "node.pass_through.number",
        "isinstance(node.pass_through, X)",
        "'key' in node.pass_through",
    ],
)
def test_looking_into_what_passes_through_is_seen(line: str) -> None:
    assert list(reads(ast.parse(line)))
    assert not list(reads(ast.parse("Node(pass_through=node.pass_through); a.pass_through = b.pass_through")))


def test_only_its_own_format_looks_into_what_passes_through() -> None:
    for path in modules_of_no_format():
        text = path.read_text(encoding="utf-8")
        assert PASSED_ON not in text or not list(reads(ast.parse(text))), path


KINDS = {ImportOptions, ExportOptions, BlendOptions} | {
    kind for known in FORMATS for kind in (known.import_options, known.export_options)
}


@pytest.mark.parametrize("kind", sorted(KINDS, key=lambda kind: f"{kind.__module__}.{kind.__qualname__}"))
def test_options_have_the_types_names_and_defaults_of_their_table(kind: type[Options]) -> None:
    assert get_type_hints(kind) == {option.name: type(option.default) for option in kind.table()}
    assert all(getattr(kind, option.name).name in ("", option.name) for option in kind.table())
    for made in (kind(), kind.of(), kind.of({}), kind.among({"use_wled": True}), kind().with_values()):
        assert made.values() == resolve(kind.table()) and made.given == frozenset()
    with pytest.raises(MeshferryError, match="no option 'use_wled'"):
        kind.of({"use_wled": True})


def test_options_are_resolved_once_and_remember_what_was_given() -> None:
    chosen = ExportOptions.of({"use_hidden": True})
    assert ExportOptions.of(chosen) is chosen
    assert chosen.given == {"use_hidden"}
    assert ExportOptions.of({"use_hidden": True}, given=["clips"]).given == {"clips"}
    with pytest.raises(TypeError):
        ImportOptions.of(chosen)


def test_scenes_carry_nothing_by_name() -> None:
    """A key of a mapping is a contract that no type checker sees; names of shape keys are data."""
    for cls in vars(sc).values():
        # The JSON of a glTF material belongs to glTF.
        if isinstance(cls, type) and dataclasses.is_dataclass(cls) and cls.__module__ == sc.__name__:
            for field in dataclasses.fields(cls):
                assert "Any]" not in str(field.type), f"{cls.__name__}.{field.name}"

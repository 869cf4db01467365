"""Write ``translations/template.json``: all texts of the window, as keys for translators.

    .venv/bin/python tests/examples/translation_template.py

The texts are those of the registered classes and their properties, and those that the code of ``operators/`` gives to
the functions and arguments that translate.
"""

from __future__ import annotations

import ast
import inspect
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FUNCTIONS = frozenset({"iface_", "rpt_", "counted", "draw_number", "draw_right", "split_row", "section_body", "Step"})
"""Functions whose texts are translated."""
ARGUMENTS = frozenset({"text", "title", "placeholder", "confirm_text", "label"})
"""Arguments whose texts are translated."""


def template() -> dict[str, str]:
    """Return all texts in alphabetical order, without translations."""
    texts = set(_texts_of_code()) | set(_texts_of_classes()) | set(_texts_of_tables())
    return dict.fromkeys(sorted(text for text in texts if any(letter.isalpha() for letter in text)), "")


def _texts_of_code() -> Iterator[str]:
    for path in sorted((ROOT / "operators").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call):
                name = getattr(node.func, "id", getattr(node.func, "attr", ""))
                values = list(node.args) if name in FUNCTIONS else []
                values += [keyword.value for keyword in node.keywords if keyword.arg in ARGUMENTS]
                for value in values:
                    yield from _literals(value)


def _literals(value: ast.expr) -> Iterator[str]:
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        yield value.value
    elif isinstance(value, ast.IfExp):
        yield from _literals(value.body)
        yield from _literals(value.orelse)
    elif isinstance(value, ast.BoolOp):
        for item in value.values:
            yield from _literals(item)


def _texts_of_classes() -> Iterator[str]:
    import bpy

    for kind in (
        bpy.types.Operator,
        bpy.types.Panel,
        bpy.types.Menu,
        bpy.types.UIList,
        bpy.types.PropertyGroup,
        bpy.types.AddonPreferences,
    ):
        for cls in kind.__subclasses__():
            if cls.__module__.startswith("meshferry."):
                yield from _texts_of_class(cls)


def _texts_of_class(cls: Any) -> Iterator[str]:
    from meshferry.blender_data.translation_context import declared_properties

    yield getattr(cls, "bl_label", "")
    if issubclass(cls, __import__("bpy").types.Operator):
        yield getattr(cls, "bl_description", "") or inspect.getdoc(cls) or ""
    for keywords in declared_properties(cls):
        yield str(keywords.get("name", ""))
        yield str(keywords.get("description", ""))
        items: Any = keywords.get("items", ())
        if not callable(items):
            for item in items:
                yield from item[1:3]


def _texts_of_tables() -> Iterator[str]:
    """Yield what the code passes on from tables: sections and notes of options, buttons of fixes, guides."""
    from meshferry.io_formats import registry
    from meshferry.operators import finding_fixes, format_operators, option_properties, preferences

    yield from option_properties.SECTIONS
    for known in registry.FORMATS:
        tables = option_properties.import_table(known), option_properties.export_table(known)
        yield from (option.note for table in tables for option in table)
    yield from finding_fixes.DESCRIPTIONS.values()
    yield from preferences.OTHER_GUIDES
    for family, built in zip(registry.FAMILIES, format_operators.FAMILY_OPERATORS.values(), strict=True):
        first = next(iter(built.exporters.values()))
        yield format_operators.collection_text(family, first.format)
        yield from (cls.entry_text for cls in (built.importer, *built.exporters.values()))


def main() -> None:
    """Write the template."""
    sys.path.insert(0, str(ROOT / "tests"))
    from load_package import load_package

    load_package()
    import meshferry

    meshferry.register()
    path = ROOT / "translations" / "template.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(template(), indent=2, ensure_ascii=False) + "\n", "utf-8")
    meshferry.unregister()


if __name__ == "__main__":
    main()

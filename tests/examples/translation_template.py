"""Write ``translations/template.json``: all texts of the window, as keys for translators.

    .venv/bin/python tests/examples/translation_template.py

The texts are those of the registered classes and their properties, those that the code of ``operators/`` gives to the
functions and arguments that translate, and all sentences and parts of sentences in the code of the layers below.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FUNCTIONS = frozenset(
    {"iface_", "rpt_", "draw_number", "draw_right", "split_row", "section_body", "Step", "Text"}
    | {"inform", "warn", "refuse", "conclude", "ExportError", "MeshferryError"}
)
"""Functions whose texts are translated."""
REPORTS = frozenset({"loss", "loss_of", "change", "change_of", "note", "error", "warning", "warning_of"})
"""Functions whose second argument is translated, after the code of a message."""
ARGUMENTS = frozenset({"text", "title", "placeholder", "confirm_text", "label"})
"""Arguments whose texts are translated."""
LAYERS = ("io_formats", "blender_data")
NOT_SHOWN = re.compile(r"(options|properties|formats|known_names|collada)\.py$")
"""Modules of the lower layers whose texts are names, or belong to registered properties."""
WORDS = re.findall(
    r"\w+",
    """UVs and animations are bind bone camera colour colours corner corners frame frames has have high hull is it light
    low lowest material medium none nothing numbers off on physics position positions rest rig rotation scale speaker
    surfaces tangents them translation vertex vertices volume""",
)
"""Single words that messages are composed of."""
PROSE = re.compile(r"(^|[ '(])[a-z]{2,}([ ,;:.)']|$)|^[A-Z][a-z]+: \{\}\Z")


def template() -> dict[str, str]:
    """Return all texts in alphabetical order, without translations."""
    texts = {*_texts_of_code(), *_texts_of_classes(), *_texts_of_tables(), *texts_of_messages()}
    return dict.fromkeys(sorted(text for text in texts if any(letter.isalpha() for letter in text)), "")


def _texts_of_code() -> Iterator[str]:
    for path in sorted((ROOT / "operators").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call):
                name = getattr(node.func, "id", getattr(node.func, "attr", ""))
                values = list(node.args) if name in FUNCTIONS else node.args[1:2] if name in REPORTS else []
                yield from counted_texts(nouns_of(node))
                values += [keyword.value for keyword in node.keywords if keyword.arg in ARGUMENTS]
                for value in values:
                    yield from literals(value)


def texts_of_messages() -> Iterator[str]:
    """Yield the sentences and parts of sentences in the layers below ``operators``, with ``{}`` for each value."""
    for path in sorted(path for layer in LAYERS for path in (ROOT / layer).rglob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        if not NOT_SHOWN.search(path.name):
            yield from messages_of(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Text" and node.args:
                yield from (text for text in literals(node.args[0]) if re.search("[A-Za-z]{2}", text))


def messages_of(tree: ast.AST) -> Iterator[str]:
    """Yield the texts of a module. Docstrings are none, and neither are words alone, most of which are keys."""
    parts = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            parts.add(node.value)
        elif isinstance(node, ast.JoinedStr):
            parts.update(value for value in node.values if isinstance(value, ast.Constant))
            yield from (text for text in literals(node) if " " in text and re.search("[a-z]{2}", text))
        elif isinstance(node, ast.Call) and (nouns := nouns_of(node)):
            parts.update(argument for argument in nouns if isinstance(argument, ast.Constant))
            yield from counted_texts(nouns)
        elif node not in parts:
            yield from (text for text in literals(node) if " " in text and PROSE.search(text))


def nouns_of(call: ast.Call) -> list[ast.expr]:
    """Return the arguments of a call that are counted: of ``counted``, or of a report of things by their names."""
    name = getattr(call.func, "id", getattr(call.func, "attr", ""))
    if name in {"loss_of", "change_of", "warning_of"}:
        return call.args[3:] or [ast.Constant("object")]
    return call.args[1:] if name == "counted" else []


def counted_texts(arguments: Iterable[ast.expr]) -> Iterator[str]:
    """Yield what ``counted`` returns for one and for many, where its texts are literals."""
    nouns = [text for argument in arguments for text in literals(argument)]
    if nouns:
        yield from (f"{{:,}} {noun}" for noun in (nouns[0], nouns[1] if nouns[1:] else f"{nouns[0]}s"))


def literals(value: ast.AST) -> Iterator[str]:
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        yield value.value
    elif isinstance(value, ast.JoinedStr):
        yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in value.values)
    elif isinstance(value, ast.IfExp):
        yield from literals(value.body)
        yield from literals(value.orelse)
    elif isinstance(value, ast.BoolOp):
        for operand in value.values:
            yield from literals(operand)


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
    from meshferry.blender_data.property_groups.translation_context import declared_properties

    yield getattr(cls, "bl_label", "")
    if issubclass(cls, __import__("bpy").types.Operator):
        yield getattr(cls, "bl_description", "") or inspect.getdoc(cls) or ""
    for keywords in declared_properties(cls):
        yield str(keywords.get("name", ""))
        yield str(keywords.get("description", ""))
        choices: Any = keywords.get("items", ())
        if not callable(choices):
            for choice in choices:
                yield from choice[1:3]


def _texts_of_tables() -> Iterator[str]:
    """Yield what the code passes on from tables: sections and notes of options, buttons of fixes, guides."""
    import bpy
    from meshferry.blender_data.rigging import body_shapes
    from meshferry.io_formats import registry
    from meshferry.io_formats.core import capabilities
    from meshferry.io_formats.second_life.options import LEVEL_TEXTS
    from meshferry.io_formats.timbermesh.blueprint.tree import Problem as BlueprintProblem
    from meshferry.io_formats.unigine.mesh import document
    from meshferry.io_formats.unigine.scene.references import Problem as SceneProblem
    from meshferry.operators import format_operators, option_properties, preferences
    from meshferry.operators.families.timbermesh import buildings
    from meshferry.operators.findings import finding_fixes

    yield from (*WORDS, *LEVEL_TEXTS)
    nouns = [problem.value[1:3] for problem in (*SceneProblem, *BlueprintProblem)] + [*document._KINDS.values()]
    yield from (f"{{:,}} {noun}" for pair in nouns for noun in pair)
    plurals = capabilities._PLURALS
    for kind in {"bone", *messages_of(ast.parse(inspect.getsource(capabilities)))} - set(plurals.values()):
        yield from (kind, f"{{:,}} {kind}", f"{{:,}} {plurals.get(kind, kind + 's')}") if "{}" not in kind else ()
    yield from (*option_properties.SECTIONS, *(option.section for option in buildings.OPTIONS))
    for known in registry.FORMATS:
        tables = option_properties.import_table(known), option_properties.export_table(known)
        yield from (option.note for table in tables for option in table)
    for slider in body_shapes.sliders():
        made = bpy.types.Object.bl_rna.properties[body_shapes.property_name(slider.number)]
        yield from (made.name, made.description, slider.tab)
    yield from (fix.description for fix in finding_fixes.FIXES.values())
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

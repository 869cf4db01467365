"""The texts of the window can be translated, all or none of a dialog."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest
from translation_template import ROOT, template

FOLDER = ROOT / "translations"
LAYOUT_CALLS = frozenset({"label", "operator", "prop", "operator_menu_enum"})


def read(path: Path) -> dict[str, str]:
    return dict(json.loads(path.read_text("utf-8")))


@pytest.mark.needs_bpy
def test_the_template_has_all_texts() -> None:
    message = "run tests/examples/translation_template.py"
    assert list(read(FOLDER / "template.json")) == list(template()), message


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*_*.json")), ids=lambda path: path.stem)
def test_a_translation_is_complete(path: Path) -> None:
    translated = read(path)
    assert translated.keys() == read(FOLDER / "template.json").keys()
    for english, text in translated.items():
        assert text, english
        assert sorted(re.findall(r"{.*?}", english)) == sorted(re.findall(r"{.*?}", text)), english


@pytest.mark.needs_bpy
def test_names_of_classes_and_properties_have_their_own_context() -> None:
    import bpy
    from meshferry.blender_data.translation_context import CONTEXT

    seen = 0
    for kind in (bpy.types.Operator, bpy.types.Panel, bpy.types.PropertyGroup, bpy.types.AddonPreferences):
        for cls in kind.__subclasses__():
            if cls.__module__.startswith("meshferry.") and cls.is_registered:
                owned: Any = cls.bl_rna
                if kind is bpy.types.Operator:
                    module, _, name = cls.bl_idname.partition(".")
                    owned = getattr(getattr(bpy.ops, module), name).get_rna_type()
                if kind in {bpy.types.Operator, bpy.types.Panel}:
                    assert owned.translation_context == CONTEXT, cls
                for name in cls.__annotations__.keys() & set(owned.properties.keys()) - {
                    "name"
                }:  # each group inherits one
                    assert owned.properties[name].translation_context == CONTEXT, (cls, name)
                    seen += 1
    assert seen > 300


def test_texts_in_layouts_have_their_own_context() -> None:
    """Without it Blender translates common words in the default context, whatever the rest of the dialog is in."""
    for path in sorted((ROOT / "operators").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in LAYOUT_CALLS:
                given = {keyword.arg: keyword.value for keyword in node.keywords}
                text = given.get("text")
                if text is None or isinstance(text, ast.JoinedStr) or not getattr(text, "value", "x"):
                    continue
                assert {"text_ctxt", "translate"} & given.keys(), f"{path.name}:{node.lineno}"


@pytest.mark.needs_bpy
def test_a_translation_is_looked_up_in_both_contexts(tmp_path: Path) -> None:
    from meshferry.operators import translations

    (tmp_path / "de_DE.json").write_text('{"Export": "Exportieren"}', "utf-8")
    (tmp_path / "template.json").write_text('{"Export": ""}', "utf-8")
    assert translations.load(tmp_path) == {
        "de_DE": {("Meshferry", "Export"): "Exportieren", ("*", "Export"): "Exportieren"}
    }

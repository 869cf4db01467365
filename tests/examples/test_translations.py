"""The texts of the window can be translated, all or none of a dialog."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from translation_template import ROOT, template

FOLDER = ROOT / "translations"


def read(path: Path) -> dict[str, str]:
    return dict(json.loads(path.read_text("utf-8")))


def placeholders(text: str) -> list[str]:
    """Return the places of values, without numbers; names keep their quotes, by which findings select objects."""
    return sorted(re.sub(r"\d", "", found) for found in re.findall(r"'?{[^}]*}'?", text))


@pytest.mark.slow
@pytest.mark.any_version
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
        assert placeholders(english) == placeholders(text), english


@pytest.mark.needs_bpy
def test_names_of_classes_and_properties_have_their_own_context() -> None:
    import bpy
    from meshferry.blender_data.property_groups.translation_context import CONTEXT

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


@pytest.mark.needs_bpy
def test_a_translation_is_looked_up_in_both_contexts(tmp_path: Path) -> None:
    from meshferry.operators import translations

    (tmp_path / "de_DE.json").write_text('{"Export": "Exportieren"}', "utf-8")
    (tmp_path / "template.json").write_text('{"Export": ""}', "utf-8")
    assert translations.load(tmp_path) == {
        "de_DE": {("Meshferry", "Export"): "Exportieren", ("*", "Export"): "Exportieren"}
    }


@pytest.mark.needs_bpy
def test_texts_with_null_characters_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blender's program raises an error for them; the Python module does not."""
    from meshferry.operators import translations

    def look_up(text: str, _context: str) -> str:
        if "\0" in text:
            raise ValueError("embedded null character")
        return text

    monkeypatch.setattr(translations, "pgettext_rpt", look_up)
    assert translations.rpt_("Node 'a\0b' was left out") == "Node 'a\0b' was left out"


def made_up(english: str) -> str:
    """Return a text in a made-up language: all letters are Greek."""
    return re.sub(r"({.*?})|[A-Za-z]", lambda match: match[1] or "λ", english)


def english_left(text: str) -> str:
    """Return the English letters of a text outside of names."""
    return "".join(re.findall("[A-Za-z]", re.sub(r"(?<!\w)'.*?'(?!\w)", "", text)))


@pytest.fixture
def made_up_language(monkeypatch: pytest.MonkeyPatch) -> None:
    """Show all keys of the template in the made-up language; the wheel of Blender has no languages."""
    from meshferry.operators import translations

    keys = read(FOLDER / "template.json")
    for name in ("pgettext_iface", "pgettext_rpt"):
        monkeypatch.setattr(translations, name, lambda text, _context: made_up(text) if text in keys else text)


@pytest.mark.needs_bpy
@pytest.mark.usefixtures("made_up_language")
@pytest.mark.parametrize(
    ("known", "least"), [("timbermesh", 3), ("unigine_mesh", 3), ("second_life", 4), ("mesh_serializer", 4)]
)
def test_findings_have_no_english(known: str, least: int, clean_blender: Any) -> None:
    """Neither in the sidebar nor in the dialog of a refused export, which shares its list."""
    from meshferry.operators.findings.finding_list import draw_list

    bpy = clean_blender
    box = troubled_box(bpy)
    getattr(bpy.ops.export_scene, f"{known}_check")()
    findings = bpy.context.window_manager.meshferry_check.findings
    assert len(findings) >= least
    layout = MagicMock()
    draw_list(layout, bpy.context, 500)
    texts = [
        call.kwargs["text"] for call in layout.mock_calls if "text_ctxt" not in call.kwargs and "text" in call.kwargs
    ]
    assert len(texts) >= 2 * least
    assert not [text for text in texts if english_left(text.replace(box.name, ""))]


@pytest.mark.needs_bpy
@pytest.mark.usefixtures("made_up_language")
def test_reports_have_no_english(clean_blender: Any, tmp_path: Path) -> None:
    """Of a refused export, of an export with warnings, and of a damaged file."""
    from encoding import encode_scene
    from meshferry.blender_data.exporting.object_selection import Source
    from meshferry.io_formats.core.messages import counted
    from meshferry.io_formats.unigine.mesh.format import UNIGINE_MESH
    from meshferry.operators.files.export_base import read_blender_scene
    from meshferry.operators.reports import Messages, conclude

    bpy = clean_blender
    box = troubled_box(bpy)
    damaged = tmp_path / "damaged.mesh"
    damaged.write_bytes((ROOT / "examples" / "lamp.mesh").read_bytes()[:400])
    said = []
    for run in (
        lambda: bpy.ops.export_scene.timbermesh(filepath=str(tmp_path / "box.timbermesh")),
        lambda: bpy.ops.import_scene.unigine(filepath=str(damaged)),
    ):
        with pytest.raises(RuntimeError) as caught:
            run()
        said.append(str(caught.value).removeprefix("Error: "))
    listener = SimpleNamespace(report=lambda _kind, text: said.append(text))
    messages = Messages()
    with messages.outcome(str(tmp_path / "box.mesh")):
        scene = read_blender_scene(bpy.context, Source("OBJECTS", objects=(box,)), "box", UNIGINE_MESH, {})
        messages.warn("box.mesh", encode_scene(scene, UNIGINE_MESH)[1])
    conclude(listener, messages, [counted(3, "triangle")], "Exported")
    assert len(said) > 5
    assert not [text for text in said if english_left(re.sub(r"#Box|(box|damaged)\.\w+", "", text))]


def troubled_box(bpy: Any) -> Any:
    """Return an active object about which every check finds something."""
    bpy.ops.object.light_add()
    bpy.ops.mesh.primitive_cube_add()
    box = bpy.context.object
    box.name, box.scale[0] = "#Box", -200
    box.data.uv_layers.remove(box.data.uv_layers[0])
    for name in ("Material", "Dirt.001", "Unused"):
        box.data.materials.append(bpy.data.materials.new(name))
    box.data.polygons[0].material_index = 1
    box.shape_key_add(name="Basis")
    box.shape_key_add(name="Bent")
    box.color = (1, 0, 0, 1)
    box.data.color_attributes.new("Col", "BYTE_COLOR", "CORNER")
    return box

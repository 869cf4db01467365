"""The tables of options and the properties of the operators say the same."""

from types import SimpleNamespace

import pytest

pytestmark = pytest.mark.needs_bpy

OPERATORS = {
    "import_scene.timbermesh": "import",
    "export_scene.timbermesh": "export",
    "export_scene.timbermesh_batch": "export",
}


def _table(kind):
    from meshferry.blender_data.export_options import EXPORT_OPTIONS
    from meshferry.blender_data.import_options import IMPORT_OPTIONS
    from meshferry.io_formats.formats import TIMBERMESH

    return IMPORT_OPTIONS if kind == "import" else (*EXPORT_OPTIONS, *TIMBERMESH.export_options)


def _properties(bpy, operator):
    module, name = operator.split(".")
    return getattr(getattr(bpy.ops, module), name).get_rna_type().properties


@pytest.mark.parametrize("operator", OPERATORS)
def test_every_option_is_a_property_with_the_same_text_default_and_limits(clean_blender, operator):
    properties = _properties(clean_blender, operator)
    for option in _table(OPERATORS[operator]):
        found = properties[option.name]
        assert found.name == option.label
        assert found.description == option.description
        assert found.default == (pytest.approx(option.default) if found.type == "FLOAT" else option.default)
        if option.choices:
            items = [(item.identifier, item.name, item.description) for item in found.enum_items]
            assert items == [(choice.key, choice.label, choice.description) for choice in option.choices]
        if option.minimum is not None:
            assert found.hard_min == pytest.approx(option.minimum)
        if option.maximum is not None:
            assert found.hard_max == pytest.approx(option.maximum)


@pytest.mark.parametrize("operator", OPERATORS)
def test_every_property_that_can_be_seen_says_what_it_does(clean_blender, operator):
    for identifier, found in _properties(clean_blender, operator).items():
        if identifier != "rna_type" and not found.is_hidden:
            assert found.description, identifier


@pytest.mark.parametrize("operator", OPERATORS)
def test_presets_hold_the_options_and_no_files(clean_blender, operator):
    properties = _properties(clean_blender, operator)
    module, name = operator.split(".")
    assert "PRESET" in getattr(clean_blender.types, f"{module.upper()}_OT_{name}").bl_options
    kept = {name for name, found in properties.items() if name != "rna_type" and not _skips_preset(found)}
    assert {option.name for option in _table(OPERATORS[operator])} <= kept
    assert not kept & {"filepath", "directory", "files", "collection", "collections", "filter_glob", "suggested_name"}


def _skips_preset(found):
    return found.is_skip_save or getattr(found, "is_skip_preset", False)


class Layout:
    """Remembers what is drawn, section by section."""

    def __init__(self):
        self.sections = {}
        self.props = []
        self.labels = []

    def panel(self, identifier, default_closed=False):
        self.sections[identifier] = Layout()
        return Layout(), self.sections[identifier]

    def prop(self, _owner, name, **_):
        self.props.append(name)

    def label(self, text="", **_):
        self.labels.append(text)


def _drawn(kind, **values):
    from meshferry.operators.option_properties import draw_options

    table = _table(kind)
    owner = SimpleNamespace(**{option.name: option.default for option in table} | values)
    layout = Layout()
    draw_options(layout, owner, table, f"TIMBERMESH_{kind}")
    return layout


@pytest.mark.parametrize("kind", ["import", "export"])
def test_all_options_are_drawn_once_in_sections_of_the_format(clean_blender, kind):
    layout = _drawn(kind)
    assert not layout.props
    assert all(name.startswith(f"TIMBERMESH_{kind}_") for name in layout.sections)
    drawn = [name for section in layout.sections.values() for name in section.props]
    assert sorted(drawn) == sorted(option.name for option in _table(kind))


def test_options_without_effect_are_hidden(clean_blender):
    section = _drawn("export", clips="NONE").sections["TIMBERMESH_export_animation"]
    assert section.props == ["clips"]
    section = _drawn("import", use_node_animation=False, vertex_animation="NONE").sections[
        "TIMBERMESH_import_animation"
    ]
    assert section.props == ["use_node_animation", "vertex_animation"]


def test_a_note_says_where_caches_go(clean_blender):
    section = _drawn("import", vertex_animation="CACHE").sections["TIMBERMESH_import_animation"]
    assert any(".pc2" in label for label in section.labels)


def test_paths_are_absolute_and_without_quotes(clean_blender):
    from meshferry.blender_data.import_options import MATERIAL_LIBRARY
    from meshferry.operators.option_properties import option_values

    owner = SimpleNamespace(material_library=' "/models/wood.blend" ')
    assert option_values(owner, [MATERIAL_LIBRARY]) == {"material_library": "/models/wood.blend"}

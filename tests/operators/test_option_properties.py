"""The tables of options and the properties of the operators say the same."""

from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest

pytestmark = pytest.mark.needs_bpy

OPERATORS = (
    "import_scene.timbermesh",
    "export_scene.timbermesh",
    "export_scene.timbermesh_batch",
    "import_scene.unigine",
    "export_scene.unigine_mesh",
    "export_scene.unigine_anim",
)

TIMBERMESH_OPTIONS = {
    "import": "normals use_weld use_node_animation vertex_animation frame_start use_file_frame_rate "
    "use_existing_materials material_library",
    "export": "merging use_hidden use_instances use_modifiers tolerance clips clip_names animation_kind loop "
    "frame_rate compression use_strip_suffixes use_blender_names",
}
"""What presets of artists hold; none of it may get lost."""


def _table(operator):
    import bpy

    kind, _, name = operator.partition(".")
    return getattr(bpy.types, f"{kind.upper()}_OT_{name}").option_table


@pytest.mark.parametrize("kind", ["import", "export"])
def test_timbermesh_shows_its_own_options_and_no_others(clean_blender, kind):
    assert [option.name for option in _table(f"{kind}_scene.timbermesh")] == TIMBERMESH_OPTIONS[kind].split()


@pytest.mark.parametrize("operator", OPERATORS)
def test_an_option_stands_in_a_table_once_and_under_a_label_of_its_own(clean_blender, operator):
    for part in ("name", "label"):
        found = [getattr(option, part) for option in _table(operator)]
        assert len(found) == len(set(found))


@pytest.mark.parametrize(
    ("given", "fps", "text"),
    [(0.0, 0.0, "Automatic (29.97 fps)"), (0.0, 12.5, "Automatic (12.5 fps)"), (30.0, 0.0, "")],
)
def test_a_rate_of_0_says_which_it_stands_for(clean_blender, given, fps, text):
    from meshferry.operators.option_properties import draw_options

    bpy = clean_blender
    bpy.context.scene.render.fps, bpy.context.scene.render.fps_base = 30, 1.001
    rig = bpy.data.objects.new("Rig", bpy.data.armatures.new("Rig"))
    bpy.context.scene.collection.objects.link(rig)
    bpy.context.view_layer.objects.active = rig
    rig.animation_data_create().action = bpy.data.actions.new("Walk")
    rig.animation_data.action.meshferry.fps = fps
    table = _table("export_scene.unigine_anim")
    owner = SimpleNamespace(**{option.name: option.default for option in table})
    owner.frame_rate = given
    layout, body = MagicMock(), MagicMock()
    layout.panel.return_value = (MagicMock(), body)
    draw_options(layout, owner, table, "test")
    split = body.split.return_value
    said = [call.kwargs["text"] for call in split.label.call_args_list if "fps" in call.kwargs.get("text", "")]
    assert said == ([text] if text else [])


def test_what_unigine_files_lack_is_no_option_of_theirs(clean_blender):
    names = {option.name for option in _table("import_scene.unigine")}
    assert {"normals", "armature", "use_turn", "use_lod_objects", "assumed_frame_rate"} <= names
    assert not names & {"use_weld", "vertex_animation", "use_node_animation"}
    names = {option.name for option in _table("export_scene.unigine_mesh")}
    assert {"mesh_version", "mesh_files", "space", "use_shape_keys"} <= names
    assert not names & {"merging", "animation_kind"}
    names = {option.name for option in _table("export_scene.unigine_anim")}
    assert {"animation_version", "clips", "animated_bones", "space"} <= names
    # joints of the avatar move relative to each other
    assert "space" not in {option.name for option in _table("export_scene.second_life_anim")}
    assert not names & {"use_modifiers", "tolerance", "mesh_version", "mesh_files"}


def test_options_that_a_dialog_does_not_show_are_those_of_the_command_line(clean_blender):
    from meshferry.blender_data.importing.import_options import ImportOptions
    from meshferry.operators.option_properties import chosen_options

    options = chosen_options(ImportOptions, {"normals": "NONE", "not_of_this_table": 1}, ["normals"])
    assert options.normals == "NONE"
    assert options.use_weld is False
    assert options.given == {"normals"}


def _properties(bpy, operator):
    module, name = operator.split(".")
    return getattr(getattr(bpy.ops, module), name).get_rna_type().properties


@pytest.mark.parametrize("operator", OPERATORS)
def test_every_option_is_a_property_with_the_same_text_default_and_limits(clean_blender, operator):
    properties = _properties(clean_blender, operator)
    for option in _table(operator):
        found = properties[option.name]
        assert found.name == option.label
        assert found.description == option.description
        assert found.default == (pytest.approx(option.default) if found.type == "FLOAT" else option.default)
        if option.choices:
            choices = [(choice.identifier, choice.name, choice.description) for choice in found.enum_items]
            assert choices == [(choice.key, choice.label, choice.description) for choice in option.choices]
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
    assert {option.name for option in _table(operator)} <= kept
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
        self.labels += [text] if text else []

    def split(self, **_):
        return self


def _drawn(operator, **values):
    from meshferry.operators.option_properties import draw_options

    table = _table(operator)
    owner = SimpleNamespace(**{option.name: option.default for option in table} | values)
    layout = Layout()
    draw_options(layout, owner, table, "PREFIX")
    return layout


@pytest.mark.parametrize("operator", OPERATORS)
def test_all_options_are_drawn_once_in_sections_of_the_format(clean_blender, operator):
    layout = _drawn(operator, use_embedded_animation=True, animation_version="AN13")
    assert not layout.props
    assert all(name.startswith("PREFIX_") for name in layout.sections)
    drawn = [name for section in layout.sections.values() for name in section.props]
    assert sorted(drawn) == sorted(option.name for option in _table(operator))


def test_sections_stand_in_the_order_of_the_work(clean_blender):
    assert list(_drawn("export_scene.timbermesh").sections) == [
        f"PREFIX_{section}" for section in ("objects", "geometry", "animation", "file")
    ]
    assert list(_drawn("import_scene.timbermesh").sections) == [
        f"PREFIX_{section}" for section in ("geometry", "animation", "materials")
    ]
    assert list(_drawn("import_scene.unigine").sections) == [
        f"PREFIX_{section}" for section in ("objects", "geometry", "armature", "animation", "materials")
    ]


def test_options_without_effect_are_hidden(clean_blender):
    section = _drawn("export_scene.timbermesh", clips="NONE").sections["PREFIX_animation"]
    assert section.props == ["clips"]
    section = _drawn("import_scene.timbermesh", use_node_animation=False, vertex_animation="NONE").sections[
        "PREFIX_animation"
    ]
    assert section.props == ["use_node_animation", "vertex_animation"]
    layout = _drawn("import_scene.unigine", armature="NONE")
    assert layout.sections["PREFIX_armature"].props == ["armature"]
    assert "PREFIX_animation" not in layout.sections
    section = _drawn("import_scene.unigine", use_joint_animation=False).sections["PREFIX_animation"]
    assert section.props == ["use_joint_animation"]
    section = _drawn("export_scene.unigine_mesh").sections["PREFIX_animation"]
    assert section.props == ["use_embedded_animation"]


def test_a_note_says_where_caches_go(clean_blender):
    section = _drawn("import_scene.timbermesh", vertex_animation="CACHE").sections["PREFIX_animation"]
    assert any(".pc2" in label for label in section.labels)


def test_a_note_says_which_versions_hold_animations(clean_blender):
    def noted(version):
        layout = _drawn("export_scene.unigine_mesh", use_embedded_animation=True, mesh_version=version, frame_rate=24.0)
        return layout.sections["PREFIX_animation"].labels

    assert any("ms12" in label for label in noted("MS13"))
    assert noted("MS12") == ["Repeat Last Frame"]


def test_paths_are_absolute_and_without_quotes(clean_blender):
    from meshferry.blender_data.importing.import_options import MATERIAL_LIBRARY
    from meshferry.operators.option_properties import option_values

    owner = SimpleNamespace(material_library=' "/models/wood.blend" ')
    assert option_values(owner, [MATERIAL_LIBRARY]) == {"material_library": "/models/wood.blend"}


@pytest.mark.parametrize("family", ["unigine", "second_life", "timbermesh", "mesh_serializer"])
@pytest.mark.parametrize("scale", [1.0, 1.3, 2.0])
def test_an_import_dialog_fits_the_window(clean_blender, family, scale):
    from meshferry.operators import option_properties
    from meshferry.operators.files import import_base
    from meshferry.operators.format_operators import FAMILY_OPERATORS

    table = FAMILY_OPERATORS[family].importer.option_table
    owner = SimpleNamespace(**{option.name: option.default for option in table})
    areas = [SimpleNamespace(y=80, height=640), SimpleNamespace(y=26, height=54)]
    context = SimpleNamespace(
        window=SimpleNamespace(screen=SimpleNamespace(areas=areas)),
        preferences=SimpleNamespace(system=SimpleNamespace(ui_scale=scale)),
    )
    height = import_base.dialog_height(context)
    assert height == pytest.approx((720 - 26) / (20 * scale))
    free = height - import_base.OTHER_ROWS
    rows, sections = [], {}

    def panel(identifier, default_closed):
        sections[identifier] = default_closed
        rows.append(layout := MagicMock())
        return MagicMock(), None if default_closed else layout

    layout = SimpleNamespace(panel=panel)
    option_properties.draw_options(layout, owner, table, "X", height=free)
    drawn = sum(len(body.mock_calls) > 0 for body in rows)
    needed = option_properties.HEADER_HEIGHT * len(sections)
    for body, is_closed in zip(rows, sections.values(), strict=True):
        count = len(body.prop.call_args_list) + len(body.label.call_args_list) + len(body.split.call_args_list)
        needed += 0 if is_closed else option_properties.BODY_MARGIN + option_properties.ROW_HEIGHT * count
    assert needed <= max(free, option_properties.HEADER_HEIGHT * len(sections))
    assert drawn == sum(not is_closed for is_closed in sections.values())
    if scale == 2.0 and family != "mesh_serializer":  # which has few options
        assert any(sections.values())
    option_properties.draw_options(layout, owner, table, "Y")
    assert not any(is_closed for identifier, is_closed in sections.items() if identifier.startswith("Y"))

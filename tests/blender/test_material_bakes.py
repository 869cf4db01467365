"""Baked materials: pictures with the values that Blender shows, and a .blend file that stays as it is."""

from __future__ import annotations

import itertools
import sys
import types
from dataclasses import replace
from pathlib import Path
from typing import Any

import glb_oracle
import numpy as np
import pytest

pytestmark = pytest.mark.needs_bpy
bpy = pytest.importorskip("bpy", reason="Blender is absent")
sys.path.insert(0, str(Path(__file__).parent))
from meshferry.blender_data.exporting.baking import cycles_bakes  # noqa: E402
from meshferry.blender_data.exporting.baking.surface_shaders import Map  # noqa: E402
from meshferry.blender_data.exporting.models import material_bakes  # noqa: E402
from meshferry.io_formats.core.glb_materials import TextureUse  # noqa: E402
from meshferry.io_formats.encodings import image_files  # noqa: E402
from meshferry.io_formats.second_life.upload_set.format import SECOND_LIFE_UPLOAD  # noqa: E402
from meshferry.io_formats.unigine.scene.format import UNIGINE_SCENE  # noqa: E402
from test_material_losses import Panel, scene_of  # noqa: E402

SIZE = 64
STEP = 1.01 / 255
CENTRES = (np.arange(SIZE) + 0.5) / SIZE
U, V = np.meshgrid(CENTRES, CENTRES)


@pytest.fixture
def panel(clean_blender: Any) -> Panel:
    made = Panel()
    uvs = [(0, 0), (1, 0), (1, 1), (0, 1)]
    for layer in made.object.data.uv_layers:
        for corner, uv in zip(layer.data, uvs, strict=True):
            corner.uv = uv if layer.name == "First" else (uv[1], uv[0])
    return made


def exported(file_format: Any = UNIGINE_SCENE) -> Any:
    return scene_of(file_format, use_baked_materials=True, bake_size=SIZE + 1)


def shading(file_format: Any = UNIGINE_SCENE) -> Any:
    return exported(file_format).materials[0].shading


def pixels(image: Any) -> Any:
    """Return a picture as stored, 0 to 1, the lowest row first."""
    return image.texture.pixels()[::-1].astype(float) / 255


def linear(values: Any) -> Any:
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def srgb(values: Any) -> Any:
    return np.where(values <= 0.0031308, values * 12.92, 1.055 * np.maximum(values, 1e-9) ** (1 / 2.4) - 0.055)


def position(panel: Panel) -> tuple[Any, Any]:
    """Return outputs with x and y in the space of the object, which are u and v."""
    coordinates = panel.tree.nodes.new("ShaderNodeTexCoord")
    separated = panel.tree.nodes.new("ShaderNodeSeparateXYZ")
    panel.tree.links.new(coordinates.outputs["Object"], separated.inputs[0])
    return separated.outputs[0], separated.outputs[1]


def bump(panel: Panel, angle: Any) -> Any:
    """Return a Bump node's output, with waves of 2 cm."""
    made = panel.tree.nodes.new("ShaderNodeBump")
    made.inputs["Distance"].default_value, made.inputs["Strength"].default_value = 0.02, 1.0
    panel.tree.links.new(panel.node("Math", angle, operation="SINE"), made.inputs["Height"])
    return made.outputs[0]


def baked(panel: Panel, kind: Map, size: tuple[int, int] = (SIZE, SIZE)) -> Any:
    """Return the linear values of a map, and which pixels are covered."""
    bake = cycles_bakes.Bake(bpy.context, panel.material, "First", size)
    bake.add_faces(panel.object)
    found = bake.bake(kind, 1)
    cycles_bakes.remove(bake.blocks)
    return found


def test_values_are_linear_and_exact(panel: Panel) -> None:
    x, y = position(panel)
    panel.set(Base_Color=panel.node("CombineXYZ", x, y, 30.0))
    found, mask = baked(panel, Map.COLOR, (SIZE, SIZE // 2))
    u, v = np.meshgrid(CENTRES, (np.arange(SIZE // 2) + 0.5) / (SIZE // 2))
    assert mask.all() and np.abs(found - np.dstack([u, v, np.full_like(u, 30.0)])).max() < 1e-4


def test_metal_coat_and_constants(panel: Panel) -> None:
    """Metal does not darken colours, and a coat does not change the roughness below it."""
    x, y = position(panel)
    panel.set(Base_Color=panel.node("CombineXYZ", x, 0.25, 0.5), Metallic=1.0, Roughness=y, Coat_Weight=1.0)
    found = shading()
    want = srgb(np.dstack([U, np.full_like(U, 0.25), np.full_like(U, 0.5)]))
    assert np.abs(pixels(found.base_color.image)[..., :3] - want).max() < STEP
    assert np.abs(pixels(found.roughness.image)[..., 1] - V).max() < STEP
    assert found.metallic.image is None and found.metallic.value == 1.0


def test_a_chain_of_constants_becomes_a_value(panel: Panel) -> None:
    gamma = panel.node("Gamma", panel.node("RGB"), 2.0)
    panel.tree.nodes["Color" if "Color" in panel.tree.nodes else "RGB"].outputs[0].default_value = (0.5, 0.25, 1.0, 1.0)
    panel.set(Base_Color=gamma)
    found = shading().base_color
    assert found.image is None and found.value == pytest.approx((0.25, 0.0625, 1.0), abs=1e-5)


def test_transparent_parts_keep_their_colour(panel: Panel) -> None:
    x, y = position(panel)
    panel.set(Base_Color=(0.2, 0.4, 0.6, 1.0), Roughness=y)
    panel.show(panel.node("MixShader", x, panel.node("BsdfTransparent"), panel.shader.outputs[0]))
    panel.material.surface_render_method = "BLENDED"
    found = shading()
    picture = pixels(found.alpha.image)
    assert np.abs(picture[..., 3] - U).max() < STEP
    assert np.abs(picture[..., :3] - srgb(np.array([0.2, 0.4, 0.6]))).max() < STEP
    assert np.abs(pixels(found.roughness.image)[..., 1] - V).max() < STEP
    assert found.opacity.value == "blend"


def test_emission_is_scaled_to_its_maximum(panel: Panel) -> None:
    x, y = position(panel)
    panel.set(Emission_Color=panel.node("CombineXYZ", x, y, 0.5), Emission_Strength=8.0)
    found = shading()
    most = 8.0 * CENTRES[-1]
    assert found.emission_strength == pytest.approx(most, rel=1e-4)
    want = np.dstack([8.0 * U, 8.0 * V, np.full_like(U, 4.0)]) / most
    assert np.abs(pixels(found.emission.image)[..., :3] - srgb(want)).max() < STEP
    emission = panel.node("Emission", panel.node("CombineXYZ", x, y, 0.5), 1.0)
    panel.show(emission)
    found = exported(SECOND_LIFE_UPLOAD).materials[0]
    picture = glb_oracle.read_png(found.texture.data)[::-1] / 255
    most = CENTRES[-1]
    assert np.abs(picture[..., 0] - srgb(U / most)).max() < STEP and found.emission > 0.25
    assert found.gltf.values["pbrMetallicRoughness"]["baseColorFactor"][:3] == [0.0, 0.0, 0.0]
    assert set(found.gltf.textures) == {TextureUse.EMISSIVE}


def test_bump_becomes_normals(panel: Panel) -> None:
    x, _y = position(panel)
    panel.set(Normal=bump(panel, panel.node("Math", x, 4 * np.pi, operation="MULTIPLY")))
    values = baked(panel, Map.NORMAL)[0]
    assert np.abs(pixels(shading().normal.image)[..., :3] - values).max() < STEP
    found = values * 2 - 1
    slope = 0.02 * 4 * np.pi * np.cos(4 * np.pi * U)
    want = np.dstack([-slope, np.zeros_like(U), np.ones_like(U)])
    want /= np.linalg.norm(want, axis=2, keepdims=True)
    angle = np.degrees(np.arccos(np.clip((found * want).sum(axis=2) / np.linalg.norm(found, axis=2), -1, 1)))
    assert angle.mean() < 0.1


def test_shaders_in_groups_of_groups(panel: Panel) -> None:
    x, _y = position(panel)
    inner, outer = (bpy.data.node_groups.new(name, "ShaderNodeTree") for name in ("Inner", "Outer"))
    for tree in (inner, outer):
        tree.interface.new_socket("Rough", in_out="INPUT", socket_type="NodeSocketFloat")
        tree.interface.new_socket("BSDF", in_out="OUTPUT", socket_type="NodeSocketShader")
    nested = outer.nodes.new("ShaderNodeGroup")
    nested.node_tree = inner
    shader = inner.nodes.new("ShaderNodeBsdfPrincipled")
    for tree, entry, result in (
        (inner, shader.inputs["Roughness"], shader.outputs[0]), (outer, nested.inputs[0], nested.outputs[0])
    ):  # fmt: skip
        tree.links.new(tree.nodes.new("NodeGroupInput").outputs[0], entry)
        tree.links.new(result, tree.nodes.new("NodeGroupOutput").inputs[0])
    node = panel.tree.nodes.new("ShaderNodeGroup")
    node.node_tree = outer
    panel.tree.links.new(panel.node("Math", x, 0.5, operation="MULTIPLY"), node.inputs[0])
    panel.show(node.outputs[0])
    assert np.abs(pixels(shading().roughness.image)[..., 1] - U / 2).max() < STEP
    assert inner.users == outer.users == 1 and shader.type == "BSDF_PRINCIPLED"


@pytest.mark.parametrize("file_format", [SECOND_LIFE_UPLOAD, UNIGINE_SCENE])
def test_each_map_has_its_role(panel: Panel, file_format: Any) -> None:
    """Textures are read from the map for rendering, pictures lie on the exported one; the active one is neither."""
    maps = panel.object.data.uv_layers
    maps.new(name="Active")
    maps.active = maps["Active"]
    maps["Active"].uv.foreach_set("vector", [1, 0.5, 1, 1, 0.5, 1, 0.5, 0.5])
    maps["Second"].active_render = True
    uv = panel.tree.nodes.new("ShaderNodeTexCoord").outputs["UV"]
    panel.set(Base_Color=panel.node("Gamma", uv, 1.0))
    scene = exported(file_format)
    is_set = file_format is SECOND_LIFE_UPLOAD  # which exports the map for rendering
    if is_set:
        picture = glb_oracle.read_png(scene.materials[0].texture.data)[::-1] / 255
    else:
        image = scene.materials[0].shading.base_color.image
        assert image.mapping.uv_layer == 0
        picture = pixels(image)
    assert np.abs(picture[..., 0] - srgb(U if is_set else V)).max() < STEP


@pytest.mark.parametrize("way", ["driver", "key"])
def test_values_are_those_shown_at_the_frame(panel: Panel, way: str) -> None:
    """A driven value is that of frame 77; a keyed value that the user changed without a key stays as changed."""
    x, _y = position(panel)
    node = panel.tree.nodes.new("ShaderNodeMath")
    node.operation = "MULTIPLY"
    panel.tree.links.new(x, node.inputs[0])
    panel.set(Roughness=node.outputs[0])
    socket = node.inputs[1]
    if way == "driver":
        socket.driver_add("default_value").driver.expression = "frame / 100"
    else:
        for frame, value in ((1, 0.1), (100, 0.4)):
            socket.default_value = value
            socket.keyframe_insert("default_value", frame=frame)
    bpy.context.scene.frame_set(77)
    if way == "key":
        socket.default_value = 0.77
    assert np.abs(pixels(shading().roughness.image)[..., 1] - 0.77 * U).max() < STEP
    assert socket.default_value == pytest.approx(0.77) and bpy.context.scene.frame_current == 77


def test_sequences_show_the_picture_of_the_frame(panel: Panel, tmp_path: Path) -> None:
    for number, grey in enumerate((51, 204), 1):
        path = tmp_path / f"film{number:04}.png"
        path.write_bytes(image_files.encode_png(np.full((4, 4, 3), grey, np.uint8)))
    image = bpy.data.images.load(str(tmp_path / "film0001.png"))
    image.source, image.colorspace_settings.name = "SEQUENCE", "Non-Color"
    node = panel.tree.nodes.new("ShaderNodeTexImage")
    node.image, node.image_user.frame_duration, node.image_user.use_auto_refresh = image, 2, True
    bpy.context.scene.frame_set(2)
    panel.set(Roughness=panel.node("Math", node.outputs[0], 2.0, operation="POWER"))
    assert shading().roughness.value == pytest.approx(0.64, abs=1e-3)
    panel.put(panel.scaled(1.5, 1.5, 1.0), node.inputs["Vector"])  # one tile is not periodic
    panel.object.data.uv_layers["First"].uv.foreach_set("vector", [0, 0, 5, 0, 5, 5, 0, 5])
    assert any("cross the borders" in str(text) for text in exported().warnings)


@pytest.mark.parametrize("file_format", [SECOND_LIFE_UPLOAD, UNIGINE_SCENE])
def test_each_mesh_of_the_file_has_its_pictures(panel: Panel, file_format: Any) -> None:
    """31 equal objects share one set, a different mesh gets another; its faces have the name of the new material."""
    x, _y = position(panel)
    panel.set(Base_Color=panel.node("CombineXYZ", x, 0.0, 0.0))
    for number in range(29):
        copy = bpy.data.objects.new(f"Copy{number}", panel.object.data)
        copy.location.x = number
        bpy.context.scene.collection.objects.link(copy)
    data = panel.object.data.copy()
    data.transform(__import__("mathutils").Matrix.Scale(0.5, 4))
    for name, shown in (("Small", data), ("Zenith", panel.object.data)):
        bpy.context.scene.collection.objects.link(bpy.data.objects.new(name, shown))
    bpy.context.view_layer.objects.active = bpy.data.objects["Small"]  # the first of an upload set
    bpy.data.objects["Small"].select_set(True)
    scene = exported(file_format)
    scene.materials.sort(key=lambda material: material.name)
    assert [material.name for material in scene.materials] == ["Paint", "Paint_Small"]
    if file_format is SECOND_LIFE_UPLOAD:
        pictures = [glb_oracle.read_png(material.texture.data) for material in scene.materials]
        used = {node.name: node.mesh.materials for node in scene.nodes}
        assert used["Small"] == ["Paint_Small"] and used["Copy5"] == used["Panel"] == ["Paint"]
        small = [node.mesh.materials for node in scene.nodes if node.name.startswith("Small") and node.mesh.uvs]
        assert small == [["Paint_Small"]]
    else:
        pictures = [material.shading.base_color.image.texture.pixels() for material in scene.materials]
        used = [model.read().nodes[0].mesh.materials for model in scene.placement.models]
        assert used == [["Paint"], ["Paint_Small"]]
    for picture, scale in zip(pictures, (1.0, 0.5), strict=True):
        assert np.abs(picture[::-1, :, 0] / 255 - srgb(scale * U)).max() < STEP
    assert [str(text) for text in scene.warnings if text.code == "materials-baked"] == ["Baked 1 material: 2 pictures"]


def test_objects_with_their_own_materials(panel: Panel) -> None:
    """A material linked to an object has pictures, too; nodes of UNIGINE name them."""
    x, _y = position(panel)
    panel.set(Base_Color=panel.node("CombineXYZ", x, 0.0, 0.0))
    other = bpy.data.objects.new("Other", panel.object.data)
    bpy.context.scene.collection.objects.link(other)
    other.material_slots[0].link = "OBJECT"
    other.material_slots[0].material = panel.material.copy()
    scene = exported()
    assert [material.name for material in scene.materials] == ["Paint", "Paint.001"]
    assert all(material.shading.base_color.image is not None for material in scene.materials)


def state() -> dict[str, Any]:
    """Return all data blocks with their users, and what the user has chosen."""
    found: dict[str, Any] = {}
    for prop in bpy.data.bl_rna.properties:
        if prop.type == "COLLECTION":
            found[prop.identifier] = sorted((block.name, block.users) for block in getattr(bpy.data, prop.identifier))
    scene, layer = bpy.context.scene, bpy.context.view_layer
    handlers = [len(one) for name in dir(bpy.app.handlers) if isinstance(one := getattr(bpy.app.handlers, name), list)]
    found["chosen"] = (scene.name, scene.render.engine, layer.objects.active, [*layer.objects.selected], handlers)
    found["shown"] = (bpy.context.mode, scene.frame_current, scene.cycles.samples, bpy.data.is_dirty)
    return found


def test_everything_stays_after_success_esc_and_errors(panel: Panel, monkeypatch: pytest.MonkeyPatch) -> None:
    from meshferry.blender_data import export_options
    from meshferry.blender_data.exporting import exporter, object_selection

    x, y = position(panel)
    panel.set(Base_Color=panel.node("CombineXYZ", x, y, 0.0), Roughness=x, Alpha=y, Normal=bump(panel, x))
    panel.set(Emission_Color=panel.node("CombineXYZ", y, x, 0.0), Emission_Strength=1.0)
    panel.object.select_set(True)
    bpy.context.view_layer.objects.active = panel.object
    before = state()
    given = export_options.ExportOptions.of({"bake_size": SIZE})
    original = cycles_bakes.Bake.bake
    for file_format in (SECOND_LIFE_UPLOAD, UNIGINE_SCENE):
        source = object_selection.Source("SCENE")
        request = export_options.ExportRequest(bpy.context, source, given, "set", file_format.capabilities)
        scene = exporter.export_scene(request)
        assert "4 pictures" in str(next(text for text in scene.warnings if text.code == "materials-baked"))
        assert state() == before
        for stop in range(5):
            steps = exporter.export_steps(request)
            next(itertools.islice((step for step in steps if step.label == "Baking"), stop, None))
            steps.close()
            assert state() == before, stop
            done: list[Map] = []

            def fail(*given: Any, done: Any = done, stop: int = stop) -> Any:
                done.append(given)
                if len(done) > stop:
                    raise RuntimeError("no memory")
                return original(*given)

            with monkeypatch.context() as patch:
                patch.setattr(cycles_bakes.Bake, "bake", fail)
                scene = exporter.export_scene(request)
            codes = [text.code for text in scene.warnings]
            assert "material-not-baked" in codes and "material-nodes-left-out" in codes
            assert state() == before, stop


@pytest.mark.parametrize(
    ("build", "reason"),
    [
        (lambda p: p.object.data.uv_layers["First"].data[1].__setattr__("uv", (2.5, 0)), "cross the borders"),
        (lambda p: p.object.data.uv_layers["First"].data[1].__setattr__("uv", (float("nan"), 0)), "no valid UV map"),
        (lambda p: [p.object.data.uv_layers.remove(p.object.data.uv_layers[0]) for _ in range(2)], "no valid UV map"),
        (lambda p: p.set(Alpha=p.node("TexImage")), "missing or in tiles"),
        (lambda p: p.set(Alpha=p.node("TexEnvironment")), "missing or in tiles"),
        (lambda p: p.set(Alpha=p.node("LayerWeight")), "Layer Weight give other values"),
        (lambda p: p.show(p.node("BsdfGlass")), "not the nodes Glass BSDF"),
        (lambda p: p.object.data.uv_layers[0].uv.foreach_set("vector", [0.5] * 8), "have no area"),
        (
            lambda p: (p.set(Alpha=p.node("TexNoise")), p.object.modifiers.new("Bend", "SIMPLE_DEFORM")),
            "Noise Texture give other values",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_baked_is_named(panel: Panel, build: Any, reason: str) -> None:
    x, _y = position(panel)
    panel.set(Roughness=x)
    build(panel)
    said = [str(text) for text in exported(UNIGINE_SCENE).warnings]
    assert any("Material 'Paint'" in text and reason in text for text in said), said


def test_tiled_uvs(panel: Panel) -> None:
    """Faces in other tiles are moved, also on eight UV maps; images that repeat need no move and keep their size."""
    for number in range(6):
        panel.object.data.uv_layers.new(name=f"Further {number}")
    x, _y = position(panel)
    panel.set(Roughness=x)
    for layer in panel.object.data.uv_layers:
        for corner in layer.data:
            corner.uv = (corner.uv[0] + 3.0, corner.uv[1] - 2.0)
    assert np.abs(pixels(shading().roughness.image)[..., 1] - U).max() < STEP
    for corner in panel.object.data.uv_layers["First"].data:
        corner.uv *= 5.0
    panel.tree.links.remove(panel.shader.inputs["Roughness"].links[0])
    small = bpy.data.images.new("small", 4, 4)
    small.pixels.foreach_set(np.arange(64, dtype=np.float32) * 4 / 255)
    small.alpha_mode = "NONE"
    scaled = panel.image("small", panel.scaled(2.0, 3.0, 1.0))
    panel.set(Base_Color=panel.node("Invert", 1.0, scaled), Normal=panel.node("NormalMap", 1.0, scaled))
    image = shading().base_color.image
    assert (image.texture.width, image.mapping.scale) == (4, (2.0, 3.0))
    want = srgb(1 - linear(np.arange(64).reshape(4, 4, 4) * 4 / 255))[..., :3]
    assert np.abs(pixels(image)[..., :3] - want).max() < 2 * STEP


def test_price_before_an_export(panel: Panel, monkeypatch: pytest.MonkeyPatch) -> None:
    """The dialog counts as the check does; above 8 sets there is a question."""
    from meshferry.blender_data.export_options import ExportOptions
    from meshferry.blender_data.exporting.object_selection import Source
    from meshferry.blender_data.file_records import FileRecord
    from meshferry.operators.files import reexport
    from meshferry.operators.progress import _question_of_bakes

    x, _y = position(panel)
    for number in range(9):
        copy = bpy.data.objects.new(f"Copy{number}", panel.object.data.copy())
        bpy.context.scene.collection.objects.link(copy)

    def price(file_format: Any, *objects: Any, is_on: bool = True) -> tuple[int, str]:
        source = Source("OBJECTS", objects=objects or tuple(bpy.context.scene.objects))
        options = ExportOptions.of({"use_baked_materials": is_on})
        return material_bakes.bake_price(bpy.context, source, options, file_format.capabilities)

    for roughness, sets in ((0.5, 0), (x, 10)):
        panel.set(Roughness=roughness)
        for file_format in (SECOND_LIFE_UPLOAD, UNIGINE_SCENE):
            found = price(file_format)
            assert found[0] == sets and (not sets or found[1] == "1 material on 10 meshes: up to 10 pictures")
            assert price(file_format, is_on=False)[0] == 0
    assert price(UNIGINE_SCENE, panel.object) == (1, "1 material on 1 mesh: up to 1 picture")
    record = FileRecord(Path("set.dae"), SECOND_LIFE_UPLOAD.name, "", options={"use_baked_materials": True})
    monkeypatch.setattr(reexport, "_file", lambda *_given: (record, [], Source("SCENE")))
    again = reexport.EXPORT_SCENE_OT_meshferry_again.bakes(types.SimpleNamespace(file_format=""), bpy.context)
    assert again == price(SECOND_LIFE_UPLOAD) and again[0] == 10
    for sets, text in ((8, ""), (9, "Bake 1 material on 10 meshes: up to 10 pictures? This")):
        work = types.SimpleNamespace(bakes=lambda _context, sets=sets: (sets, found[1]))
        assert _question_of_bakes(work, bpy.context)[:53] == text


def test_checks_and_saves_bake_nothing(panel: Panel, monkeypatch: pytest.MonkeyPatch) -> None:
    from meshferry.blender_data import export_options
    from meshferry.blender_data.exporting import exporter, object_selection
    from meshferry.io_formats.core.errors import ExportError

    x, _y = position(panel)
    panel.set(Roughness=x)
    monkeypatch.setattr(material_bakes, "Bake", None)
    given, source = export_options.ExportOptions.of({}), object_selection.Source("SCENE")
    for file_format in (SECOND_LIFE_UPLOAD, UNIGINE_SCENE):
        can = file_format.capabilities
        request = export_options.ExportRequest(bpy.context, source, given, "set", can, baking="STATE")
        said = {text.code: str(text) for text in exporter.export_scene(request).warnings}
        assert said["materials-to-bake"] == "An export bakes 1 material on 1 mesh: up to 1 picture"
        assert "material-nodes-left-out" not in said and "color-of-nodes" not in said
        with pytest.raises(ExportError, match="choose Re-export"):
            exporter.export_scene(replace(request, baking="REFUSE"))


def test_filled_margins() -> None:
    from meshferry.blender_data.exporting.baking.baked_pictures import filled

    values = np.zeros((5, 8, 1), np.float32)
    mask = np.zeros((5, 8), bool)
    mask[1:3, 2:4] = True
    values[1:3, 2:4] = 7.0
    assert (filled(values, mask) == 7.0).all()
    assert (filled(values, np.zeros_like(mask)) == 0.0).all()


def test_muted_links_of_shaders_stay_muted(panel: Panel) -> None:
    x, _y = position(panel)
    panel.set(Base_Color=(1.0, 1.0, 1.0, 1.0), Roughness=x)
    panel.show(panel.node("MixShader", 0.5, panel.shader.outputs[0], panel.node("BsdfDiffuse", (0.0, 1.0, 0.0, 1.0))))
    panel.shader.outputs[0].links[0].is_muted = True
    assert baked(panel, Map.COLOR)[0][0, 0] == pytest.approx((0.0, 0.5, 0.0), abs=1e-5)


@pytest.mark.parametrize(("kind", "name"), [("OBJECT", "tone"), ("OBJECT", "shade"), ("GEOMETRY", "tint")])
def test_attribute_nodes_have_their_values(panel: Panel, kind: str, name: str) -> None:
    """Custom properties of the object and its data, and attributes of the mesh."""
    panel.object["tone"], panel.object.data["shade"] = 0.375, 0.375
    panel.object["material"], panel.object["group"] = panel.material, {"a": 1.0}
    panel.object.data.attributes.new("tint", "FLOAT", "FACE").data[0].value = 0.375
    node = panel.tree.nodes.new("ShaderNodeAttribute")
    node.attribute_type, node.attribute_name = kind, name
    panel.set(Roughness=panel.node("Math", node.outputs["Fac"], 2.0, operation="MULTIPLY"))
    assert shading().roughness.value == pytest.approx(0.75, abs=1e-6)


def test_sets_without_pbr_materials_get_diffuse_pictures_alone(panel: Panel) -> None:
    x, y = position(panel)
    panel.set(Roughness=x, Normal=bump(panel, y))
    for color, said in (((0.5, 0.25, 0.0, 1.0), []), (x, ["Baked 1 material: 1 picture"])):
        panel.set(Base_Color=color)
        scene = scene_of(SECOND_LIFE_UPLOAD, use_baked_materials=True, bake_size=SIZE, use_pbr_materials=False)
        assert [str(text) for text in scene.warnings if text.code == "materials-baked"] == said

"""What a file becomes in Blender: objects, meshes, materials, actions, caches.

Scenes are made here by hand and given to the importer; expectations are what was put in, Blender's
own evaluated data, or geometry.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.needs_bpy


def run(scene: Any, source_path: str = "", **options: Any) -> Any:
    import bpy
    from meshferry.blender_data.importing import import_options, importer

    return importer.import_scene(
        import_options.ImportRequest(bpy.context, scene, import_options.ImportOptions.of(options), source_path)
    )


def quad_mesh(**changes: Any) -> Any:
    """A unit square of two triangles over four points, split nowhere."""
    from meshferry.io_formats.core.scene import Layer, Mesh

    points = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], np.float32)
    mesh = Mesh(points, np.array([0, 1, 2, 0, 2, 3], np.int32), np.zeros(2, np.int32), ["Wood"])
    mesh.normal = Layer("normal", np.tile(np.float32([0, 0, 1]), (4, 1)))
    mesh.uvs = [Layer("uv0", points[:, :2].copy())]
    for name, value in changes.items():
        setattr(mesh, name, value)
    return mesh


def scene_of(*nodes: Any, clips: Any = ()) -> Any:
    from meshferry.io_formats.core.scene import Scene

    return Scene("thing", list(nodes), clips=list(clips))


def node(name: str = "Quad", mesh: Any = None, **changes: Any) -> Any:
    from meshferry.io_formats.core.scene import Node

    return Node(name, mesh=mesh, **changes)


def values(data: Any, field: str, width: int) -> np.ndarray:
    found = np.empty(len(data) * width, np.float32)
    data.foreach_get(field, found)
    return found.reshape(-1, width)


def test_one_collection_holds_the_tree() -> None:
    import bpy

    made = run(
        scene_of(
            node("Root", translation=(1, 2, 3), is_root=True),
            node("#Arm", parent=0, rotation=(math.cos(0.3), 0, math.sin(0.3), 0), scale=(-1, 2, 1)),
            node("Hand", quad_mesh(), parent=1, translation=(0, 0, 5)),
        )
    )
    bpy.context.view_layer.update()
    assert made.collection.name == "thing"
    assert made.collection.meshferry.from_file
    assert [obj.name for obj in made.collection.objects] == ["Root", "#Arm", "Hand"]
    root, arm, hand = made.objects
    assert root.meshferry.is_root and not arm.meshferry.is_root
    assert hand.parent is arm and arm.parent is root
    # Root moves by (1, 2, 3); the arm turns (0, 0, 5) by 0.6 about y.
    expected = (1 + 5 * math.sin(0.6), 2, 3 + 5 * math.cos(0.6))
    assert tuple(hand.matrix_world.translation) == pytest.approx(expected, abs=1e-5)


def test_names_blender_changes_are_remembered() -> None:
    long = "Ä" * 200
    made = run(scene_of(node("Same"), node("Same"), node(long)))
    from meshferry.blender_data import names

    assert [names.name_in_file(obj) for obj in made.objects] == ["Same", "Same", long]
    made.objects[1].name = "Renamed"
    assert names.name_in_file(made.objects[1]) == "Renamed"


@pytest.mark.parametrize("on_corners", [False, True])
def test_byte_colours_are_exact(on_corners: bool) -> None:
    from meshferry.io_formats.core.scene import Layer

    steps = np.arange(24, dtype=np.uint8).reshape(6, 4) * 10
    layer = Layer("color", steps, per_corner=True) if on_corners else Layer("color", steps[:4])
    made = run(scene_of(node(mesh=quad_mesh(colors=[layer]))))
    attribute = made.objects[0].data.color_attributes[0]
    assert attribute.data_type == "BYTE_COLOR"
    found = np.rint(values(attribute.data, "color_srgb", 4) * 255).astype(np.uint8)
    np.testing.assert_array_equal(found, layer.values)


def test_uv_and_winding() -> None:
    made = run(scene_of(node(mesh=quad_mesh())))
    mesh = made.objects[0].data
    assert tuple(mesh.polygons[0].normal) == (0, 0, 1)
    corners = np.array([mesh.vertices[loop.vertex_index].co[:2] for loop in mesh.loops], np.float32)
    np.testing.assert_array_equal(values(mesh.uv_layers[0].uv, "vector", 2), corners)


def split_quad() -> Any:
    """Two triangles that share an edge of coinciding vertices, with normals that differ across it."""
    from meshferry.io_formats.core.scene import Layer, Mesh

    points = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 0, 0], [1, 1, 0], [0, 1, 0]], np.float32)
    mesh = Mesh(points, np.arange(6, dtype=np.int32), np.zeros(2, np.int32), ["Wood"])
    tilt = np.float32([[0.6, 0, 0.8]] * 3 + [[-0.6, 0, 0.8]] * 3)
    mesh.normal = Layer("normal", tilt)
    mesh.uvs = [Layer("uv0", np.arange(12, dtype=np.float32).reshape(6, 2))]
    return mesh


@pytest.mark.parametrize("normals", ["EDITABLE", "EXACT"])
@pytest.mark.parametrize("use_weld", [False, True])
def test_weld_joins_places_and_keeps_corners(normals: str, use_weld: bool) -> None:
    made = run(scene_of(node(mesh=split_quad())), use_weld=use_weld, normals=normals)
    mesh = made.objects[0].data
    assert len(mesh.vertices) == (4 if use_weld else 6)
    np.testing.assert_array_equal(
        values(mesh.uv_layers[0].uv, "vector", 2), np.arange(12, dtype=np.float32).reshape(6, 2)
    )
    np.testing.assert_allclose(values(mesh.corner_normals, "vector", 3), split_quad().normal.values, atol=0.015)


@pytest.mark.parametrize("use_weld", [False, True])
def test_checksums_are_those_of_the_values_that_were_set(monkeypatch: pytest.MonkeyPatch, use_weld: bool) -> None:
    """Positions, corners and UVs are the most of a mesh; to read them from Blender would be the peak of the memory."""
    from meshferry.blender_data.mesh_data import checksums

    with monkeypatch.context() as without:
        without.setattr(checksums, "store_fingerprint", lambda _made: None)
        (made,) = run(scene_of(node(mesh=quad_mesh())), use_weld=use_weld).objects
    stored = json.loads(made.data.meshferry.fingerprint)
    assert stored.keys() == {"vertices", "faces", "UV map 'uv0'"}
    made.data.meshferry.fingerprint = ""
    checksums.store_fingerprint(made)
    read = json.loads(made.data.meshferry.fingerprint)
    assert stored == {label: read[label] for label in stored}


def test_no_normals_when_asked() -> None:
    made = run(scene_of(node(mesh=split_quad())), normals="NONE")
    assert not made.objects[0].data.has_custom_normals


def test_exact_normals_are_exact() -> None:
    made = run(scene_of(node(mesh=split_quad())), normals="EXACT")
    found = values(made.objects[0].data.corner_normals, "vector", 3)
    np.testing.assert_allclose(found, split_quad().normal.values, atol=1e-6)
    assert not made.warnings


def test_repeated_corners_go_and_twins_stay() -> None:
    from meshferry.io_formats.core.scene import Mesh

    points = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0]], np.float32)
    corners = np.array([0, 1, 2, 2, 1, 0, 0, 0, 1], np.int32)
    made = run(scene_of(node(mesh=Mesh(points, corners, np.zeros(3, np.int32), [""]))))
    assert len(made.objects[0].data.polygons) == 2
    assert ["1 triangle" in text for text in made.warnings] == [True]


def test_materials_are_reused_coloured_and_shown() -> None:
    import bpy
    from meshferry.io_formats.core.scene import Layer

    mine = bpy.data.materials.new("Wood")
    colors = [Layer("color", np.full((4, 4), 128, np.uint8))]
    made = run(scene_of(node(mesh=quad_mesh(materials=["Wood", "", "Paint"], colors=colors))))
    slots = list(made.objects[0].data.materials)
    assert slots[0] is mine and slots[1] is None and slots[2].name == "Paint"
    kinds = {found.bl_idname for found in slots[2].node_tree.nodes}
    assert "ShaderNodeVertexColor" in kinds
    again = run(scene_of(node(mesh=quad_mesh(materials=["Paint"]))), use_existing_materials=False)
    other = again.objects[0].data.materials[0]
    assert other is not slots[2] and other.meshferry.source_name == "Paint"
    assert tuple(other.diffuse_color) == tuple(slots[2].diffuse_color)


def test_materials_come_from_a_library(tmp_path: Path) -> None:
    import bpy
    from meshferry.io_formats.core.errors import MeshferryError

    bpy.data.materials.new("Wood").use_fake_user = True
    library = tmp_path / "library.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(library), check_existing=False)
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    made = run(scene_of(node(mesh=quad_mesh(materials=["Wood", "Other"]))), material_library=str(library))
    wood, other = made.objects[0].data.materials
    assert wood.library is not None and other.library is None
    with pytest.raises(MeshferryError, match=r"missing\.blend"):
        run(scene_of(node(mesh=quad_mesh())), material_library=str(tmp_path / "missing.blend"))


CUSTOM = {
    "heat": np.arange(4, dtype=np.float32).reshape(4, 1) / 3,
    "flow": np.arange(8, dtype=np.float32).reshape(4, 2) / 3,
    "push": np.arange(12, dtype=np.float32).reshape(4, 3) / 3,
    "mix": np.arange(16, dtype=np.float32).reshape(4, 4) * 9 - 7,
    "wide": np.arange(20, dtype=np.float32).reshape(4, 5),
    "flags": np.array([[0, 255], [1, 2], [3, 4], [128, 127]], np.uint8),
    "big": np.array([[2**32 - 1], [0], [2**31], [7]], np.uint32),
    "signed": np.array([[-5], [2**31 - 1], [-(2**31)], [0]], np.int32),
    "fine": np.array([[math.pi], [1e300], [-1e-300], [0.1]], np.float64),
}


@pytest.mark.parametrize("name", CUSTOM)
def test_custom_layers_come_back_in_their_own_type(name: str) -> None:
    from meshferry.io_formats.core.scene import Layer

    made = run(scene_of(node(mesh=quad_mesh(custom=[Layer(name, CUSTOM[name])]))))
    (layer,) = exported_mesh(made).custom
    assert layer.name == name and layer.values.dtype == CUSTOM[name].dtype
    np.testing.assert_array_equal(layer.values, CUSTOM[name])


RESERVED = [
    *("id", "material_index", "sharp_face", "sharp_edge", ".edge_verts", ".corner_vert", ".select_vert"),
    *("custom_normal", "crease_edge", "file_vertex", "file_normal", "file_color", "imported_normal"),
    *("Color", "uv0", "file 1: id", "attr", "attr.9", "attr.0", "attr.1", "attr", "velocity"),
    *("long " * 20, "long " * 20 + "end", "ä" * 40, "ä" * 40 + "b"),
]


@pytest.mark.parametrize(
    ("wanted", "kind"),
    [
        *(([name], kind) for name in RESERVED for kind in ("heat", "flags")),
        *((names, kind) for names in (RESERVED, RESERVED[::-1]) for kind in CUSTOM),
    ],
)
def test_reserved_and_equal_names_come_back(wanted: list[str], kind: str) -> None:
    from meshferry.io_formats.core.scene import Layer

    values = CUSTOM[kind]
    layers = [Layer(name, CUSTOM["heat"] if number % 2 else values) for number, name in enumerate(wanted)]
    made = run(scene_of(node(mesh=quad_mesh(custom=layers))))
    data = made.objects[0].data
    assert not data.validate() and len(data.polygons) == 2
    found = exported_mesh(made)
    np.testing.assert_array_equal(found.points, quad_mesh().points)
    assert [layer.name for layer in found.custom] == wanted
    for layer, other in zip(found.custom, layers, strict=True):
        np.testing.assert_array_equal(layer.values, other.values)


def exported_mesh(made: Any) -> Any:
    """Export the collection of an import to a scene; return its only mesh."""
    import bpy
    from meshferry.blender_data import export_options
    from meshferry.blender_data.exporting import exporter, object_selection
    from meshferry.io_formats.core.options import resolve
    from meshferry.io_formats.timbermesh.model.format import TIMBERMESH

    source = object_selection.Source("COLLECTION", made.collection)
    options = export_options.ExportOptions.of(resolve(export_options.EXPORT_OPTIONS))
    request = export_options.ExportRequest(bpy.context, source, options, "x", TIMBERMESH.capabilities)
    (mesh,) = [found.mesh for found in exporter.export_scene(request).nodes if found.mesh]
    return mesh


def test_a_linked_scene_is_refused(tmp_path: Path) -> None:
    import bpy
    from meshferry.io_formats.core.errors import MeshferryError

    path = tmp_path / "library.blend"
    bpy.data.libraries.write(str(path), {bpy.context.scene})
    with bpy.data.libraries.load(str(path), link=True) as (_, wanted):
        wanted.scenes = [bpy.context.scene.name]
    (linked,) = [scene for scene in bpy.data.scenes if scene.library]
    meshes = len(bpy.data.meshes)
    message = r"is linked from .*library\.blend"
    with bpy.context.temp_override(scene=linked), pytest.raises(MeshferryError, match=message):
        run(scene_of(node(mesh=quad_mesh())))
    assert len(bpy.data.meshes) == meshes


def moving_clip(name: str = "Default", fps: float = 24.0, frames: int = 5, target: int = 0) -> Any:
    from meshferry.io_formats.core.scene import Clip, TransformTrack

    where = np.zeros((frames, 3), np.float32)
    where[:, 0] = np.arange(frames)
    turn = np.zeros((frames, 4), np.float32)
    angle = np.arange(frames) * 0.2
    turn[:, 0], turn[:, 3] = np.cos(angle / 2), np.sin(angle / 2)
    track = TransformTrack(target, where, turn, np.ones((frames, 3), np.float32))
    return Clip(name, fps, frames, transforms=[track])


def at(frame: float) -> None:
    import bpy

    bpy.context.scene.frame_set(math.floor(frame), subframe=frame % 1)


@pytest.mark.parametrize(("fps", "base", "clip_fps"), [(24, 1.0, 24.0), (30, 1.001, 24.0), (24, 1.0, 25.0)])
def test_keys_keep_the_speed(fps: int, base: float, clip_fps: float) -> None:
    import bpy

    bpy.context.scene.render.fps, bpy.context.scene.render.fps_base = fps, base
    made = run(scene_of(node(mesh=quad_mesh()), clips=[moving_clip(fps=clip_fps)]), frame_start=10)
    obj = made.objects[0]
    assert (bpy.context.scene.render.fps, bpy.context.scene.render.fps_base) == (fps, pytest.approx(base))
    for number in range(5):
        at(10 + number * (fps / base) / clip_fps)
        assert obj.matrix_world.translation.x == pytest.approx(number, abs=1e-4)
        assert obj.matrix_world.to_euler().z == pytest.approx(number * 0.2, abs=1e-4)
    action = obj.animation_data.action
    assert (action.meshferry.clip_name, action.meshferry.frame_count) == ("Default", 5)
    assert action.meshferry.fps == pytest.approx(clip_fps)


def test_scene_rate_is_set_when_asked() -> None:
    import bpy

    clips = [moving_clip(fps=29.97, frames=40)]
    made = run(scene_of(node(), clips=clips), use_file_frame_rate=True, frame_start=3)
    scene = bpy.context.scene
    assert scene.render.fps / scene.render.fps_base == pytest.approx(29.97, rel=1e-5)
    assert (scene.frame_start, scene.frame_end) == (3, 42)
    at(13)
    assert made.objects[0].matrix_world.translation.x == pytest.approx(10, abs=1e-4)


def test_one_action_a_clip_and_further_clips_wait_in_the_nla() -> None:
    import bpy

    clips = [moving_clip(), moving_clip("Other", frames=9), moving_clip(target=1)]
    clips[0].transforms += clips.pop().transforms
    made = run(scene_of(node("A"), node("B"), clips=clips))
    first, second = made.objects
    assert {action.meshferry.clip_name for action in bpy.data.actions} == {"Default", "Other"}
    assert len(bpy.data.actions) == 2
    assert first.animation_data.action is second.animation_data.action
    assert first.animation_data.action.meshferry.clip_name == "Default"
    (track,) = first.animation_data.nla_tracks
    assert track.mute and track.strips[0].action.meshferry.clip_name == "Other"


def wave_clip(frames: int = 6) -> tuple[Any, np.ndarray]:
    from meshferry.io_formats.core.scene import Clip, VertexTrack

    points = np.repeat(quad_mesh().points[None], frames, axis=0)
    points[:, 1, 2] = np.arange(frames) * 0.5
    points[:, 2, 0] += np.sin(np.arange(frames))
    return Clip("Wave", 24.0, frames, vertices=[VertexTrack(0, points)]), points


@pytest.mark.parametrize("way", ["SHAPE_KEYS", "CACHE"])
@pytest.mark.parametrize(("scene_fps", "stretched"), [(24, 100), (60, 100), (24, 200), (24, 50)])
def test_vertex_animation_plays(way: str, scene_fps: int, stretched: int, tmp_path: Path) -> None:
    import bpy

    bpy.context.scene.render.fps = scene_fps
    bpy.context.scene.render.frame_map_new = stretched
    clip, points = wave_clip()
    scene = scene_of(node(mesh=quad_mesh()), clips=[clip])
    made = run(scene, str(tmp_path / "a.timbermesh"), vertex_animation=way, frame_start=5)
    step = scene_fps / 24
    for moment in (0, 1, 2.5, 5):
        at(5 + moment * step)
        evaluated = made.objects[0].evaluated_get(bpy.context.evaluated_depsgraph_get())
        found = values(evaluated.data.vertices, "co", 3)
        low, high = math.floor(moment), math.ceil(moment)
        between = points[low] + (points[high] - points[low]) * (moment - low)
        np.testing.assert_allclose(found, between, atol=1e-5)
    assert len(list(tmp_path.glob("*.pc2"))) == (way == "CACHE")
    normals_kind = made.objects[0].data.attributes.get("custom_normal")
    assert normals_kind is None or normals_kind.data_type != "FLOAT_VECTOR"  # free normals would stay put


def test_vertex_animation_can_be_left_out() -> None:
    clip, _ = wave_clip()
    made = run(scene_of(node(mesh=quad_mesh()), clips=[clip]), vertex_animation="NONE", use_node_animation=False)
    assert made.objects[0].data.shape_keys is None


@pytest.mark.parametrize("existed", [False, True])
def test_a_failure_leaves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, existed: bool) -> None:
    import bpy
    from meshferry.blender_data.importing import actions, importer

    clip, _ = wave_clip()
    clip.transforms = moving_clip(frames=6).transforms
    kinds = [p.identifier for p in bpy.data.bl_rna.properties if p.type == "COLLECTION"]
    before = {kind: len(getattr(bpy.data, kind)) for kind in kinds}
    cache = tmp_path / "a.timbermesh.Quad-Wave.pc2"
    if existed:
        cache.write_bytes(b"old")

    def fail(*_: Any) -> None:
        raise RuntimeError("halfway")

    monkeypatch.setattr(actions.ClipActions, "attach", fail)
    scene = scene_of(node(mesh=quad_mesh()), clips=[clip])
    for way in ("SHAPE_KEYS", "CACHE"):
        with pytest.raises(RuntimeError, match="halfway"):
            run(scene, str(tmp_path / "a.timbermesh"), vertex_animation=way)
        assert {kind: len(getattr(bpy.data, kind)) for kind in kinds} == before
    assert cache.exists() == existed
    assert importer  # the module under test


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_a_cache_is_not_written_through_a_planted_link(tmp_path: Path) -> None:
    from meshferry.io_formats.core.errors import ExportError

    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.timbermesh.Quad-Wave.pc2").symlink_to(tmp_path / "victim")
    scene = scene_of(node(mesh=quad_mesh()), clips=[wave_clip()[0]])
    with pytest.raises(ExportError, match="is a link that leads out of"):
        run(scene, str(tmp_path / "in" / "a.timbermesh"), vertex_animation="CACHE")
    assert not (tmp_path / "victim").exists()


def test_steady_colours() -> None:
    from meshferry.blender_data.importing.materials import _COLORS, _SUBSTANCES, steady_color

    for word, color in (_COLORS | _SUBSTANCES).items():
        assert steady_color(f"Big_{word}.001") == color
        assert 0 < min(color) <= max(color) < 1, word
    assert steady_color("BaseWood_DarkBrown.Folktails") == steady_color("Plaster_DarkBrown.X")
    assert steady_color("BaseWood_White.Folktails")[0] > 0.5
    assert steady_color("Unheard") == steady_color("Unheard") != steady_color("Unheard2")
    assert steady_color("Mattered") != steady_color("Red"), "a colour is a word of its own"
    assert steady_color("Greenhouse_Wood") == steady_color("Wood"), "of these, the substance is one"

"""Timbermesh colours that are not multiples of 1/255: float colours in Blender, the same values in the file again."""

import numpy as np
import pytest
import timbermesh_oracle as oracle
from round_trips import exported
from test_faithful import FAMILIES, round_trip

pytestmark = pytest.mark.needs_bpy

POINTS = 3000
TIMBERMESH_FILES = FAMILIES["timbermesh"]


def write_colored(path, colors):
    """Write loose triangles whose vertices have these colours."""
    from meshferry.io_formats.core.scene import Layer, Mesh, Node, Scene
    from meshferry.io_formats.timbermesh.model import codec
    from meshferry.io_formats.timbermesh.model.format import TIMBERMESH

    points = np.random.default_rng(1).permutation(3 * POINTS).reshape(-1, 3).astype(np.float32) / 64
    normals = np.tile(np.float32([0, 0, 1]), (POINTS, 1))
    mesh = Mesh(
        points,
        np.arange(POINTS, dtype=np.int32),
        np.zeros(POINTS // 3, np.int32),
        ["leaf"],
        Layer("normal", normals),
        colors=[Layer("color", np.zeros((POINTS, 4), np.uint8))],
    )
    document = TIMBERMESH.from_scene(Scene("leaf", [Node("leaf", mesh=mesh)]))
    (node,) = document.nodes
    properties = node.properties
    (at,) = [at for at, one in enumerate(properties) if one.name == "color"]
    properties[at] = codec.VertexProperty.of("color", colors)
    path.write_bytes(TIMBERMESH.write(document))
    return path


def colors_by_place(data):
    (node,) = oracle.parse(data).nodes
    values = {one.name: np.frombuffer(one.data, "<f4") for one in node.vertexProperties}
    rows = zip(values["position"].reshape(-1, 3).tolist(), values["color"].reshape(-1, 4).tolist(), strict=True)
    return {tuple(place): color for place, color in rows}


def any_colors():
    """Return colours of all sizes and signs."""
    numbers = np.random.default_rng(2)
    colors = numbers.uniform(0, 1, (POINTS, 4))
    colors[1000:2000] = np.exp(numbers.uniform(-12, 2, (1000, 4)))
    colors[2000:2500] = numbers.uniform(-3, 3, (500, 4))
    colors[2500:2510] = (0.04045, -0.0001, 1.5, 2)
    return colors.astype(np.float32)


@pytest.mark.parametrize("way", TIMBERMESH_FILES.ways)
def test_float_colors_come_back_exactly(tmp_path, way):
    import bpy

    path = write_colored(tmp_path / "leaf.timbermesh", any_colors())
    data, result = round_trip(TIMBERMESH_FILES, path.read_bytes(), way, "leaf")
    assert not [text for text in result.warnings if "colour" in text]
    (attribute,) = bpy.data.meshes["leaf"].color_attributes
    assert attribute.data_type == "FLOAT_COLOR"
    assert colors_by_place(data) == colors_by_place(path.read_bytes())


def test_multiples_of_a_255th_stay_bytes(tmp_path):
    import bpy

    colors = np.random.default_rng(3).integers(0, 256, (POINTS, 4)).astype(np.float32) / np.float32(255)
    path = write_colored(tmp_path / "leaf.timbermesh", colors)
    data, _ = round_trip(TIMBERMESH_FILES, path.read_bytes(), "exact", "leaf")
    (attribute,) = bpy.data.meshes["leaf"].color_attributes
    assert attribute.data_type == "BYTE_COLOR"
    assert colors_by_place(data) == colors_by_place(path.read_bytes())


def test_a_color_that_is_changed_is_written(tmp_path):
    import bpy
    from meshferry.io_formats.timbermesh.model.format import TIMBERMESH

    path = write_colored(tmp_path / "leaf.timbermesh", any_colors())
    round_trip(TIMBERMESH_FILES, path.read_bytes(), "exact", "leaf")
    mesh = bpy.data.meshes["leaf"]
    values = np.empty(4 * POINTS, np.float32)
    mesh.color_attributes[0].data.foreach_get("color", values)
    values[::8] = 0.25  # red of every other vertex
    mesh.color_attributes[0].data.foreach_set("color", values)
    mesh.update()
    data, _ = exported(TIMBERMESH, *bpy.context.scene.objects)
    found, before = colors_by_place(data), colors_by_place(path.read_bytes())
    changed = [place for place in before if found[place] != before[place]]
    assert len(changed) == POINTS // 2
    for place in changed:
        assert found[place] == [pytest.approx(1.055 * 0.25 ** (1 / 2.4) - 0.055, rel=1e-6), *before[place][1:]]

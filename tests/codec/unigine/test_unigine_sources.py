"""Meshes from FBX files: axes and units, which object is which runtime, and its surfaces, without Blender."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from meshferry.io_formats import api
from meshferry.io_formats.core.addon_files import SourceObject
from meshferry.io_formats.core.errors import FormatError
from meshferry.io_formats.core.placement import PlacedModel
from meshferry.io_formats.core.scene import Layer, Mesh
from meshferry.io_formats.encodings.fbx_files import BINARY_MAGIC, read_head
from meshferry.io_formats.geometry.triangles import part_of_slots, with_polygons
from meshferry.io_formats.projects import Projects
from meshferry.io_formats.unigine.mesh import checks
from meshferry.io_formats.unigine.mesh.document import MeshFile
from meshferry.io_formats.unigine.mesh.format import WriteOptions
from unigine_projects import asset_meta, guid, write_project
from unigine_scene_bytes import mesh as placed
from unigine_scene_bytes import nodes

AXES = ("UpAxis", "UpAxisSign", "FrontAxis", "FrontAxisSign", "CoordAxis", "CoordAxisSign")
Y_UP = (1, 1, 2, 1, 0, 1)
Z_UP = (2, 1, 1, -1, 0, 1)
Z_UP_BACK = (2, 1, 1, 1, 0, -1)
POINT = np.array([1.0, 2.0, 3.0])
MESH, FBX = guid(7), guid(8)


def string(text: str) -> bytes:
    data = text.encode()
    return b"S" + struct.pack("<I", len(data)) + data


def binary_fbx(axes: Sequence[int] = Y_UP, unit: float = 100.0, names: Sequence[str] = ()) -> bytes:
    """Return what is read of a binary file: properties and names."""
    numbers = [
        string(name) + string("int") + string("Integer") + string("") + b"I" + struct.pack("<i", value)
        for name, value in zip(AXES, axes, strict=True)
    ]
    numbers.append(
        string("UnitScaleFactor") + string("double") + string("Number") + string("") + struct.pack("<cd", b"D", unit)
    )
    objects = [b"L" + struct.pack("<q", 1) + string(f"{name}\0\1Model") + string("Mesh") for name in names]
    return BINARY_MAGIC + b"\x1a\0" + struct.pack("<I", 7400) + b"".join(numbers + objects)


def text_fbx(axes: Sequence[int] = Y_UP, unit: float = 100.0, names: Sequence[str] = ()) -> bytes:
    lines = [f'P: "{name}", "int", "Integer", "",{value}' for name, value in zip(AXES, axes, strict=True)]
    lines += [
        f'Property: "UnitScaleFactor", "double", "",{unit}',
        *(f'Model: 1, "Model::{name}", "Mesh" {{' for name in names),
    ]
    return ("; FBX 7.4.0 project file\n" + "\n".join(lines)).encode()


@pytest.mark.parametrize("write", [binary_fbx, text_fbx])
@pytest.mark.parametrize(("axes", "turned"), [(Y_UP, (-1, 3, 2)), (Z_UP, (-1, -2, 3)), (Z_UP_BACK, (1, 2, 3))])
@pytest.mark.parametrize(
    ("version", "scale", "unit", "front", "factor"),
    [
        ("2.19.0.3", "1", 100.0, "default", 1.0),
        ("2.11.0.0", "30", 1.0, "0", 0.3),
        ("2.9.0.0", "0.1", 1.0, "0", 0.1),
        ("2.19.0.3", "1", 100.0, "4", 1.0),
        ("2.19.0.3", "nan", 0.0, "3", 0.01),
    ],
)
def test_axes_and_units_are_those_of_the_engine(
    tmp_path: Path,
    write: object,
    axes: tuple[int, ...],
    turned: tuple[float, ...],
    version: str,
    scale: str,
    unit: float,
    front: str,
    factor: float,
) -> None:
    data = write(axes, unit, ["Box"])  # type: ignore[operator]
    model = model_of(tmp_path, "box.mesh", [box("Box")], data=data, version=version, scale=scale, front_axis=front)
    expected = np.array(turned) * (np.array([-1, -1, 1]) if front == "4" else 1)
    assert read(model).points[0] == pytest.approx(factor * expected, rel=1e-6)


def test_heads_of_broken_files_are_read_or_refused() -> None:
    data = binary_fbx(Z_UP, 2.5, ["Куб", "a"])
    assert read_head(data).names == ["Куб", "a"] and read_head(data).unit == 2.5
    for end in range(len(BINARY_MAGIC), len(data)):
        assert abs(np.linalg.det(read_head(data[:end]).to_blender)) == pytest.approx(1)
    with pytest.raises(FormatError, match="not that of an FBX file"):
        read_head(b"solid box")


def box(name: str, mesh_name: str = "", materials: Sequence[str] = ("red", "blue"), **more: object) -> SourceObject:
    """Return an object of a quad with the second material and a triangle with the first."""
    points = np.array([POINT, [2, 0, 0], [2, 2, 0], [0, 2, 0]], np.float32)
    corners = np.array([0, 1, 2, 0, 2, 3, 0, 2, 3], np.int32)
    normal = Layer("normal", np.tile(np.float32([0, 0, 1]), (9, 1)), per_corner=True)
    uvs = [Layer("first", 2 * np.column_stack((corners, corners)).astype(np.float32), per_corner=True)]
    index = np.array([1, 1, 0] if len(materials) > 1 else [0, 0, 0], np.int32)
    mesh = Mesh(points, corners, index, list(materials), normal, uvs=uvs, polygon_sizes=np.array([4, 3], np.int32))
    return SourceObject(name, mesh_name or name, mesh, **{"world": np.identity(4), **more})  # type: ignore[arg-type]


def model_of(
    folder: Path,
    alias: str,
    objects: Sequence[SourceObject],
    surfaces: Sequence[str] = (),
    *,
    data: bytes = b"",
    version: str = "2.19.0.3",
    in_scene: Sequence[str] = (),
    **settings: str,
) -> PlacedModel:
    """Return the model of a missing mesh whose FBX file has these objects."""
    names = [obj.name for obj in objects]
    lightmaps = json.dumps({f"guid://{MESH}": {name: {} for name in surfaces}} if surfaces else {})
    settings["lightmaps"] = lightmaps.replace('"', "&quot;")
    meta = asset_meta(FBX, "fbx", {guid(9): "a.node", MESH: alias}, **settings).replace("2.20.0.0", version)
    node = nodes(placed(f"guid://{MESH}", "n", [f'name="{name}"' for name in in_scene]))
    files = {"a.fbx": data or binary_fbx(names=names), "a.fbx.meta": meta, "a.node": node}
    placement = api.read_scene(write_project(folder, files) / "a.node", projects=Projects()).placement
    assert placement is not None
    (model,) = placement.models
    assert model.source is not None
    model.source.names()
    model.source.objects = list(objects)
    return model


def read(model: PlacedModel) -> Mesh:
    (node,) = model.read().nodes
    assert node.mesh is not None
    return node.mesh


def first_x(mesh: Mesh, scale: float = -1.0) -> float:
    return float(mesh.points[0, 0]) * scale


@pytest.mark.parametrize(
    ("alias", "names", "wanted"),
    [
        ("kub.mesh", [("Kub", "x"), ("x", "Kub")], 1),  # meshes before objects
        ("kub.mesh", [("a", "Mesh"), ("KUB", "Mesh.001")], 1),
        ("Куб.003.mesh", [("a", "Куб"), ("b", "Куб.003")], 1),
        ("a_b.mesh", [("x", "a"), ("y", "A:B")], 1),
        ("kub.mesh", [("x", "y"), ("z", "Kub.001")], 1),  # a name that Blender had to change
        (f"{'Д' * 40}.mesh", [("x", "y"), ("z", "Д" * 31)], 1),  # or to cut
    ],
)
def test_a_runtime_is_found_by_its_alias(
    tmp_path: Path, alias: str, names: Sequence[tuple[str, str]], wanted: int
) -> None:
    objects = [box(*pair) for pair in names]
    objects[wanted].mesh.points[0, 0] = 42
    assert first_x(read(model_of(tmp_path, alias, objects))) == pytest.approx(42)


def test_of_objects_of_one_name_surfaces_decide(tmp_path: Path) -> None:
    objects = [box("a", "Kub"), box("b", "Kub", ("Wood", "iron"))]
    assert [one.name for one in read(model_of(tmp_path, "kub.mesh", objects, ["iron", "wood"])).surfaces] == [
        "iron",
        "wood",
    ]


@pytest.mark.parametrize(
    ("materials", "stated", "in_scene", "names", "quad"),
    [
        (("red", "blue"), (), (), ["blue", "red"], 0),  # the order of the first faces
        (("red", "blue"), ("RED", "blue"), ("blue", "red"), ["RED", "blue"], 1),
        (("red", "blue"), (), ("red", "blue"), ["red", "blue"], 1),
        (("red", "blue.001"), ("red", "blue"), (), ["red", "blue"], 1),
        (("red", "blue"), ("x", "y"), (), ["x", "y"], 0),  # as many others
        (("red", "blue"), ("red", "gone", "more"), (), ["red", "blue"], 1),
        ((), (), (), ["surface_0"], 0),
        (("",), ("surface_0",), (), ["surface_0"], 0),
        (("same", "same"), ("same",), (), ["same"], 0),
    ],
)
def test_surfaces_have_the_names_and_the_order_of_the_runtime(
    tmp_path: Path,
    materials: tuple[str, ...],
    stated: Sequence[str],
    in_scene: Sequence[str],
    names: list[str],
    quad: int,
) -> None:
    mesh = read(model_of(tmp_path, "a.mesh", [box("A", materials=materials)], stated, in_scene=in_scene))
    assert [surface.name for surface in mesh.surfaces] == mesh.materials == names
    assert mesh.material_index[0] == quad
    _, sizes = with_polygons(mesh)
    assert sizes is not None and sizes.tolist() == [4, 3]
    if len(names) > 1:
        assert (part := with_polygons(part_of_slots(mesh, [quad]))[1]) is not None and part.tolist() == [4]
    assert [layer.name for layer in mesh.uvs] == ["UV0"]


LODS = {"lods_mode": "by_postfix", "lods": "_lod_0,-1e+09,3,0;_lod_1,3,9,0;_LOD_2,9,inf,0"}
OLD_LODS = {"combine_by_lods": "1", "lods": "_lod_0,-1e+9,_lod_1,3"}


@pytest.mark.parametrize("settings", [LODS, OLD_LODS])
def test_levels_become_one_mesh(tmp_path: Path, settings: Mapping[str, str]) -> None:
    objects = [box("Tree_LOD_1", materials=("Leaf",)), box("Tree_lod_0", materials=("Leaf",)), box("other")]
    mesh = read(model_of(tmp_path, "tree.mesh", objects, **settings))
    assert mesh.materials == ["Leaf_lod_0", "Leaf_lod_1"] and mesh.material_index.tolist() == [0, 0, 0, 1, 1, 1]
    lone = read(model_of(tmp_path, "tree_lod_0.mesh", objects[1:], **settings))
    assert lone.materials == ["Leaf"]


@pytest.mark.parametrize(
    ("merges", "names", "index"),
    [("0", ["B_blue", "B_red", "A_blue", "A_red"], [1, 0, 2, 3]), ("1", ["red", "blue"], [0, 1, 1, 0])],
)
def test_merged_meshes_are_in_the_order_of_the_file(
    tmp_path: Path, merges: str, names: list[str], index: list[int]
) -> None:
    mirrored = np.diag([-2.0, 2, 2, 1])
    mirrored[0, 3] = 5
    objects = [box("A"), box("B", world=mirrored), box("skinned", is_skinned=True)]
    data = binary_fbx(names=["B", "A", "skinned"])
    settings = {"merge_static_meshes": "1", "merge_surfaces_by_materials": merges, "scale": "10"}
    mesh = read(model_of(tmp_path, "a.mesh", objects, data=data, **settings))
    shown, sizes = with_polygons(mesh)
    assert mesh.materials == names and shown.material_index.tolist() == index
    assert mesh.points[0] == pytest.approx([-10 * (5 - 2), -10 * 4, 10 * 6])
    # Mirrored polygons are reversed, with their UVs, and the normals still point up.
    assert sizes is not None and sizes.tolist() == [3, 4, 4, 3]
    assert shown.corner_point[:7].tolist() == [0, 3, 2, 0, 3, 2, 1]
    assert shown.uvs[0].values[:7, 0].tolist() == [0, 6, 4, 0, 6, 4, 2]
    assert mesh.normal is not None and mesh.normal.values == pytest.approx(np.tile([0, 0, 1], (18, 1)))


def test_skinned_and_unknown_meshes_are_left_out(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"a\.fbx/a: The mesh is skinned"):
        read(model_of(tmp_path, "a.mesh", [box("a", is_skinned=True)]))
    with pytest.raises(FormatError, match=r"a\.fbx/b: The FBX file has no such mesh"):
        read(model_of(tmp_path, "b.mesh", [box("a")]))


def test_only_files_of_its_own_are_replaced(tmp_path: Path) -> None:
    there, other, runtime = tmp_path / "own.mesh", tmp_path / "other.mesh", tmp_path / ".runtimes" / "ab" / "x.mesh"
    for path in (there, other):
        path.touch()
    for own, refused in ((frozenset({str(there)}), {other, runtime}), (None, set())):
        document = MeshFile("ms13", own_files=own)
        paths = (there, other, runtime, tmp_path / "new.mesh")
        found = {path: checks.check_in_context(document, WriteOptions(), path) for path in paths}
        assert {path for path in paths if found[path]} == refused
        assert {message.code for messages in found.values() for message in messages} <= {"source-replaces-mesh"}

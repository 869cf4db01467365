"""Collada files like those of creators, written without the help of an exporter.

They are in metres with Z up. The static one has a ``<polylist>`` of triangles, as Blender 2.79 writes it, with a normal
for each point and a UV for each corner. The rigged one has ``<triangles>`` and a skin with four weights a vertex on
joints of the avatar.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from . import models

JOINTS = 60
_WEIGHTS = 4
_HEAD = """<?xml version="1.0" encoding="utf-8"?>
<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
<asset><contributor><authoring_tool>Blender 2.79.0</authoring_tool></contributor>
<unit name="meter" meter="1"/><up_axis>Z_UP</up_axis></asset>
<library_effects><effect id="Clay-effect"><profile_COMMON><technique sid="common"><lambert>
<diffuse><color sid="diffuse">0.64 0.5 0.4 1</color></diffuse></lambert></technique></profile_COMMON></effect>
</library_effects>
<library_materials><material id="Clay-material" name="Clay"><instance_effect url="#Clay-effect"/></material>
</library_materials>
"""
_BIND = """<bind_material><technique_common><instance_material symbol="Clay-material" target="#Clay-material"/>
</technique_common></bind_material>"""
_INPUTS = """<input semantic="VERTEX" source="#Model-vertices" offset="0"/>
<input semantic="NORMAL" source="#Model-normals" offset="1"/>
<input semantic="TEXCOORD" source="#Model-uvs" offset="2" set="0"/>"""


def write_static(path: Path, triangles: int) -> None:
    """Write a model without bones."""
    grid = models.grid_for(triangles)
    counts = f"<vcount>{_numbers(np.full(grid.triangles, 3))}</vcount>"
    node = f'<node id="Model" name="Model"><instance_geometry url="#Model-mesh">{_BIND}</instance_geometry></node>'
    with path.open("w", encoding="utf-8") as file:
        file.write(_HEAD + _geometry(grid, "polylist", counts, 1.0) + _scene(node))


def write_rigged(path: Path, triangles: int) -> None:
    """Write a model on joints of the standard avatar."""
    from meshferry.io_formats.second_life.avatar import joints as avatar_joints

    table = avatar_joints.table()
    names = [name for name, joint in table.items() if joint.is_bone][:JOINTS]
    heads = np.array([avatar_joints.rest_matrices()[name][:3, 3] for name in names])
    grid = models.grid_for(triangles)
    skin = _skin(names, heads, grid.points)
    body = (
        f'<node id="Model" name="Model"><instance_controller url="#Model-skin"><skeleton>#{names[0]}</skeleton>'
        f"{_BIND}</instance_controller></node>"
    )
    parents = {name: table[name].parent for name in names}
    positions = {name: table[name].position for name in names}
    joints = "".join(_joint(name, parents, positions) for name in names if parents[name] not in names)
    with path.open("w", encoding="utf-8") as file:
        file.write(_HEAD + _geometry(grid, "triangles", "", 0.05) + skin + _scene(joints + body))


def _geometry(grid: models.Grid, kind: str, counts: str, scale: float) -> str:
    points, normals, uvs, corners = models.surface_arrays(grid)
    order = np.stack([corners, corners, np.arange(len(corners))], axis=1)
    return (
        '<library_geometries><geometry id="Model-mesh" name="Model"><mesh>'
        + _source("Model-positions", points * scale, "XYZ")
        + _source("Model-normals", normals, "XYZ")
        + _source("Model-uvs", uvs, "ST")
        + '<vertices id="Model-vertices"><input semantic="POSITION" source="#Model-positions"/></vertices>'
        + f'<{kind} material="Clay-material" count="{grid.triangles}">{_INPUTS}{counts}'
        + f"<p>{_numbers(order)}</p></{kind}>"
        + "</mesh></geometry></library_geometries>\n"
    )


def _skin(names: list[str], heads: npt.NDArray[np.float64], count: int) -> str:
    inverse = np.tile(np.identity(4), (len(names), 1, 1))
    inverse[:, :3, 3] = -heads
    joints = (np.arange(count)[:, None] * 7919 + np.arange(_WEIGHTS)) % len(names)
    shares = np.random.default_rng(0).dirichlet((4.0, 3.0, 2.0, 1.0), count)
    pairs = np.stack([joints, np.arange(count * _WEIGHTS).reshape(count, _WEIGHTS)], axis=2)
    return (
        '<library_controllers><controller id="Model-skin" name="Avatar"><skin source="#Model-mesh">'
        f"<bind_shape_matrix>{_numbers(np.identity(4))}</bind_shape_matrix>"
        f'<source id="Model-joints"><Name_array id="Model-joints-array" count="{len(names)}">{" ".join(names)}'
        f'</Name_array><technique_common><accessor source="#Model-joints-array" count="{len(names)}" stride="1">'
        '<param name="JOINT" type="name"/></accessor></technique_common></source>'
        + _source("Model-binds", inverse.reshape(-1, 16), ("TRANSFORM",), "float4x4")
        + _source("Model-weights", shares.reshape(-1, 1), ("WEIGHT",))
        + '<joints><input semantic="JOINT" source="#Model-joints"/>'
        '<input semantic="INV_BIND_MATRIX" source="#Model-binds"/></joints>'
        f'<vertex_weights count="{count}"><input semantic="JOINT" source="#Model-joints" offset="0"/>'
        '<input semantic="WEIGHT" source="#Model-weights" offset="1"/>'
        f"<vcount>{_numbers(np.full(count, _WEIGHTS))}</vcount><v>{_numbers(pairs)}</v></vertex_weights>"
        "</skin></controller></library_controllers>\n"
    )


def _joint(name: str, parents: dict[str, str], positions: dict[str, tuple[float, float, float]]) -> str:
    matrix = np.identity(4)
    matrix[:3, 3] = positions[name]
    below = "".join(_joint(child, parents, positions) for child in parents if parents[child] == name)
    return (
        f'<node id="{name}" name="{name}" sid="{name}" type="JOINT"><matrix sid="transform">{_numbers(matrix)}</matrix>'
        f"{below}</node>\n"
    )


def _source(name: str, rows: npt.NDArray[np.floating], params: str | tuple[str, ...], kind: str = "float") -> str:
    count, stride = rows.shape
    columns = "".join(f'<param name="{param}" type="{kind}"/>' for param in params)
    return (
        f'<source id="{name}"><float_array id="{name}-array" count="{rows.size}">{_numbers(rows)}</float_array>'
        f'<technique_common><accessor source="#{name}-array" count="{count}" stride="{stride}">{columns}</accessor>'
        "</technique_common></source>\n"
    )


def _numbers(values: npt.NDArray[np.generic]) -> str:
    """Return numbers with the six decimals that exporters write, or as integers."""
    flat = values.ravel().tolist()
    return " ".join(map(str if np.issubdtype(values.dtype, np.integer) else "{:.7g}".format, flat))


def _scene(nodes: str) -> str:
    return (
        f'<library_visual_scenes><visual_scene id="Scene" name="Scene">{nodes}</visual_scene></library_visual_scenes>'
        '<scene><instance_visual_scene url="#Scene"/></scene></COLLADA>'
    )

"""Collada files written from the format page and the schema alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

SCHEMA = "http://www.collada.org/2005/11/COLLADASchema"
CORNERS = "-1 -1 1 1 -1 1 -1 1 1 1 1 1 -1 -1 2 1 -1 2 -1 1 2 1 1 2"
QUADS = ((0, 2, 3, 1), (4, 5, 7, 6), (0, 1, 5, 4), (2, 6, 7, 3), (0, 4, 6, 2), (1, 3, 7, 5))
IDENTITY = "1 0 0 0 0 1 0 0 0 0 1 0 0 0 0 1"
BOUND = ("mPelvis", "mTorso")
HEIGHTS = (1.067, 1.151)


def floats(name: str, values: str, stride: int, parameters: str = "") -> str:
    """Return a source; ``parameters`` are the letters that name its numbers."""
    count = len(values.split())
    named = "".join(f'<param name="{letter}" type="float"/>' for letter in parameters)
    return (
        f'<source id="{name}"><float_array id="{name}-array" count="{count}">{values}</float_array><technique_common>'
        f'<accessor source="#{name}-array" count="{count // stride}" stride="{stride}">{named}</accessor>'
        "</technique_common></source>"
    )


def names(name: str, words: str, tag: str = "Name_array") -> str:
    """Return a source of names."""
    count = len(words.split())
    return (
        f'<source id="{name}"><{tag} id="{name}-array" count="{count}">{words}</{tag}><technique_common>'
        f'<accessor source="#{name}-array" count="{count}"><param name="JOINT" type="name"/></accessor>'
        "</technique_common></source>"
    )


def inputs(**sources: str) -> str:
    """Return inputs, each with the next offset."""
    return "".join(
        f'<input semantic="{meaning}" source="#{source}" offset="{offset}"/>'
        for offset, (meaning, source) in enumerate(sources.items())
    )


def polylist(polygons: Iterable[Sequence[int]], symbol: str = "red") -> str:
    """Return polygons whose corners use the normal of their number, and the UVs 0 to 3."""
    numbered = list(polygons)
    counts = " ".join(str(len(polygon)) for polygon in numbered)
    corners = " ".join(
        f"{point} {number} {corner % 4}"
        for number, polygon in enumerate(numbered)
        for corner, point in enumerate(polygon)
    )
    given = inputs(VERTEX="box-v", NORMAL="box-n", TEXCOORD="box-t")
    lists = f"{given}<vcount>{counts}</vcount><p>{corners}</p>"
    return f'<polylist material="{symbol}" count="{len(numbered)}">{lists}</polylist>'


def geometry(primitives: str, extra: str = "", points: str = CORNERS) -> str:
    """Return the geometry ``box``; ``extra`` are further sources."""
    return (
        f'<geometry id="box-mesh" name="box"><mesh>{floats("box-p", points, 3, "XYZ")}'
        + floats("box-n", "0 0 -1 0 0 1 0 -1 0 0 1 0 -1 0 0 1 0 0", 3, "XYZ")
        + floats("box-t", "0 0 1 0 1 1 0 1", 2, "ST")
        + f'{extra}<vertices id="box-v"><input semantic="POSITION" source="#box-p"/></vertices>{primitives}'
        "</mesh></geometry>"
    )


BOX = geometry(polylist(QUADS[:3]) + polylist(QUADS[3:], "Blue"))
_BINDS = " ".join(f"1 0 0 0 0 1 0 0 0 0 1 {-height} 0 0 0 1" for height in HEIGHTS)
PAIRS = "0 0 0 0 0 0 0 0 0 1 1 1 0 1 1 1 0 1 1 1 0 1 1 1"


def skin(
    joints: str = names("box-j", " ".join(BOUND)),
    binds: str = _BINDS,
    weights: str = f"{inputs(JOINT='box-j', WEIGHT='box-w')}<vcount>1 1 1 1 2 2 2 2</vcount><v>{PAIRS}</v>",
    values: str = "1 0.5",
    shape: str = f"<bind_shape_matrix>{IDENTITY}</bind_shape_matrix>",
) -> str:
    """Return the controller ``box-skin`` of the geometry ``box``."""
    return (
        f'<controller id="box-skin"><skin source="#box-mesh">{shape}{joints}{floats("box-b", binds, 16)}'
        f'{floats("box-w", values, 1)}<joints><input semantic="JOINT" source="#box-j"/>'
        '<input semantic="INV_BIND_MATRIX" source="#box-b"/></joints>'
        f'<vertex_weights count="8">{weights}</vertex_weights></skin></controller>'
    )


_MATERIALS = (
    '<library_images><image id="wood" name="wood"><init_from>wood%20a.png</init_from></image></library_images>'
    '<library_effects><effect id="red-fx"><profile_COMMON>'
    '<newparam sid="wood-surface"><surface type="2D"><init_from>wood</init_from></surface></newparam>'
    '<newparam sid="wood-sampler"><sampler2D><source>wood-surface</source></sampler2D></newparam>'
    '<technique sid="common"><lambert><emission><color>0.5 0.5 0.5 1</color></emission>'
    '<diffuse><texture texture="wood-sampler" texcoord="UV"/></diffuse></lambert></technique>'
    '</profile_COMMON></effect><effect id="Blue-fx"><profile_COMMON><technique sid="common"><phong>'
    "<diffuse><color>0.1 0.2 0.8 1</color></diffuse></phong></technique></profile_COMMON></effect></library_effects>"
    '<library_materials><material id="red-id" name="Red wood"><instance_effect url="#red-fx"/></material>'
    '<material id="Blue-id"><instance_effect url="#Blue-fx"/></material></library_materials>'
)
BINDING = (
    '<bind_material><technique_common><instance_material symbol="red" target="#red-id"/>'
    '<instance_material symbol="Blue" target="#Blue-id"/></technique_common></bind_material>'
)
OBJECT = f'<instance_geometry url="#box-mesh">{BINDING}</instance_geometry>'
STATIC = f'<node id="box" name="my box">{OBJECT}</node>'
JOINTS = (
    '<node id="Armature"><node id="mPelvis" sid="mPelvis" name="mPelvis" type="JOINT">'
    f'<matrix sid="transform">{IDENTITY}</matrix><translate sid="location">0 0 1.067</translate>'
    '<node id="mTorso" sid="mTorso" name="mTorso" type="JOINT"><translate>0 0 0.084</translate></node></node></node>'
)
RIGGED = (
    f'{JOINTS}<node id="box" name="box"><instance_controller url="#box-skin"><skeleton>#mPelvis</skeleton>'
    f"{BINDING}</instance_controller></node>"
)


def document(
    nodes: str = STATIC,
    geometries: str = BOX,
    controllers: str = "",
    extra: str = "",
    asset: str = '<unit name="meter" meter="1"/><up_axis>Z_UP</up_axis>',
) -> bytes:
    """Return a file; ``extra`` are further libraries."""
    scene = (
        f'<library_visual_scenes><visual_scene id="S">{nodes}</visual_scene></library_visual_scenes>'
        '<scene><instance_visual_scene url="#S"/></scene>'
    )
    return (
        f'<?xml version="1.0" encoding="utf-8"?>\n<COLLADA xmlns="{SCHEMA}" version="1.4.1"><asset><contributor>'
        f"<authoring_tool>seed</authoring_tool></contributor>{asset}</asset>{_MATERIALS}"
        f"<library_geometries>{geometries}</library_geometries>"
        f"<library_controllers>{controllers}</library_controllers>{extra}{scene}</COLLADA>\n"
    ).encode()


_MOVED = (
    '<node id="a" name="a"><translate>1 0 0</translate><rotate>0 0 1 90</rotate><scale>2 2 2</scale>'
    f'<node id="b"><matrix>{IDENTITY}</matrix><instance_node url="#part"/></node>'
    '<node id="c"><scale>-1 1 1</scale><instance_node url="#part"/></node></node>'
)
_PART = f'<library_nodes><node id="part"><translate>0 0 1</translate>{OBJECT}</node></library_nodes>'
_SHAPES = (
    f'<triangles material="red" count="1">{inputs(VERTEX="box-v")}<p>0 2 3</p></triangles>'
    f'<tristrips material="red" count="2">{inputs(VERTEX="box-v")}<p>0 1 2 3</p><p>4 5 6</p></tristrips>'
    f'<trifans material="red" count="1">{inputs(VERTEX="box-v")}<p>4 5 7 6</p></trifans>'
    f'<polygons material="Blue" count="2">{inputs(VERTEX="box-v")}<p>0 4 6 2</p><ph><p>1 3 7 5</p><h>1 3 7</h></ph>'
    f'</polygons><lines count="1">{inputs(VERTEX="box-v")}<p>0 1</p></lines>'
)


def files() -> dict[str, bytes]:
    """Return whole files by name."""
    return {
        "static": document(),
        "rigged": document(RIGGED, controllers=skin()),
        "nested": document(_MOVED, extra=_PART, asset='<unit meter="0.01"/><up_axis>Y_UP</up_axis>'),
        "shapes": document(geometries=geometry(_SHAPES)),
    }

"""Node and world files of UNIGINE, written from the format page alone."""

from __future__ import annotations

from collections.abc import Iterable

IDENTITY = "1 0 0 0 0 1 0 0 0 0 1 0 0 0 0 1"
TRIANGLE = (
    '<object_surface name="face" begin="0" end="3"/>'
    '<vertex type="float" num_vertex="3" offset="0" size="3">0 0 0 2 0 0 0 2 0</vertex>'
    '<vertex type="float" num_vertex="3" offset="16" size="4">0 0 0 0 1 0 0 0 0 1 0 0</vertex>'
    '<vertex type="float" num_vertex="3" offset="32" size="4">0 0 0 1 0 0 0 1 0 0 0 1</vertex>'
    '<vertex type="float" num_vertex="3" offset="48" size="4">1 0 0 1 1 1 1 1 1 1 1 1</vertex>'
    '<indices num_indices="3">0 1 2</indices>'
)


def moved(x: float, y: float = 0.0, z: float = 0.0) -> str:
    """Return a transform that only moves."""
    return f"1 0 0 0 0 1 0 0 0 0 1 0 {x} {y} {z} 1"


def node(kind: str, name: str = "", content: str = "", transform: str = IDENTITY, **attributes: object) -> str:
    """Return the element of a node."""
    more = "".join(f' {key}="{value}"' for key, value in attributes.items())
    place = f"<transform>{transform}</transform>" if transform else ""
    return f'<node type="{kind}" name="{name}"{more}>{content}{place}</node>'


def reference(path: str, name: str = "", transform: str = IDENTITY) -> str:
    return node("NodeReference", name or path, f"<reference>{path}</reference>", transform)


def mesh(path: str, name: str, surfaces: Iterable[str] = (), transform: str = IDENTITY, **attributes: object) -> str:
    """Return a static mesh; ``surfaces`` are the attributes of its surfaces."""
    listed = "".join(f"<surface {surface}/>" for surface in surfaces)
    return node("ObjectMeshStatic", name, f"<mesh_name>{path}</mesh_name>{listed}", transform, **attributes)


def nodes(*content: str) -> bytes:
    """Return a node file."""
    return f'<?xml version="1.0" encoding="utf-8"?>\n<nodes version="2.19.0.3">{"".join(content)}</nodes>\n'.encode()


def world(*content: str) -> bytes:
    """Return a world."""
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<world version="2.19.0.3"><render><exposure>1</exposure></render>'
        f"<editor>{''.join(content)}</editor></world>\n"
    ).encode()


DYNAMIC = node("ObjectMeshDynamic", "inside", TRIANGLE + '<surface name="face" material="0"/>', id=7)
ALL = {
    "node": nodes(node("NodeDummy", "top", mesh("box.mesh", "box", ['name="box" min_visible_distance="-inf"']))),
    "world": world(DYNAMIC, node("LightOmni", "lamp", "<intensity>2</intensity>"), reference("other.node")),
    "cluster": nodes(
        node("ObjectMeshCluster", "many", f"<mesh_name>a.mesh</mesh_name><position>{moved(3)}</position>")
    ),
    "poses": nodes(
        node("ObjectMeshSkinnedLegacy", "a", "<mesh_name>a.mesh_skinned</mesh_name><anim_name>a.anim</anim_name>"),
        node(
            "NodeSkeletonPose",
            "b",
            f'<skeleton>{"0" * 40}</skeleton><anim_script guid="{"1" * 40}"/>'
            '<controlled_objects><controlled_object id="9"/></controlled_objects>',
        ),
        node("NodeSkeletonPose", "c", node("ObjectMeshSkinned", "d", "<mesh_name>a.mesh_skinned</mesh_name>", id=9)),
    ),
}

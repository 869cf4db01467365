"""Hostile nodes and worlds of UNIGINE: sound files with hostile values, elements moved about, and raw changes."""

from __future__ import annotations

import random
from typing import Any

from . import raw

_KINDS = (
    *("ObjectMeshStatic", "ObjectMeshSkinned", "ObjectMeshDynamic", "ObjectMeshCluster", "NodeReference", "NodeLayer"),
    *(
        "NodeDummy",
        "LightOmni",
        "LightProj",
        "LightWorld",
        "PlayerDummy",
        "DecalProj",
        "",
        "\u041a\u043e\u0441\u0442\u044c",
    ),
)
_NUMBERS = ("0", "1", "-1", "0.5", "1e-7", "1e9", "1e39", "1e400", "-0", "3.5", "100")
_ODD = ("nan", "inf", "-inf", "x", "", "1,5", "1_0", "0x10", "\u0663")
_REFERENCES = (
    "a.node",
    "b.node",
    "c.node",
    "case.node",
    "guid://" + "a" * 40,
    "../x.node",
    "box.mesh",
    "box.fbx",
    "",
    " ",
)
NAMED = ("a.node", "b.node", "c.node", "case.node")
"""References that stand for the case's own file."""


def make(files: dict[str, bytes], rng: random.Random) -> tuple[bytes, str]:
    """Return a scene file and how it was made."""
    if files and rng.random() < 0.2:
        name = rng.choice(list(files))
        return raw.mutate(files[name], rng), f"raw changes to {name}"
    choice = rng.random()
    data = _file(rng, hostile=choice < 0.6).encode("utf-8")
    if choice < 0.6:
        return data, "hostile values"
    if choice < 0.85:
        return raw.mutate(data, rng), "raw changes"
    return data, "sound"


def _file(rng: random.Random, *, hostile: bool) -> str:
    nodes = "".join(_node(rng, 0, hostile=hostile) for _ in range(rng.choice((0, 1, 1, 3, 12))))
    root = rng.choice(("nodes", "world", "node")) if hostile else rng.choice(("nodes", "world"))
    if hostile and rng.random() < 0.03:
        depth = rng.choice((900, 1100, 20_000))
        nodes += "<node>" * depth + "</node>" * depth
    kind = ' type="NodeDummy"' if root == "node" else ""
    content = f"<editor>{nodes}</editor>" if root == "world" and rng.random() < 0.9 else nodes
    library = "<materials><library>x.mat</library><library/></materials>" if rng.random() < 0.1 else ""
    doctype = '<!DOCTYPE nodes [<!ENTITY a "b">]>' if hostile and rng.random() < 0.05 else ""
    return f'<?xml version="1.0"?>{doctype}<{root} version="2.19.0.3"{kind}>{library}{content}</{root}>'


def _node(rng: random.Random, depth: int, *, hostile: bool) -> str:
    kind = rng.choice(_KINDS)
    attributes = f'type="{kind}" name="n{rng.randrange(9)}" id="{rng.randrange(rng.choice((5, 10**6)))}"'
    if rng.random() < 0.3:
        attributes += f' enabled="{rng.choice(("0", "1", "", "yes") if hostile else ("0", "1"))}"'
    parts = []
    if rng.random() < 0.9:
        parts.append(f"<transform>{_matrix(rng, hostile=hostile)}</transform>")
    for field in ("mesh_name", "anim_name", "reference", "layer"):
        if rng.random() < 0.4:
            parts.append(f"<{field}>{rng.choice((*_REFERENCES, '1', '2'))}</{field}>")
    for field in ("color", "intensity", "fov", "penumbra", "shape", "shape_type", "znear", "zfar", "is_main"):
        if rng.random() < 0.15:
            parts.append(
                f"<{field}>{' '.join(_number(rng, hostile=hostile) for _ in range(rng.randint(1, 4)))}</{field}>"
            )
    parts += [_surface(rng, hostile=hostile) for _ in range(rng.choice((0, 0, 1, 3)))]
    if kind == "ObjectMeshCluster":
        parts += [f"<position>{_matrix(rng, hostile=hostile)}</position>" for _ in range(rng.choice((0, 1, 5)))]
    if kind == "ObjectMeshDynamic" or rng.random() < 0.05:
        parts += _geometry(rng, hostile=hostile)
    if depth < 4:
        parts += [_node(rng, depth + 1, hostile=hostile) for _ in range(rng.choice((0, 0, 0, 1, 3)))]
    if hostile:
        rng.shuffle(parts)
    return f"<node {attributes}>{''.join(parts)}</node>"


def _matrix(rng: random.Random, *, hostile: bool) -> str:
    values = ["1", "0", "0", "0", "0", "1", "0", "0", "0", "0", "1", "0", "1", "2", "3", "1"]
    if hostile and rng.random() < 0.4:
        values[rng.randrange(16)] = _number(rng, hostile=True)
    if hostile and rng.random() < 0.1:
        values = values[: rng.randrange(17)] * rng.choice((1, 2))
    return " ".join(values)


def _surface(rng: random.Random, *, hostile: bool) -> str:
    distance = _number(rng, hostile=hostile) if rng.random() < 0.5 else "-inf"
    return (
        f'<surface name="s{rng.randrange(3)}" material="{rng.choice(("", "a" * 40, "mesh_base"))}" '
        f'enabled="{rng.choice("01")}" min_visible_distance="{distance}"/>'
    )


def _geometry(rng: random.Random, *, hostile: bool) -> list[str]:
    points, triangles = rng.choice((0, 3, 4, 30)), rng.choice((0, 1, 2, 20))
    indices = [str(rng.randrange(points)) if points else "0" for _ in range(3 * triangles if points else 0)]
    if hostile and indices and rng.random() < 0.3:
        indices[rng.randrange(len(indices))] = rng.choice((*_NUMBERS, *_ODD, str(points), "4294967296"))
    parts = [
        f'<object_surface name="s{part}" begin="0" end="{len(indices)}"/>' for part in range(rng.choice((1, 1, 2)))
    ]
    for offset, size in ((0, 3), (16, 4), (32, 4), (48, 4)):
        values = [_number(rng, hostile=hostile and rng.random() < 0.02) for _ in range(points * size)]
        count = rng.choice((points, -1, 2**31, points + 1)) if hostile and rng.random() < 0.05 else points
        parts.append(
            f'<vertex type="float" num_vertex="{count}" offset="{offset}" size="{size}">{" ".join(values)}</vertex>'
        )
    parts.append(f'<indices num_indices="{len(indices)}">{" ".join(indices)}</indices>')
    if hostile and rng.random() < 0.3:
        del parts[rng.randrange(len(parts))]
    return parts


def _number(rng: random.Random, *, hostile: bool) -> str:
    return rng.choice((*_NUMBERS, *_ODD)) if hostile else rng.choice(_NUMBERS[:5])


def patch(found: Any, data: bytes, scene: Any, rng: random.Random) -> None:
    """Change random nodes of a file; require that the result is read with these nodes, and no edits give its bytes."""
    import numpy as np
    from meshferry.io_formats.core.placement import NodeEdit

    nodes = [node for node in scene.placement.parts[0].nodes if node.key]
    edits: dict[str, NodeEdit] = {}
    for node in rng.sample(nodes, min(len(nodes), 3)):
        edit = edits[node.key] = NodeEdit(node.key, node.name, materials={0: "a" * 40} if rng.random() < 0.2 else {})
        choice = rng.random()
        if choice < 0.3:
            edit.matrix = np.identity(4) * rng.choice((1.0, 1e9, 0.1))
        elif choice < 0.5:
            edit.name, edit.is_hidden = rng.choice(("", "<&>\"'", "\u041a")), rng.choice((True, False, None))
        elif choice < 0.7:
            edit.parent = rng.choice(("", rng.choice(nodes).key))
        elif choice < 0.9:
            edit.key, edit.source, edit.parent = "+1", node.key, rng.choice(("", node.key))
        else:
            edit.is_removed = True
    patched = found.patch(data, list(edits.values()))
    removed = sum(edit.is_removed for edit in edits.values())
    before, now = len(found.read(data).nodes), len(found.read(patched.data).nodes)
    if now != before - removed + len(patched.keys) or found.patch(data, []).data != data:
        raise AssertionError(f"{before} nodes became {now}")


class SelfLinks:
    """Links whose node files are all the case's own file, which gives loops and chains."""

    materials: tuple[Any, ...] = ()

    def __init__(self, data: bytes) -> None:
        self._data = data

    def find(self, reference: str) -> Any:
        """Return the case itself for some names."""
        from meshferry.io_formats.unigine.scene.references import LinkedFile

        return LinkedFile(reference, lambda: self._data, reference.endswith(".fbx")) if reference in NAMED else None

    def material(self, reference: str, surface: str) -> str | None:
        """Return no material."""

    def use_libraries(self, references: list[str]) -> None:
        """Ignore libraries."""

    def warnings(self) -> list[str]:
        """Return no warnings."""
        return []


def link(document: Any, data: bytes, options: dict[str, Any]) -> Any:
    """Return the scene of a document whose references lead to its own file."""
    from meshferry.io_formats.unigine.scene.format import ReadOptions
    from meshferry.io_formats.unigine.scene.mapping import PlacementBuilder

    return PlacementBuilder("case", SelfLinks(data), ReadOptions.of(options)).build(document, "case.node")

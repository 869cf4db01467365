"""Models that hold all that a kind of file can, to see what conversions keep of them."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
FRAMES = 5
BONES = ("mPelvis", "mTorso")
"""Bones of the avatar of Second Life, whose program takes no others."""


def make_blob(seed: int, points: int, materials: Sequence[str], uvs: int, colors: int) -> Any:
    """Return an uneven closed mesh around the origin, about 2 m large, no corner of it like another."""
    from meshferry.io_formats.core.scene import Layer, Mesh

    numbers = np.random.default_rng(seed)
    rings = points // 6
    angles = np.linspace(0, 2 * np.pi, 6, endpoint=False)
    heights = np.linspace(-1, 1, rings)
    ring = np.stack((np.cos(angles), np.sin(angles)), axis=1)
    body = [np.column_stack((ring * np.sqrt(1.2 - height**2), np.full(6, height))) for height in heights]
    places = np.concatenate(body) + numbers.uniform(-0.1, 0.1, (6 * rings, 3))
    triangles = []
    for low in range(rings - 1):
        for at in range(6):
            a, b = 6 * low + at, 6 * low + (at + 1) % 6
            triangles += [[a, b, b + 6], [a, b + 6, a + 6]]
    normals = places + numbers.uniform(-0.4, 0.4, places.shape)
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    return Mesh(
        points=places.astype(np.float32),
        corner_point=np.array(triangles, np.int32).ravel(),
        material_index=(np.arange(len(triangles)) % len(materials)).astype(np.int32),
        materials=list(materials),
        normal=Layer("normal", normals.astype(np.float32)),
        uvs=[Layer(f"UV{n}", numbers.uniform(0, 1, (len(places), 2)).astype(np.float32)) for n in range(uvs)],
        colors=[
            Layer(f"Color{n or ''}", numbers.integers(0, 256, (len(places), 4)).astype(np.uint8)) for n in range(colors)
        ],
    )


def add_weights(mesh: Any) -> None:
    """Let the upper end of a mesh follow the second bone, the lower end the first."""
    share = np.clip((mesh.points[:, 2] + 1) / 2, 0, 1).astype(np.float32)
    mesh.joint_indices = np.tile(np.array([0, 1], np.int32), (len(mesh.points), 1))
    mesh.joint_weights = np.stack((1 - share, share), axis=1)


def add_shapes(mesh: Any) -> None:
    """Give a mesh two shape keys."""
    from meshferry.io_formats.core.scene import ShapeKey

    for name, factor in (("Wide", (1.5, 1.5, 1)), ("Tall", (1, 1, 2))):
        mesh.shape_keys.append(ShapeKey(name, (mesh.points * np.array(factor, np.float32)).astype(np.float32)))


def make_skeleton() -> Any:
    from meshferry.io_formats.core.scene import Joint, Skeleton

    return Skeleton("Rig", [Joint(name, index - 1, (0.0, 0.0, float(index))) for index, name in enumerate(BONES)])


def make_shaped() -> Any:
    """Return an avatar with the shape of a tall man."""
    from meshferry.io_formats.second_life.avatar.skeletons import avatar_skeleton

    skeleton = avatar_skeleton()
    skeleton.slider_values = {33: 80.0, 80: 100.0}
    return skeleton


def turning(target: int, start: Sequence[float], skeleton: int | None) -> Any:
    """Return a track that begins at a place without rotation, moves along X and turns by 90 degrees around Y."""
    from meshferry.io_formats.core.scene import TransformTrack

    part = np.linspace(0, 1, FRAMES)
    translation = np.array(start) + part[:, None] * np.array([0.5, 0, 0])
    rotation = np.zeros((FRAMES, 4))
    rotation[:, 0], rotation[:, 2] = np.cos(part * np.pi / 4), np.sin(part * np.pi / 4)
    scale = np.ones((FRAMES, 3), np.float32)
    return TransformTrack(target, translation.astype(np.float32), rotation.astype(np.float32), scale, skeleton)


def bone_clip() -> Any:
    from meshferry.io_formats.core.scene import Clip

    return Clip("Move", 24.0, FRAMES, [turning(n, (0, 0, n), 0) for n in range(len(BONES))])


def make_timbermesh() -> Any:
    """Return a tree: Stand, on it Lid, which moves, and Flag, which deforms."""
    from meshferry.io_formats.core.scene import Clip, Node, Scene, VertexTrack

    stand, lid = make_blob(1, 24, ("Steel", "Wood"), 3, 1), make_blob(2, 18, ("Wood",), 1, 1)
    flag = make_blob(3, 18, ("Steel",), 1, 1)
    waving = flag.points[None] * np.linspace(1, 1.5, FRAMES)[:, None, None]
    nodes = [
        Node("Stand", mesh=stand),
        Node("Lid", 0, (0.0, 0.5, 3.0), mesh=lid),
        Node("Flag", 0, (4.0, 0.0, 0.0), mesh=flag),
    ]
    clip = Clip("Move", 24.0, FRAMES, [turning(1, (0, 0.5, 3), None)], [VertexTrack(2, waving.astype(np.float32))])
    return Scene("model", nodes, clips=[clip])


def make_unigine() -> Any:
    """Return one mesh with everything: Body, on two bones that move."""
    from meshferry.io_formats.core.scene import Node, Scene, Surface

    mesh = make_blob(4, 30, ("Steel", "Wood"), 2, 1)
    add_weights(mesh)
    add_shapes(mesh)
    mesh.surfaces = [Surface(name) for name in mesh.materials]
    return Scene("model", [Node("model", mesh=mesh, skeleton=0)], [make_skeleton()], [bone_clip()])


def make_everything() -> Any:
    """Return all of it in one scene: a tree that moves, a body on bones, a coarser level and a hull."""
    from meshferry.io_formats.core.scene import Clip, Node, Role, Scene

    tree, single = make_timbermesh(), make_unigine()
    body = single.nodes[0]
    body.name, body.mesh.surfaces = "Body", []
    body.mesh.colors *= 1
    coarse = Node("Stand_LOD1", mesh=make_blob(1, 18, ("Steel",), 1, 0), lod=1, lod_of=0)
    hull = Node("Stand_hull", mesh=make_blob(1, 12, ("Steel",), 0, 0), role=Role.HULL, shape_of=0)
    joined = [*tree.clips[0].transforms, *single.clips[0].transforms]
    clip = Clip("Move", 24.0, FRAMES, joined, tree.clips[0].vertices)
    return Scene("model", [*tree.nodes, body, coarse, hull], single.skeletons, [clip])


def make_still() -> Any:
    """Return a mesh as the plainest formats hold it."""
    from meshferry.io_formats.core.scene import Node, Scene

    return Scene("model", [Node("model", mesh=make_blob(5, 24, ("",), 1, 0))])


def write_ours(folder: Path) -> dict[str, Path]:
    """Write a model in each of our formats that are read; return the files by the name of their format."""
    from meshferry.io_formats import api, registry
    from meshferry.io_formats.core.scene import Scene

    written = {
        "timbermesh": (make_timbermesh(), "model.timbermesh", {}),
        "unigine_mesh": (make_unigine(), "model.mesh", {"mesh_version": "MS12", "use_embedded_animation": True}),
        "unigine_animation": (Scene("model", [], [make_skeleton()], [bone_clip()]), "model.anim", {}),
        "unigine_skeleton": (Scene("model", [], [make_skeleton()]), "model.skeleton", {}),
        "second_life_animation": (Scene("model", [], [make_skeleton()], [bone_clip()]), "model.anim", {}),
        "second_life_bvh": (Scene("model", [], [make_skeleton()], [bone_clip()]), "model.bvh", {}),
        "second_life_shape": (Scene("model", [], [make_shaped()]), "model.xml", {}),
        "mesh_serializer": (make_still(), "model.data", {}),
    }
    paths: dict[str, Path] = {}
    for name, (scene, file, options) in written.items():
        paths[name] = folder / name / file
        paths[name].parent.mkdir()
        api.write_scene(scene, paths[name], registry.by_name(name), options)
    paths["second_life_mesh"] = folder / "second_life_mesh" / "model.llmesh"
    paths["second_life_mesh"].parent.mkdir()
    shutil.copyfile(ROOT / "examples" / "tunic.llmesh", paths["second_life_mesh"])
    return paths

"""A library of small files of all formats, as whole projects have them: props, characters, their animations.

python tests/bench/meshbench/library.py FOLDER 2000
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

PER_FOLDER = 100
"""Files a folder holds, as in a real tree."""
SEGMENTS, RINGS = 12, 6
"""Of each model: 144 triangles, about what a prop in such a library has."""
JOINTS = 8
FRAMES = 24

MESHES = ("timbermesh", "unigine_mesh", "second_life_mesh", "second_life_bundle", "mesh_serializer")
"""Formats whose files hold meshes."""
ALL = (*MESHES, "unigine_animation", "unigine_skeleton")
"""Every format that is read."""


def make_library(folder: Path, count: int, kinds: tuple[str, ...] = ALL) -> list[Path]:
    """Write ``count`` files into folders of a hundred, the kinds in turns; no two of them are the same."""
    from meshferry.io_formats import api, registry

    made = []
    for number in range(count):
        target = registry.by_name(kinds[number % len(kinds)])
        path = folder / f"set_{number // PER_FOLDER:04d}" / f"thing_{number:06d}{target.extensions[0]}"
        path.parent.mkdir(parents=True, exist_ok=True)
        (part,) = api.files_of(_SCENES[target.name](number, path.stem), target, None)
        path.write_bytes(api.encode_part(part, target, path=path).outputs[-1].data)
        made.append(path)
    return made


def prop(number: int, name: str) -> Any:
    """Return a scene with one lathed shape of its own proportions."""
    from meshferry.io_formats.core.scene import Node, Scene

    return Scene(name, [Node(name, mesh=_lathed(number))])


def character(number: int, name: str) -> Any:
    """Return a scene with one weighted shape on a chain of joints."""
    from meshferry.io_formats.core.scene import Node, Scene

    mesh = _lathed(number)
    along = np.clip(mesh.points[:, 2] * JOINTS, 0, JOINTS - 1.001)
    lower = along.astype(np.int32)
    mesh = replace(
        mesh,
        joint_indices=np.stack([lower, lower + 1], axis=1).astype(np.int32),
        joint_weights=np.stack([1 - (along - lower), along - lower], axis=1).astype(np.float32),
    )
    return Scene(name, [Node(name, mesh=mesh, skeleton=0)], [_chain()])


def motion(number: int, name: str) -> Any:
    """Return a scene with a chain of joints and its animation."""
    from meshferry.io_formats.core.scene import Clip, Scene, TransformTrack

    angle = np.sin(np.linspace(0, 2 * np.pi, FRAMES)) * (0.2 + 0.001 * (number % 300))
    turned = np.zeros((FRAMES, 4), np.float32)
    turned[:, 0], turned[:, 1] = np.cos(angle / 2), np.sin(angle / 2)
    chain = _chain()
    still, unit = np.zeros((FRAMES, 3), np.float32), np.ones((FRAMES, 3), np.float32)
    tracks = [
        TransformTrack(joint, still + np.float32(chain.joints[joint].translation), turned, unit, skeleton=0)
        for joint in range(JOINTS)
    ]
    return Scene(name, [], [chain], [Clip(name, 30.0, FRAMES, tracks)])


def bones(_number: int, name: str) -> Any:
    """Return a scene with a chain of joints alone."""
    from meshferry.io_formats.core.scene import Scene

    return Scene(name, [], [_chain()])


_SCENES: dict[str, Callable[[int, str], Any]] = {
    **dict.fromkeys(MESHES, prop),
    "unigine_mesh": character,
    "unigine_animation": motion,
    "unigine_skeleton": bones,
}


def _chain() -> Any:
    from meshferry.io_formats.core.scene import Joint, Skeleton

    return Skeleton("chain", [Joint(f"joint_{n}", n - 1, (0.0, 0.0, 1 / JOINTS if n else 0.0)) for n in range(JOINTS)])


def _lathed(number: int) -> Any:
    """Return a mesh: a profile that differs from file to file, turned about the vertical."""
    from meshferry.io_formats.core.scene import Layer, Mesh

    random = np.random.default_rng(number)
    around = np.linspace(0, 2 * np.pi, SEGMENTS, endpoint=False)
    height = np.linspace(0, 1, RINGS + 1)
    radius = random.uniform(0.2, 0.6, RINGS + 1)
    ring, step = np.meshgrid(np.arange(RINGS + 1), np.arange(SEGMENTS), indexing="ij")
    angle, wide = around[step.ravel()], radius[ring.ravel()]
    outward = np.stack([np.cos(angle), np.sin(angle), np.zeros(len(angle))], axis=1)
    points = outward * wide[:, None] + [0, 0, 1] * height[ring.ravel()][:, None]
    here = (np.arange(RINGS)[:, None] * SEGMENTS + np.arange(SEGMENTS)).ravel()
    beside = (np.arange(RINGS)[:, None] * SEGMENTS + (np.arange(SEGMENTS) + 1) % SEGMENTS).ravel()
    corners = np.stack([here, beside, beside + SEGMENTS, here, beside + SEGMENTS, here + SEGMENTS], axis=1).ravel()
    return Mesh(
        points=points.astype(np.float32),
        corner_point=corners.astype(np.int32),
        material_index=np.zeros(len(corners) // 3, np.int32),
        materials=["Paint"],
        normal=Layer("normal", outward.astype(np.float32)),
        uvs=[Layer("UVMap", np.stack([angle / (2 * np.pi), height[ring.ravel()]], axis=1).astype(np.float32))],
    )


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    from load_package import load_package

    load_package()
    print(len(make_library(Path(sys.argv[1]), int(sys.argv[2]))), "files")

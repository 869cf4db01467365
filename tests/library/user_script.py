"""A user's script, which `make lint` checks with ``mypy --strict`` and ``test_scenes.py`` runs."""

from __future__ import annotations

import sys
from pathlib import Path

import meshferry
import numpy as np
import numpy.typing as npt


def world_points(node: meshferry.Node) -> npt.NDArray[np.float64]:
    if node.mesh is None:
        return np.zeros((0, 3))
    placed: npt.NDArray[np.float64] = node.mesh.points @ node.world_matrix[:3, :3].T + node.world_matrix[:3, 3]
    return placed


def main(source: Path, animation: Path, folder: Path) -> None:
    scene: meshferry.Scene = meshferry.read(source)
    lost: list[meshferry.Message] = [*scene.messages, *scene.add_clips(meshferry.read(animation.read_bytes()))]
    for mesh in scene.meshes:
        mesh.points = mesh.points * 2
        mesh.uvs = [layer * np.float32(0.5) for layer in mesh.uvs]
        mesh.materials = [name.upper() for name in mesh.materials]
        vertices: meshferry.Vertices = mesh.vertices()
        weights: meshferry.Weights | None = vertices.weights
        print(len(vertices.points), weights is not None and weights.joints.max())
    height: float = max(float(world_points(node)[:, 2].max()) for node in scene.walk())
    clip: meshferry.Clip = scene.clips[0]
    posed = {node.name: points.mean(axis=0) for node, points in scene.posed(clip, clip.duration / 2).items()}
    skeleton: meshferry.Skeleton = scene.skeletons[0]
    print(height, posed, skeleton.names, scene.joint_matrices(skeleton, clip, 0.5).shape)
    roof = meshferry.Mesh([(0, 0, 0), (1, 0, 0), (0, 1, 1)], [(0, 1, 2)], materials="wood")
    made = meshferry.Scene("roof")
    made.add("part", roof, parent=made.add("top"), matrix=np.identity(4))
    written: meshferry.Written = meshferry.write(made, folder / "roof.timbermesh", compression="fast")
    lost += [*written.messages, *meshferry.convert(written.files[0], folder / "roof.mesh").messages]
    (folder / "lamp.glb").write_bytes(scene.to_gltf()[0])
    try:
        meshferry.write(scene, folder / "lamp.mesh", strict=True)
    except meshferry.MeshferryError as problem:
        print(problem.file, problem.message, meshferry.check(source), meshferry.inspect(source)["version"])
    print(meshferry.__version__, [message.code for message in lost], list(meshferry.formats()))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))

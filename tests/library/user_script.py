"""A user's script, which `make lint` checks with ``mypy --strict`` and ``test_scenes.py`` runs."""

import sys
from pathlib import Path

import meshferry
import numpy as np


def main(source: Path, animation: Path, folder: Path) -> None:
    scene: meshferry.Scene = meshferry.read(source)
    lost: list[meshferry.Message] = [*scene.messages, *scene.add_clips(meshferry.read(animation.read_bytes()))]
    for mesh in scene.meshes:
        mesh.points = mesh.points * 2
        mesh.uvs = [layer * np.float32(0.5) for layer in mesh.uvs]
        mesh.materials = [name.upper() for name in mesh.materials]
        weights: meshferry.Weights | None = mesh.weights
        print(mesh.triangles.shape, weights is not None and weights.joints.max())
    print([(node.name, node.world_matrix[2, 3], node.level) for node in scene.walk()])
    clip: meshferry.Clip = scene.clips[0]
    posed = {node.name: points.mean(axis=0) for node, points in scene.posed(clip, clip.duration / 2).items()}
    skeleton: meshferry.Skeleton = scene.skeletons[0]
    print(posed, skeleton.names, scene.joint_matrices(skeleton, clip, 0.5).shape)
    roof = meshferry.Mesh([(0, 0, 0), (1, 0, 0), (0, 1, 1)], [(0, 1, 2)], materials="wood")
    made = meshferry.Scene("roof")
    top: meshferry.Node = made.add("top")
    made.add("part", roof, parent=top, matrix=np.identity(4)).mesh = roof
    written: meshferry.Written = meshferry.write(made, folder / f"{made.name}.timbermesh", compression="fast")
    lost += [*written.messages, *meshferry.convert(written.files[0], folder / "roof.mesh").messages]
    (folder / "lamp.glb").write_bytes(scene.to_gltf()[0])
    try:
        meshferry.write(scene, folder / "lamp.mesh", strict=True)
    except meshferry.MeshferryError as problem:
        print(problem.file, problem.message, meshferry.check(source), meshferry.inspect(source)["version"])
    print(meshferry.__version__, [message.code for message in lost], list(meshferry.formats()))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))

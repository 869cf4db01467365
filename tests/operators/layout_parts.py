"""Objects of a layout, and the points of the files that they become, read by an independent reader."""

import numpy as np
import timbermesh_oracle as oracle

CORNERS = [(0, 0, 0), (2, 0, 0), (0, 1, 0), (0, 0, 3)]
FACES = [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]


def make_mesh(bpy, name):
    mesh = bpy.data.meshes.new(name)
    mesh.from_pydata(CORNERS, [], FACES)
    return mesh


def add_object(bpy, name, data=None, location=(0, 0, 0), rotation=0.0, scale=(1, 1, 1), parent=None, collection=None):
    obj = bpy.data.objects.new(name, data)
    (collection or bpy.context.scene.collection).objects.link(obj)
    obj.parent = parent
    obj.location, obj.rotation_euler, obj.scale = location, (0, 0, rotation), scale
    obj.select_set(True)
    return obj


def points_of_file(path):
    """Return the points of a file's vertices in Blender's axes, each once, sorted."""
    placed, found = [], set()
    for node in oracle.parse(path.read_bytes()).nodes:
        matrix = oracle.transform(node)
        placed.append(matrix if node.parent < 0 else placed[node.parent] @ matrix)
        points = oracle.values(node.vertexProperties, "position")
        for x, y, z in [] if points is None else points @ placed[-1][:3, :3].T + placed[-1][:3, 3]:
            found.add(tuple((np.round([-x, -z, y], 4) + 0.0).tolist()))
    return sorted(found)


def expected_points(matrix):
    points = np.array(CORNERS, float) @ np.array(matrix)[:3, :3].T + np.array(matrix)[:3, 3]
    return sorted({tuple(np.round(point, 4) + 0.0) for point in points.tolist()})

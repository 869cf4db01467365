"""Draws the pictures that ``test_batch_pictures.py`` looks at, all in one process, and prints what is on them.

A machine without OpenGL kills Blender; then the line ``can draw`` is missing.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from load_package import leave, load_package  # noqa: E402

load_package()

from meshferry.cli.batch import report_pictures  # noqa: E402
from meshferry.cli.conversions.blend_files import BlendSession  # noqa: E402
from meshferry.io_formats import api  # noqa: E402
from meshferry.io_formats.core.scene import Joint, Layer, Mesh, Node, Role, Scene, Skeleton  # noqa: E402

SIDES = ("Red", "Green", "Blue", "White")
"""Materials by what their names mean: front, top, right, all others."""


def box(size: float = 1.0, place: Any = (0.0, 0.0, 0.0), materials: Any = ("Red",), slots: Any = (0,) * 6) -> Mesh:
    """Return a box without normals, with a material slot for each side: -X, +X, -Y, +Y, -Z, +Z."""
    points = np.array([(x, y, z) for x in (0, 1) for y in (0, 1) for z in (0, 1)], np.float32) * size
    sides = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    corners = np.array([(a, b, c, a, c, d) for a, b, c, d in sides], np.int32).ravel()
    return Mesh(
        points=points + np.float32(place),
        corner_point=corners,
        material_index=np.repeat(np.array(slots, np.int32), 2),
        materials=list(materials),
    )


def points_alone(points: Any) -> Mesh:
    return Mesh(
        points=np.asarray(points, np.float32),
        corner_point=np.zeros(0, np.int32),
        material_index=np.zeros(0, np.int32),
        materials=[],
    )


def painted() -> Mesh:
    """Return a white box with green vertices."""
    mesh = box(materials=("White",))
    mesh.colors = [Layer("color", np.tile(np.float32((0, 1, 0, 1)), (8, 1)))]
    return mesh


def without_area() -> Mesh:
    mesh = points_alone([(0, 0, 0), (1, 0, 0), (2, 0, 0)])
    mesh.corner_point, mesh.material_index, mesh.materials = (
        np.arange(3, dtype=np.int32),
        np.zeros(1, np.int32),
        ["Red"],
    )
    return mesh


def bones() -> Scene:
    joints = [
        Joint(
            f"Bone{number}", number - 1, translation=(0, 0, 0.5 * (number > 0)), rotation=(1, 0, 0, 0), scale=(1, 1, 1)
        )
        for number in range(4)
    ]
    return Scene("bones", skeletons=[Skeleton("bones", joints)])


def scenes() -> dict[str, Scene]:
    """Return what is drawn, by name."""
    random = np.random.default_rng(1)
    nodes = {
        "box": [Node("Box", mesh=box())],
        "again": [Node("Box", mesh=box())],
        "sides": [Node("Box", mesh=box(materials=SIDES, slots=(3, 2, 0, 3, 3, 1)))],
        "huge": [Node("Box", mesh=box(1e6))],
        "tiny": [Node("Box", mesh=box(1e-6))],
        "far": [Node("Box", mesh=box(1.0, (1e5, -1e5, 1e5)))],
        "finest": [
            Node("Box", mesh=box()),
            Node("Coarse", mesh=box(5, materials=("Blue",)), lod=1),
            Node("Shape", mesh=box(9, materials=("Blue",)), role=Role.PHYSICS),
        ],
        "physics": [Node("Shape", mesh=box(9), role=Role.PHYSICS)],
        "painted": [Node("Box", mesh=painted())],
        "beside_painted": [Node("Box", mesh=painted()), Node("Other", translation=(0, -1.5, 0), mesh=box())],
        "points": [Node("Cloud", mesh=points_alone(random.normal(size=(300, 3))))],
        "one_point": [Node("Point", mesh=points_alone([(5, 5, 5)]))],
        "line": [Node("Line", mesh=without_area())],
        "flat": [Node("Flat", mesh=box())],
        "nothing": [],
        "node": [Node("Empty")],
    }
    flat = nodes["flat"][0].mesh
    assert flat is not None
    flat.points[:, 2] = 0
    return {name: Scene(name, nodes=some) for name, some in nodes.items()} | {"bones": bones()}


def look(bpy: Any, path: Path) -> dict[str, Any]:
    """Return what is on a picture: pixels from the bottom row up, (H, W, 4), as Blender's own reader finds them."""
    image = bpy.data.images.load(str(path))
    width, height = image.size
    pixels = np.empty(width * height * 4, np.float32)
    image.pixels.foreach_get(pixels)
    pixels = pixels.reshape(height, width, 4)
    rows, columns = np.nonzero(pixels[..., 3] > 0.5)
    return {
        "size": [width, height],
        "covered": float((pixels[..., 3] > 0.5).mean()),
        "extent": [int(np.ptp(columns)) + 1, int(np.ptp(rows)) + 1] if len(rows) else [0, 0],
        "spots": {f"{x},{y}": pixels[int(y * height / 100), int(x * width / 100)].tolist() for x, y in SPOTS},
        "outline": float((pixels[rows, columns, :3].max(axis=1) < OUTLINE).mean()) if len(rows) else 0.0,
        "mean": (pixels[..., :3] * pixels[..., 3:]).sum(axis=(0, 1)).tolist(),
        "content": path.read_bytes().hex(),
    }


SPOTS = [(50, 50), (30, 40), (75, 45), (52, 82)]
"""Per cent from the left and from below."""
OUTLINE = 0.5
"""Brighter than the line around an object, darker than a lit side."""


def drawn(session: BlendSession, folder: Path, name: str, path: Path, content: bytes | None = None) -> dict[str, Any]:
    to = folder / "pictures" / f"{name}.webp"
    try:
        report_pictures.render(session, path, to, content=content)
        return look(session.load_for_changes(), to)
    except ValueError as problem:
        return {"error": str(problem)}


def main(folder: Path) -> None:
    found = {}
    with BlendSession() as session:
        session.start_empty()
        session.load_for_changes().context.scene.render.engine = "BLENDER_WORKBENCH"
        camera = session.load_for_changes().data.objects.new(
            "Camera", session.load_for_changes().data.cameras.new("Camera")
        )
        session.load_for_changes().context.scene.collection.objects.link(camera)
        session.load_for_changes().context.scene.camera = camera
        session.render(session.load_for_changes().context.scene, folder / "first.png")
        print("can draw", flush=True)

        read_scene = api.read_scene
        for name, scene in scenes().items():
            api.read_scene = lambda *_args, scene=scene, **_options: scene
            found[name] = drawn(session, folder, name, Path("some.mesh"))
        api.read_scene = read_scene

        lamp = ROOT / "examples" / "lamp.mesh"
        given: dict[str, tuple[Path, bytes | None]] = {
            "lamp": (lamp, None),
            "in_archive": (Path("library.tar", "lamp.mesh"), lamp.read_bytes()),
            "nod": (ROOT / "examples" / "lamp_nod.anim", None),
            "tunic": (ROOT / "examples" / "tunic.llmesh", None),
            "broken": (Path("broken.mesh"), lamp.read_bytes()[:400]),
            "missing": (folder / "missing.mesh", None),
        }
        for name, (path, content) in given.items():
            found[name] = drawn(session, folder, name, path, content)
        for extension in ("blend", "glb"):
            path = folder / f"cone.{extension}"
            make_cone(session.load_for_changes(), path)
            found[extension] = drawn(session, folder, extension, path)
        path = folder / "textured.blend"
        make_textured_plane(session.load_for_changes(), path)
        found["textured"] = drawn(session, folder, "textured", path)
        found["files"] = {"names": sorted(path.name for path in (folder / "pictures").iterdir())}
    (folder / "found.json").write_text(json.dumps(found), "utf-8")


def make_cone(bpy: Any, path: Path) -> None:
    """Save a blue cone, beside one that is not to be rendered."""
    bpy.ops.wm.read_homefile(use_factory_startup=True, use_empty=True)
    bpy.ops.mesh.primitive_cone_add(location=(0, 0, 0))
    cone = bpy.context.object
    material = bpy.data.materials.new("Blue")
    if bpy.app.version < (5, 0, 0):
        material.use_nodes = True
    material.diffuse_color = (0.02, 0.05, 0.8, 1.0)
    material.node_tree.nodes["Principled BSDF"].inputs["Base Color"].default_value = material.diffuse_color
    cone.data.materials.append(material)
    if path.suffix == ".blend":
        bpy.ops.mesh.primitive_cone_add(location=(0, -5, 0))
        bpy.context.object.hide_render = True
        bpy.ops.wm.save_as_mainfile(filepath=str(path))
    else:
        bpy.ops.export_scene.gltf(filepath=str(path))


def make_textured_plane(bpy: Any, path: Path) -> None:
    """Save a plane whose material is blue and shows a green image, packed."""
    bpy.ops.wm.read_homefile(use_factory_startup=True, use_empty=True)
    bpy.ops.mesh.primitive_plane_add()
    image = bpy.data.images.new("Green", 2, 2)
    image.pixels = [0.0, 1.0, 0.0, 1.0] * 4
    image.pack()
    material = bpy.data.materials.new("Blue")
    if bpy.app.version < (5, 0, 0):
        material.use_nodes = True
    material.diffuse_color = (0.02, 0.05, 0.8, 1.0)
    nodes = material.node_tree.nodes
    nodes.active = nodes.new("ShaderNodeTexImage")
    nodes.active.image = image
    bpy.context.object.data.materials.append(material)
    bpy.ops.wm.save_as_mainfile(filepath=str(path))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
    leave(0)

"""Files that a source names by path: those beyond its reach are in no output, whatever the formats.

Canaries lie two folders above the sources: a picture, a text, and a mesh with coordinates that no source has.
"""

from __future__ import annotations

import base64
import itertools
import json
import os
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.needs_bpy

SECRET = b"TOP-SECRET"
POINT = 7.25
OUTSIDE = "outside of its folder"
TARGETS = ("glb", "gltf", "fbx", "obj", "usda", "usdz", "blend", "dae", "slm", "timbermesh")
FAST_TARGETS = ("gltf", "obj")


def picture(comment: bytes = SECRET) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + bytes((10, 200, 30)) * 8 for _ in range(8))
    head = struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", head), (b"tEXt", b"Comment\0" + comment), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)


def write_dae(path: Path, image: str) -> None:
    path.write_text(f"""<?xml version="1.0"?>
<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
<library_images><image id="i"><init_from>{image}</init_from></image></library_images>
<library_effects><effect id="e"><profile_COMMON><newparam sid="s"><surface type="2D"><init_from>i</init_from></surface>
</newparam><newparam sid="t"><sampler2D><source>s</source></sampler2D></newparam><technique sid="c"><lambert><diffuse>
<texture texture="t" texcoord="U"/></diffuse></lambert></technique></profile_COMMON></effect></library_effects>
<library_materials><material id="m"><instance_effect url="#e"/></material></library_materials>
<library_geometries><geometry id="g"><mesh><source id="p"><float_array id="pa" count="9">0 0 0 1 0 0 0 1 0</float_array>
<technique_common><accessor source="#pa" count="3" stride="3"><param name="X" type="float"/>
<param name="Y" type="float"/>
<param name="Z" type="float"/></accessor></technique_common></source><vertices id="v"><input semantic="POSITION"
source="#p"/></vertices><source id="u"><float_array id="ua" count="2">0 0</float_array><technique_common><accessor
source="#ua" count="1" stride="2"><param name="S" type="float"/><param name="T" type="float"/></accessor>
</technique_common></source><triangles material="m" count="1"><input semantic="VERTEX" source="#v" offset="0"/>
<input semantic="TEXCOORD" source="#u" offset="1"/><p>0 0 1 0 2 0</p>
</triangles></mesh></geometry></library_geometries><library_visual_scenes><visual_scene id="w"><node id="n" name="n">
<instance_geometry
url="#g"><bind_material><technique_common><instance_material symbol="m" target="#m"/></technique_common></bind_material>
</instance_geometry></node></visual_scene></library_visual_scenes><scene><instance_visual_scene url="#w"/></scene>
</COLLADA>""")


def write_obj(path: Path, image: str, library: str = "a.mtl") -> None:
    path.write_text(f"mtllib {library}\nv 0 0 0\nv 1 0 0\nv 0 1 0\nvt 0 0\nusemtl m\nf 1/1 2/1 3/1\n")
    path.with_name("a.mtl").write_text(f"newmtl m\nmap_Kd {image}\n")


def write_gltf(path: Path, image: str = "", buffer: str = "") -> None:
    points = base64.b64encode(np.float32([0, 0, 0, 1, 0, 0, 0, 1, 0]).tobytes()).decode()
    primitive: dict[str, object] = {"attributes": {"POSITION": 0, "COLOR_0": 1, "TEXCOORD_0": 2}, "material": 0}
    content: dict[str, object] = {
        "asset": {"version": "2.0"},
        "scene": 0,
        "scenes": [{"nodes": [0]}],
        "nodes": [{"mesh": 0}],
        "meshes": [{"primitives": [primitive]}],
        "materials": [{"pbrMetallicRoughness": {"baseColorTexture": {"index": 0}} if image else {}}],
        "buffers": [
            {"byteLength": 36, "uri": f"data:application/octet-stream;base64,{points}"},
            {"byteLength": 12, "uri": buffer or f"data:application/octet-stream;base64,{points[:16]}"},
        ],
        "bufferViews": [{"buffer": 0, "byteLength": 36}, {"buffer": 1, "byteLength": 12}],
        "accessors": [
            {"bufferView": 0, "componentType": 5126, "count": 3, "type": "VEC3", "min": [0, 0, 0], "max": [1, 1, 0]},
            {"bufferView": 1, "componentType": 5121, "normalized": True, "count": 3, "type": "VEC4"},
            {"bufferView": 0, "componentType": 5126, "count": 3, "type": "VEC2"},
        ],
    }
    if image:
        del primitive["attributes"]["COLOR_0"]  # type: ignore[attr-defined]
        content |= {"textures": [{"source": 0}], "images": [{"uri": image}]}
    if path.suffix == ".glb":
        text = json.dumps(content).encode()
        text += b" " * (-len(text) % 4)
        path.write_bytes(struct.pack("<4sIIII", b"glTF", 2, 20 + len(text), len(text), 0x4E4F534A) + text)
    else:
        path.write_text(json.dumps(content))


def write_usda(path: Path, image: str = "", layer: str = "") -> None:
    reference = f"prepend references = @{layer}@</P>" if layer else ""
    shader = (
        f"""def Material "M" {{
token outputs:surface.connect = </R/M/S.outputs:surface>
def Shader "S" {{
uniform token info:id = "UsdPreviewSurface"
token outputs:surface
color3f inputs:diffuseColor.connect = </R/M/T.outputs:rgb>
}}
def Shader "T" {{
uniform token info:id = "UsdUVTexture"
asset inputs:file = @{image}@
float3 outputs:rgb
}}
}}"""
        if image
        else ""
    )
    path.write_text(f"""#usda 1.0
( defaultPrim = "R" )
def Xform "R" {{
def Xform "P" ( {reference} ) {{
}}
{shader}
def Mesh "O" ( prepend apiSchemas = ["MaterialBindingAPI"] ) {{
int[] faceVertexCounts=[3]
int[] faceVertexIndices=[0,1,2]
point3f[] points=[(0,0,0),(1,0,0),(0,1,0)]
{"rel material:binding = </R/M>" if image else ""}
}}
}}
""")


def write_fbx(path: Path, image: str) -> None:
    import bpy

    show_image(triangle("o"), str(path.parent / image))
    bpy.ops.export_scene.fbx(filepath=str(path), path_mode="ABSOLUTE")
    bpy.ops.wm.read_homefile(use_factory_startup=True, use_empty=True)


def with_image(kind: str, path: Path, image: str) -> None:
    writers = {"dae": write_dae, "fbx": write_fbx, "obj": write_obj, "usda": write_usda}
    writers.get(kind, write_gltf)(path, image)


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    """Return the folder of the sources; the canaries are in ``../../secret``."""
    folder = tmp_path / "pack" / "models"
    folder.mkdir(parents=True)
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "scan.png").write_bytes(picture())
    (secret / "key.txt").write_bytes(SECRET * 8)
    (secret / "key.png").write_bytes(SECRET * 8)
    (secret / "far.mtl").write_bytes(b"newmtl m\nKd 0.5 0.25 0.125\n#" + SECRET)
    points = f"[({POINT},0,0),({POINT},1,0),({POINT},0,1)]"
    (secret / "mesh.usda").write_text(
        '#usda 1.0\ndef Mesh "P" {\nint[] faceVertexCounts=[3]\nint[] faceVertexIndices=[0,1,2]\n'
        f"point3f[] points={points}\n}}\n"
    )
    return folder


def leaked(folder: Path) -> list[str]:
    """Return the outputs with a canary: its bytes, its colour as a picture, or its points."""
    marks = (SECRET, b"\x89PNG", f"{POINT}".encode(), np.float32(POINT).tobytes() * 2, b"\xff\xd8\xff")
    files = [path for path in folder.rglob("*") if path.is_file() and "meshferry-batch" not in path.parts]
    return [path.name for path in files if any(mark in path.read_bytes() for mark in marks)]


def spelled(how: str, pack: Path, secret: str) -> str:
    """Return a canary's path as a source names it."""
    full = pack.parents[1] / "secret" / secret
    if how == "link":
        (pack / "link.png").symlink_to(full)
        return "link.png"
    return {"above": f"../../secret/{secret}", "absolute": str(full), "address": full.as_uri()}[how]


def all_images(*targets: str) -> list[object]:
    """Return each source with each spelling and the fast targets, and each source with each other target."""
    ways = [
        (kind, how)
        for kind in ("dae", "fbx", "obj", "gltf", "glb", "usda")
        for how in ("above", "absolute", "address", "link")
        if how != "address" or kind == "dae"
    ]
    rare = [pytest.mark.slow, pytest.mark.any_version]
    return [
        pytest.param(kind, how, target, marks=() if target in FAST_TARGETS else rare)
        for number, (kind, how) in enumerate(ways)
        for place, target in enumerate(targets)
        if (target != kind or kind == "dae") and (target in FAST_TARGETS or place % 3 == number % 3)
    ]


@pytest.mark.parametrize(("kind", "how", "target"), all_images(*TARGETS))
def test_pictures_from_elsewhere_are_in_no_output(meshferry, pack, tmp_path, kind, how, target):
    source, secret = pack / f"a.{kind}", tmp_path / "secret"
    with_image(kind, source, spelled(how, pack, "scan.png"))
    done = meshferry("convert", source, "--to", target, "-o", tmp_path / "out")
    assert done.status == 0 and not leaked(tmp_path / "out")
    if kind != "dae" or target not in {"dae", "slm", "timbermesh"}:  # which know a texture by its path alone
        assert OUTSIDE in done.err and f"--files-from {tmp_path / 'secret'}" in done.err
    if target == FAST_TARGETS[0]:
        strict = meshferry("convert", source, "--to", target, "-o", tmp_path / "strict", "--strict")
        assert strict.status == 1 and not (tmp_path / "strict").exists()
        given = meshferry("convert", source, "--to", target, "-o", tmp_path / "given", "--files-from", secret)
        assert given.status == 0 and OUTSIDE not in given.err and leaked(tmp_path / "given")


@pytest.mark.parametrize("kind", ["dae", "obj", "gltf", "usda"])
@pytest.mark.parametrize("target", ["fbx", "blend"])
def test_what_does_not_begin_as_a_picture_is_none(meshferry, pack, tmp_path, kind, target):
    """A file beside the source may be read, but only a picture takes part in the output."""
    (pack / "key.png").write_bytes(SECRET * 8)
    with_image(kind, pack / f"a.{kind}", "key.png")
    done = meshferry("convert", pack / f"a.{kind}", "--to", target, "-o", tmp_path / "out")
    assert done.status == 0 and not leaked(tmp_path / "out")
    assert "key.png" in done.err


@pytest.mark.parametrize("kind", ["dae", "obj", "gltf", "usda"])
def test_pictures_of_a_pack_are_read(meshferry, pack, tmp_path, kind):
    """Packs have folders ``source`` and ``textures``; searched folders count, and those of a home folder do not."""
    (pack.parent / "textures").mkdir()
    (pack.parent / "textures" / "scan.png").write_bytes(picture())
    with_image(kind, pack / f"a.{kind}", "../textures/scan.png")
    done = meshferry("convert", pack / f"a.{kind}", "--to", "fbx", "-o", tmp_path / "out")
    assert done.status == 0 and OUTSIDE not in done.err and leaked(tmp_path / "out") == ["a.fbx"]


@pytest.mark.parametrize("given", ["", "no such folder"])
def test_files_come_from_folders(meshferry, tmp_path, given):
    done = meshferry("convert", tmp_path / "a.obj", tmp_path / "a.glb", f"--files-from={given}")
    assert done.status == 2 and f"'{given}' is not a folder" in done.err


@pytest.mark.slow
def test_searched_folders_are_within_reach(meshferry, pack, tmp_path):
    with_image("obj", pack / "a.obj", "../../secret/scan.png")
    for command, path in (("convert", tmp_path), ("batch", tmp_path), ("batch", tmp_path / "**/*.obj")):
        out = tmp_path.parent / f"{tmp_path.name} {command} {path.stem[:1] == '*'}"
        assert meshferry(command, path, "--to", "gltf", "-o", out).status == 0
        assert [name for name in leaked(out) if name.endswith(".png")] == ["a.scan.png"]


def test_the_library_reads_no_picture_from_elsewhere(pack, tmp_path):
    import meshferry

    for image, is_left_out in ((tmp_path / "secret" / "scan.png", True), (pack / "beside.png", False)):
        (pack / "beside.png").write_bytes(picture())
        write_dae(pack / "a.dae", str(image))
        scene = meshferry.read(pack / "a.dae")
        assert (scene.materials[0].texture is None) == is_left_out
        assert any(message.is_loss for message in scene.messages) == is_left_out
        written = meshferry.write(scene, tmp_path / "out.dae")
        assert any(path.suffix == ".png" for path in written.files) != is_left_out


def test_the_folder_above_is_not_a_home_folder(pack, monkeypatch):
    from meshferry.io_formats.disk.reach import Reach

    reach = Reach.of(pack / "a.obj")
    textures = pack.parent / "textures" / "a.png"
    assert reach.allows(textures, above=True) and not reach.allows(textures)
    monkeypatch.setenv("HOME", str(pack.parent))
    monkeypatch.setenv("USERPROFILE", str(pack.parent))
    assert not reach.allows(textures, above=True)
    assert not Reach.of(pack.parent / "a.obj").allows(pack.parents[1] / "another user" / "a.png", above=True)
    assert not Reach.of("/models/a.obj").allows("/etc/passwd", above=True)
    assert Reach.of(pack / "a.obj", ["/"]).allows("/etc/passwd")


@pytest.mark.parametrize("kind", ["gltf", "glb", "obj", "usda"])
def test_buffers_layers_and_libraries_from_elsewhere_are_refused(meshferry, pack, tmp_path, kind):
    source = pack / f"a.{kind}"
    secret = {"gltf": "key.txt", "glb": "key.txt", "obj": "far.mtl", "usda": "mesh.usda"}[kind]
    named = f"../../secret/{secret}"
    if kind == "obj":
        write_obj(source, "x.png", named)
    elif kind == "usda":
        write_usda(source, layer=named)
    else:
        write_gltf(source, buffer=named.replace("key", "%6bey"))
    done = meshferry("convert", source, "--to", "fbx", "-o", tmp_path / "out")
    assert done.status == 1 and not leaked(tmp_path / "out")
    assert str(tmp_path / "secret" / secret) in done.err and "--files-from" in done.err
    given = meshferry("convert", source, "--to", "fbx", "-o", tmp_path / "given", "--files-from", tmp_path / "secret")
    assert given.status == 0


ODD_REFERENCES = {
    "address without base64.gltf": "data:/../../../secret/key.txt",
    "image without base64.gltf": "data:/../../../secret/key.txt",
    "dots after a link.gltf": "deep/../../../secret/key.txt",
    "continued line.obj": "mtllib \\ \n../../secret/far.mtl\n",
    "control character.obj": "mtllib\x01../../secret/far.mtl\0.mtl\n",
    "unnamed library.obj": "",
    "expression.usda": '(expressionVariables={string X="mesh"}\nsubLayers=[@`"../../secret/${X}.usda"`@])',
    "bracket.usda": "(subLayers=[@./l[x/mesh.usda@])",
    "damaged layer.usda": "(subLayers=[@./damaged.usda@, @../../secret/mesh.usda@])",
    "clip.usda": """(startTimeCode=1
endTimeCode=2)
over "P" (clips={dictionary default={asset[] assetPaths=[@../../secret/mesh.usda@]
string primPath="/P"
double2[] active=[(1,0)]
double2[] times=[(1,1),(2,2)]}}) {}""",
}


@pytest.mark.skipif(os.name == "nt", reason="some of these names do not exist there")
@pytest.mark.parametrize("name", ODD_REFERENCES)
def test_references_are_read_as_blender_reads_them(meshferry, pack, tmp_path, name):
    source, named = pack / name, ODD_REFERENCES[name]
    (pack / "d1" / "d2" / "d3").mkdir(parents=True)
    (pack / "deep").symlink_to("d1/d2/d3")
    (pack / "l[x").symlink_to(tmp_path / "secret")
    (pack / "unnamed library.mtl").symlink_to(tmp_path / "secret" / "far.mtl")
    (pack / "damaged.usda").write_text("#usda 1.0\ndef {{{\n")
    if source.suffix == ".gltf":
        write_gltf(source, **{"image" if "image" in name else "buffer": named})
    elif source.suffix == ".obj":
        source.write_text(f"{named}v 0 0 0\nv 1 0 0\nv 0 1 0\nusemtl m\nf 1 2 3\n")
    else:
        source.write_text(f"#usda 1.0\n{named}\n")
    done = meshferry("convert", source, tmp_path / "out.fbx")
    assert done.status == 1 and "It refers to" in done.err and "--files-from" in done.err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no FIFOs")
def test_a_buffer_is_no_fifo(meshferry, pack, tmp_path):
    os.mkfifo(pack / "wait")
    write_gltf(pack / "a.gltf", buffer="wait")
    done = meshferry("convert", pack / "a.gltf", tmp_path / "a.obj")
    assert done.status == 1 and "FIFO" in done.err


# -- .blend files -------------------------------------------------------------------------------


def triangle(name: str, at: float = 0.0):
    import bpy

    mesh = bpy.data.meshes.new(name)
    mesh.from_pydata([(at, 0, 0), (at, 1, 0), (at, 0, 1)], [], [(0, 1, 2)])
    obj = bpy.data.objects.new(name, mesh)
    bpy.context.scene.collection.objects.link(obj)
    return obj


def save(path: Path) -> None:
    import bpy

    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    bpy.ops.wm.read_homefile(use_factory_startup=True, use_empty=True)


def show_image(obj, path: str) -> None:
    import bpy

    material = bpy.data.materials.new("m")
    material.use_nodes = True
    image = bpy.data.images.new("scan", 1, 1)
    image.source = "FILE"
    image.filepath_raw = path
    node = material.node_tree.nodes.new("ShaderNodeTexImage")
    node.image = image
    material.node_tree.links.new(node.outputs[0], material.node_tree.nodes["Principled BSDF"].inputs["Base Color"])
    obj.data.uv_layers.new()
    obj.data.materials.append(material)


def import_text(obj, path: str, *, string: bool = False, group: bool = False) -> None:
    """Let a geometry node make geometry of a text: one point for each character."""
    import bpy

    tree = bpy.data.node_groups.new("g", "GeometryNodeTree")
    tree.interface.new_socket("Geometry", in_out="OUTPUT", socket_type="NodeSocketGeometry")
    kinds = ("ImportText", "StringToCurves", "RealizeInstances", "FillCurve")
    chain = [tree.nodes.new(f"GeometryNode{kind}") for kind in kinds] + [tree.nodes.new("NodeGroupOutput")]
    tree.links.new(chain[0].outputs["String"], chain[1].inputs["String"])
    for before, after in itertools.pairwise(chain[1:]):
        tree.links.new(before.outputs[0], after.inputs[0])
    if string or group:
        text = tree.nodes.new("FunctionNodeInputString")
        text.string = path
        sources = [text.outputs[0]]
        if group:
            join = tree.nodes.new("GeometryNodeStringJoin")
            tree.links.new(text.outputs[0], join.inputs["Strings"])
            sources = [join.outputs[0]]
        tree.links.new(sources[0], chain[0].inputs["Path"])
    else:
        chain[0].inputs["Path"].default_value = path
    obj.modifiers.new("g", "NODES").node_group = tree


def faces(path: Path) -> int:
    return path.read_text().count("\nf ")


@pytest.mark.parametrize("how", ["socket", "string", "computed", "nested", "muted"])
def test_nodes_that_read_files_keep_to_the_folder(meshferry, pack, tmp_path, how):
    """Also in a .blend file, which may use other local files as its user does."""
    import bpy

    for folder in (pack, tmp_path / "secret"):
        (folder / "key.txt").write_bytes(SECRET)
        obj = triangle("o")
        import_text(obj, str(folder / "key.txt"), string=how == "string", group=how == "computed")
        if how == "muted":
            nodes, links = bpy.data.node_groups["g"].nodes, bpy.data.node_groups["g"].links
            socket = next(node for node in nodes if "Import" in node.bl_idname).inputs["Path"]
            links.new(nodes.new("FunctionNodeInputString").outputs[0], socket).is_muted = True
        if how == "nested":
            outer = bpy.data.node_groups.new("outer", "GeometryNodeTree")
            outer.interface.new_socket("Geometry", in_out="OUTPUT", socket_type="NodeSocketGeometry")
            inner = outer.nodes.new("GeometryNodeGroup")
            inner.node_tree = bpy.data.node_groups["g"]
            outer.links.new(inner.outputs[0], outer.nodes.new("NodeGroupOutput").inputs[0])
            obj.modifiers["g"].node_group = outer
        save(pack / f"{folder.name}.blend")
    secret, near = pack / "secret.blend", pack / "models.blend"
    done = meshferry("convert", secret, tmp_path / "a.obj")
    assert done.status == 0 and OUTSIDE in done.err and not faces(tmp_path / "a.obj")
    assert how != "computed" or "add --files-from /\n" in done.err
    assert meshferry("convert", secret, tmp_path / "b.obj", "--files-from", "/").status == 0
    assert faces(tmp_path / "b.obj")
    done = meshferry("convert", near, tmp_path / "c.obj")
    assert bool(faces(tmp_path / "c.obj")) == (how != "computed") == (OUTSIDE not in done.err)


def test_a_blend_file_uses_files_of_its_user(meshferry, pack, tmp_path):
    """Without ``--files-from``, pictures and libraries elsewhere count, but only pictures are pictures."""
    import bpy

    secret = tmp_path / "secret"
    triangle("private", POINT)
    save(secret / "private.blend")
    show_image(triangle("o"), str(secret / "scan.png"))
    with bpy.data.libraries.load(str(secret / "private.blend"), link=True) as (_, wanted):
        wanted.objects = ["private"]
    bpy.context.scene.collection.objects.link(wanted.objects[0])
    save(pack / "a.blend")
    done = meshferry("convert", pack / "a.blend", "--to", "gltf", "-o", tmp_path / "out")
    assert done.status == 0 and "a.scan.png" in leaked(tmp_path / "out") and OUTSIDE not in done.err
    assert "2 objects" in done.out
    done = meshferry("convert", pack / "a.blend", "--to", "gltf", "-o", tmp_path / "near", "--files-from", pack)
    assert done.status == 0 and not leaked(tmp_path / "near") and "1 object" in done.out
    assert "2 files outside of its folder left out" in done.err
    show_image(triangle("o"), str(secret / "key.png"))
    save(pack / "text.blend")
    for target in FAST_TARGETS:
        done = meshferry("convert", pack / "text.blend", "--to", target, "-o", tmp_path / "text")
        assert done.status == 0 and not leaked(tmp_path / "text") and "not a picture" in done.err


@pytest.mark.parametrize("how", ["tiles", "sequence"])
def test_all_files_of_an_image_are_judged(meshferry, pack, tmp_path, how):
    import bpy

    first = "1001" if how == "tiles" else "0001"
    (pack / f"a.{first}.png").write_bytes(picture(b"public"))
    (pack / f"a.{int(first) + 1:04}.png").symlink_to(tmp_path / "secret" / "scan.png")
    obj = triangle("o")
    show_image(obj, str(pack / ("a.<UDIM>.png" if how == "tiles" else "a.0001.png")))
    image = bpy.data.images["scan"]
    image.source = "TILED" if how == "tiles" else "SEQUENCE"
    if how == "tiles":
        image.tiles.new(1002)
    save(pack / "a.blend")
    done = meshferry("convert", pack / "a.blend", tmp_path / "a.obj", "--files-from", pack)
    assert done.status == 0 and OUTSIDE in done.err and not leaked(pack.parent / "none")


def test_linked_data_is_judged_by_its_own_folder(meshferry, pack, tmp_path):
    """Relative paths in a library start at its folder; nodes and modifiers of linked data are removed, too."""
    import bpy

    (tmp_path / "secret" / "library").mkdir()
    import_text(triangle("o"), "//../key.txt")
    bpy.context.preferences.filepaths.use_relative_paths = False
    save(tmp_path / "secret" / "library" / "l.blend")
    with bpy.data.libraries.load(str(tmp_path / "secret" / "library" / "l.blend"), link=True) as (_, wanted):
        wanted.objects = ["o"]
    bpy.context.scene.collection.objects.link(wanted.objects[0])
    save(pack / "a.blend")
    done = meshferry("convert", pack / "a.blend", tmp_path / "a.obj")
    assert f"'{tmp_path / 'secret' / 'key.txt'}'" in done.err and not faces(tmp_path / "a.obj")
    done = meshferry("convert", pack / "a.blend", tmp_path / "b.obj", "--files-from", tmp_path)
    assert OUTSIDE not in done.err
    assert faces(tmp_path / "b.obj") or bpy.app.version < (5, 0)  # which does not read it either


def test_caches_from_elsewhere_are_left_out(meshferry, pack, tmp_path):
    header = struct.pack("<12siiffi", b"POINTCACHE2\0", 1, 3, 0.0, 1.0, 1)
    (tmp_path / "secret" / "a.pc2").write_bytes(header + np.full((3, 3), POINT, np.float32).tobytes())
    modifier = triangle("o").modifiers.new("cache", "MESH_CACHE")
    modifier.cache_format = "PC2"
    modifier.filepath = str(tmp_path / "secret" / "a.pc2")
    save(pack / "a.blend")
    assert meshferry("convert", pack / "a.blend", tmp_path / "shown.obj").status == 0
    assert leaked(tmp_path) and f"{POINT}" in (tmp_path / "shown.obj").read_text()
    done = meshferry("convert", pack / "a.blend", tmp_path / "near.obj", "--files-from", pack)
    assert OUTSIDE in done.err and f"{POINT}" not in (tmp_path / "near.obj").read_text()


def test_bakes_keep_to_their_folder(meshferry, pack, tmp_path):
    """Names in a bake are paths below its folder; others bring bytes of any file into the points."""
    import bpy

    obj = triangle("o", 3.5)
    tree = bpy.data.node_groups.new("g", "GeometryNodeTree")
    for side in ("INPUT", "OUTPUT"):
        tree.interface.new_socket("Geometry", in_out=side, socket_type="NodeSocketGeometry")
    nodes = [tree.nodes.new(kind) for kind in ("NodeGroupInput", "GeometryNodeBake", "NodeGroupOutput")]
    if not len(nodes[1].bake_items):  # since Blender 5.0
        nodes[1].bake_items.new("GEOMETRY", "Geometry")
    for before, after in itertools.pairwise(nodes):
        tree.links.new(before.outputs[0], after.inputs[0])
    modifier = obj.modifiers.new("g", "NODES")
    modifier.node_group = tree
    bpy.ops.wm.save_as_mainfile(filepath=str(pack / "a.blend"))
    modifier.bake_target, modifier.bake_directory = "DISK", "//bake"
    modifier.bakes[0].bake_mode = "STILL"
    bake = modifier.bakes[0].bake_id
    with bpy.context.temp_override(object=obj, active_object=obj):
        bpy.ops.object.geometry_node_bake_single(session_uid=obj.session_uid, modifier_name="g", bake_id=bake)
    obj.data.vertices[0].co.x = 0.0
    save(pack / "a.blend")
    done = meshferry("convert", pack / "a.blend", tmp_path / "own.obj")
    assert OUTSIDE not in done.err and (tmp_path / "own.obj").read_text().count("v 3.5") == 3
    (text,) = pack.rglob("*.json")
    names = text.read_text()
    (tmp_path / "secret" / "points").write_bytes(np.full(1000, POINT, np.float32).tobytes())
    start = names.index("00001_00000.blob", names.index('"position"'))
    text.write_text(names[:start] + r"..\u002f../../../../secret/points" + names[start + 16 :])
    for options in ((), ("--files-from", pack)):
        done = meshferry("convert", pack / "a.blend", tmp_path / "a.obj", *options)
        assert OUTSIDE in done.err and f"{POINT}" not in (tmp_path / "a.obj").read_text()


def test_all_layers_of_a_cache_are_judged(pack, tmp_path):
    import bpy
    from meshferry.blender_data.addon_formats.outside_files import leave_out
    from meshferry.io_formats.core.messages import Report
    from meshferry.io_formats.disk.reach import Reach

    write_usda(pack / "a.usda")
    bpy.ops.cachefile.open(filepath=str(pack / "a.usda"))
    bpy.data.cache_files[0].layers.new(str(tmp_path / "secret" / "mesh.usda"))
    leave_out(Reach.of(pack / "a.blend", [str(pack)]), Report(), is_blend=True)
    assert not bpy.data.cache_files


# -- images without a file of their own ---------------------------------------------------------


@pytest.mark.parametrize("target", ["obj", "gltf", "usda"])
def test_no_picture_of_the_user_is_overwritten(meshferry, tmp_path, target):
    """Generated, packed and linked images get names that begin with that of the output."""
    import bpy

    mine = tmp_path / "mine"
    show_image(triangle("linked"), "")
    bpy.data.images["scan"].pack(data=picture(), data_len=len(picture()))
    bpy.data.images["scan"].name = "linked"
    save(tmp_path / "library.blend")
    with bpy.data.libraries.load(str(tmp_path / "library.blend"), link=True) as (_, wanted):
        wanted.objects = ["linked"]
    bpy.context.scene.collection.objects.link(wanted.objects[0])
    for name in ("painted", "generated", "a\nb\x1b[31m", "CON", ".."):
        show_image(triangle(name), "")
        image = bpy.data.images["scan"]
        image.source = "GENERATED"
        image.scale(4, 4)
        image.pixels = [0.25, 0.5, 0.75, 1.0] * 16
        image.name = name
        if name == "painted":
            image.pack()
    save(tmp_path / "crate.blend")
    names = ("painted", "generated", "linked", "scan", "CON")
    for name in names:
        for folder in (mine, mine / "textures"):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{name}.png").write_text("mine")
    for _ in range(2):
        done = meshferry("convert", tmp_path / "crate.blend", mine / f"crate.{target}")
        assert done.status == 0
        for name in names:
            assert (mine / f"{name}.png").read_text() == (mine / "textures" / f"{name}.png").read_text() == "mine"
    made = [path.name for path in mine.rglob("crate.*.png")]
    assert len(made) == 6 and all(name.isprintable() for name in made)


def test_names_of_images_and_volumes_are_no_paths(tmp_path):
    """The exporter for .usdz, for example, writes generated images under their names."""
    import bpy
    from meshferry.blender_data.addon_formats.addon_export import make_local

    made = [bpy.data.images.new("../../mine", 4, 4), bpy.data.volumes.new("..\\..\\mine")]
    make_local()
    assert [block.name for block in made] == [".._.._mine"] * 2
    bpy.data.batch_remove(made)


def test_painted_pixels_are_those_of_the_file(tmp_path):
    """Also in an image with a file, whose last strokes were not saved."""
    import bpy
    from meshferry.blender_data.addon_formats.image_files import own_image_files

    (tmp_path / "a.png").write_bytes(picture())
    image = bpy.data.images.load(str(tmp_path / "a.png"))
    image.pixels = [1.0, 0.0, 0.0, 1.0] * 64
    (tmp_path / "out").mkdir()
    with own_image_files(tmp_path / "out", "crate", [image]):
        (made,) = (tmp_path / "out").rglob("*.png")
        assert made.name == "crate.a.png" and SECRET not in made.read_bytes()
        again = bpy.data.images.load(str(made))
        assert tuple(again.pixels[:4]) == (1.0, 0.0, 0.0, 1.0)
    assert tuple(image.pixels[:4]) == (1.0, 0.0, 0.0, 1.0) and (tmp_path / "a.png").read_bytes() == picture()

"""Pictures of materials in files that Blender's exporters write, and in upload sets: all are there, or named."""

import shutil
from pathlib import Path

import pytest
from outputs import opened

pytestmark = pytest.mark.needs_bpy

KINDS = ("fbx", "obj", "usd", "usdz", "glb", "gltf")
NAMES = (
    *("a/col.png", "b/col.png", "c/COL.png", "a/wood", "b/wood", "a/old.oak.png", "a/old_oak.png"),
    *("a/my wood.png", "a/Ж ü.png", "b/Ж ü.png", "a/wrong.tga", "a/b.1001.png", "a/t.jpeg"),
)


@pytest.fixture
def blend(tmp_path):
    """Return a function that empties Blender's file, edits it and saves it as .blend file."""
    import bpy

    for kind in (*KINDS, "dae"):
        (tmp_path / kind).mkdir()

    def make(edit, *arguments):
        bpy.ops.wm.read_homefile(use_factory_startup=True, use_empty=True)
        edit(bpy, tmp_path / "in", *arguments)
        bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "x.blend"))
        return tmp_path / "x.blend"

    return make


def color_of(number):
    return (number % 3 / 2, number // 3 % 3 / 2, number // 9 % 3 / 2)


def picture(bpy, path, number=0):
    path.parent.mkdir(parents=True, exist_ok=True)
    image = bpy.data.images.new("made", 8, 8)
    image.pixels = [*color_of(number), 1.0] * 64
    image.file_format = "JPEG" if path.suffix == ".jpeg" else "PNG"
    image.save(filepath=str(path))
    bpy.data.images.remove(image)
    return path


def show(bpy, material, image, socket="Base Color"):
    node = material.node_tree.nodes.new("ShaderNodeTexImage")
    node.image = image
    material.node_tree.links.new(node.outputs[0], material.node_tree.nodes["Principled BSDF"].inputs[socket])
    return node


def squares(bpy, count=1):
    """Return materials, each of a square of one mesh; the squares are in neighbouring tiles of the UV map."""
    mesh = bpy.data.meshes.new("P")
    ends = [(x, y, 0) for x in range(count + 1) for y in (0, 1)]
    mesh.from_pydata(ends, [], [(2 * n, 2 * n + 2, 2 * n + 3, 2 * n + 1) for n in range(count)])
    uvs = mesh.uv_layers.new()
    for loop, uv in zip(mesh.loops, uvs.uv, strict=True):
        uv.vector = mesh.vertices[loop.vertex_index].co.xy
    for number, face in enumerate(mesh.polygons):
        mesh.materials.append(bpy.data.materials.new(f"m{number}"))
        mesh.materials[number].use_nodes = True
        face.material_index = number
    bpy.context.scene.collection.objects.link(bpy.data.objects.new("P", mesh))
    return list(mesh.materials)


def of_names(bpy, folder):
    """Each name on disk, packed, and generated."""
    materials = squares(bpy, 2 * len(NAMES) + 2)
    for number, material in enumerate(materials):
        if number < 2 * len(NAMES):
            path = folder / str(number % 2) / NAMES[number // 2]
            image = bpy.data.images.load(str(picture(bpy, path, number)))
        else:
            image = bpy.data.images.new(("col", "COL")[number % 2], 8, 8)
            image.pixels = [*color_of(number), 1.0] * 64
        if number % 2 or image.source == "GENERATED":
            image.pack()
        show(bpy, material, image)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_each_material_has_its_own_picture(meshferry, blend, tmp_path, kind):
    import bpy

    if kind.startswith("usd") and "usd_export" not in dir(bpy.ops.wm):
        pytest.skip("this Blender is built without USD")
    out = tmp_path / kind / f"x.{kind}"
    done = meshferry("convert", blend(of_names), out, "--strict")
    assert (done.status, done.err) == (0, ""), kind
    shutil.rmtree(tmp_path / "in")
    assert meshferry("convert", out, tmp_path / "again.blend").status == 0
    opened(tmp_path / "again.blend")
    found = {}
    for material in bpy.data.materials:
        for node in material.node_tree.nodes if material.node_tree else ():
            if node.type == "TEX_IMAGE" and node.image and len(node.image.pixels):
                found[material.name] = tuple(round(2 * value) / 2 for value in node.image.pixels[:3])
    assert found == {f"m{number}": color_of(number) for number in range(2 * len(NAMES) + 2)}
    names = [path.name.casefold() for path in out.parent.rglob("*")]
    assert len(names) == len(set(names))
    for path in out.parent.rglob("x.*"):
        assert path.is_dir() or not path.read_bytes().startswith(b"\x89PNG") or path.suffix == ".png"


def of_tiles(bpy, folder):
    for number in (1001, 1002):
        picture(bpy, folder / f"tile.{number}.png", number % 4)
    image = bpy.data.images.load(str(folder / "tile.1001.png"))
    image.source, image.filepath, image.name = "TILED", str(folder / "tile.<UDIM>.png"), "tile"
    if len(image.tiles) == 1:
        image.tiles.new(1002)
    (material,) = squares(bpy)
    bpy.data.meshes["P"].uv_layers[0].uv[1].vector = bpy.data.meshes["P"].uv_layers[0].uv[2].vector = (2.0, 0.5)
    show(bpy, material, image)


def of_sequence(bpy, folder, socket="Base Color", count=3):
    for number in range(1, count + 1):
        picture(bpy, folder / f"run{number:04}.png", number)
    image = bpy.data.images.load(str(folder / "run0001.png"))
    image.source, image.name = "SEQUENCE", "run"
    show(bpy, *squares(bpy), image, socket).image_user.frame_duration = count


def of_film(bpy, folder, socket="Base Color"):
    render = bpy.context.scene.render
    if hasattr(render.image_settings, "media_type"):
        render.image_settings.media_type = "VIDEO"
    render.image_settings.file_format, render.ffmpeg.format, render.ffmpeg.codec = "FFMPEG", "MPEG4", "H264"
    render.resolution_x = render.resolution_y = 64
    render.filepath, bpy.context.scene.frame_end = str(folder / "film.mp4"), 2
    editor = bpy.context.scene.sequence_editor_create()
    strips = editor.strips if hasattr(editor, "strips") else editor.sequences
    end = "length" if "length" in strips.bl_rna.functions["new_effect"].parameters else "frame_end"
    strips.new_effect(name="c", type="COLOR", channel=1, frame_start=1, **{end: 3})
    bpy.ops.render.render(animation=True)
    bpy.context.scene.sequence_editor_clear()
    show(bpy, *squares(bpy), bpy.data.images.load(render.filepath), socket)


def of_sheen(bpy, folder):
    (material,) = squares(bpy)
    show(bpy, material, bpy.data.images.load(str(picture(bpy, folder / "sheen.png"))), "Sheen Tint")
    material.node_tree.nodes["Principled BSDF"].inputs["Sheen Weight"].default_value = 1.0


def load(bpy, folder, name):
    return bpy.data.images.load(str(picture(bpy, folder / name)))


def of_mathematics(bpy, folder):
    """The first of two inputs of equal names is 0, which does not switch the second one off."""
    (material,) = squares(bpy)
    tree = material.node_tree
    most = show(bpy, material, load(bpy, folder, "rough.png")), tree.nodes.new("ShaderNodeMath")
    most[1].operation, most[1].inputs[0].default_value = "MAXIMUM", 0.0
    tree.links.new(most[0].outputs[0], most[1].inputs[1])
    tree.links.remove(tree.nodes["Principled BSDF"].inputs["Base Color"].links[0])
    tree.links.new(most[1].outputs[0], tree.nodes["Principled BSDF"].inputs["Roughness"])


def of_huge(bpy, _folder):
    show(bpy, *squares(bpy), bpy.data.images.new("huge", 1 << 14, 1 << 13))


def of_gloss(bpy, folder, is_mixed=False):
    """A shader that these formats do not know, alone or mixed with a metal; upload sets bake it."""
    (material,) = squares(bpy)
    tree = material.node_tree
    shader, end = tree.nodes["Principled BSDF"], tree.nodes["Material Output"].inputs[0]
    shader.inputs["Metallic"].default_value = 1.0
    gloss, mix = tree.nodes.new("ShaderNodeBsdfGlossy"), tree.nodes.new("ShaderNodeMixShader")
    image = tree.nodes.new("ShaderNodeTexImage")
    image.image = load(bpy, folder, "gloss.png")
    for start, entry in ((image, gloss.inputs[0]), (gloss, mix.inputs[1]), (shader, mix.inputs[2])):
        tree.links.new(start.outputs[0], entry)
    tree.links.new((mix if is_mixed else gloss).outputs[0], end)
    if not is_mixed:
        tree.nodes.remove(shader)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("edit", "name", "kinds"),
    [
        (of_tiles, "tile", ("obj", "fbx", "dae")),
        (of_sequence, "run", ("obj", "fbx", "glb", "dae")),
        (lambda bpy, folder: of_sequence(bpy, folder, "Roughness"), "run", ("glb", "dae")),
        (of_film, "film", ("glb", "dae")),
        (lambda bpy, folder: of_film(bpy, folder, "Roughness"), "film", ("glb", "dae")),
        (of_sheen, "sheen.png", ("obj", "fbx", "dae")),
        (of_mathematics, "rough.png", ("obj", "fbx")),
        (of_huge, "huge", ("obj", "fbx")),
        (of_gloss, "gloss.png", ("glb", "obj")),
        (lambda bpy, folder: of_gloss(bpy, folder, is_mixed=True), "gloss.png", ("glb", "obj")),
    ],
    ids=[
        *("tiles", "sequence", "rough sequence", "film", "rough film", "sheen"),
        *("mathematics", "huge", "gloss", "mixed gloss"),
    ],
)
def test_pictures_that_are_left_out_are_named_once(meshferry, blend, tmp_path, edit, name, kinds):
    source = blend(edit)
    for kind in kinds:
        out = tmp_path / kind / f"x.{kind}"
        done = meshferry("convert", source, out)
        lines = [line for line in done.err.splitlines() if name in line and "exporting image" not in line]
        assert done.status == 0 and len(lines) == 1, (kind, done.err)
        out.unlink()
        for more in ((), ("--dry-run",)):
            done = meshferry("convert", source, out, "--strict", *more)
            # The error names the first loss alone, which may be another setting of the same shader.
            assert done.status == 1 and Path(name).stem in done.err and not out.exists(), kind


def of_idle(bpy, folder):
    """Pictures without effect, in an unused slot, and of inputs that a constant 0 switches off."""
    materials = squares(bpy, 2)
    mesh = bpy.data.meshes["P"]
    mesh.polygons[1].material_index = 0

    def load(name):
        return bpy.data.images.load(str(picture(bpy, folder / f"{name}.png")))

    for socket in ("Base Color", "Emission Color", "Coat Roughness", "Sheen Tint"):
        show(bpy, materials[0], load(socket), socket)
    tree = materials[0].node_tree
    shader = tree.nodes["Principled BSDF"]
    bump, mix = tree.nodes.new("ShaderNodeNormalMap"), tree.nodes.new("ShaderNodeMixShader")
    bump.inputs["Strength"].default_value = mix.inputs[0].default_value = 0.0
    other = tree.nodes.new("ShaderNodeBsdfDiffuse")
    for name, socket in (("normal", bump.inputs["Color"]), ("other", other.inputs["Color"]), ("free", None)):
        node = tree.nodes.new("ShaderNodeTexImage")
        node.image = load(name)
        if socket is not None:
            tree.links.new(node.outputs[0], socket)
    tree.links.new(bump.outputs[0], shader.inputs["Normal"])
    tree.links.new(shader.outputs[0], mix.inputs[1])
    tree.links.new(other.outputs[0], mix.inputs[2])
    tree.links.new(mix.outputs[0], tree.nodes["Material Output"].inputs["Surface"])
    still = load("still1")
    still.source = "SEQUENCE"
    show(bpy, materials[1], still)


def test_pictures_without_effect_are_not_missed(meshferry, blend, tmp_path):
    source = blend(of_idle)
    for kind in ("obj", "fbx", "glb"):
        done = meshferry("convert", source, tmp_path / kind / f"x.{kind}", "--strict")
        assert (done.status, done.err) == (0, ""), kind
    assert meshferry("convert", source, tmp_path / "dae" / "x.dae", "--strict").status == 0


def test_the_only_picture_of_a_sequence_is_whole(meshferry, blend, tmp_path):
    source = blend(of_sequence, "Base Color", 1)
    for kind in ("obj", "glb"):
        assert meshferry("convert", source, tmp_path / kind / f"x.{kind}", "--strict").status == 0


def test_packed_tiles_come_along(meshferry, blend, tmp_path):
    def edit(bpy, folder):
        of_tiles(bpy, folder)
        bpy.data.images["tile"].pack()
        shutil.rmtree(folder)

    assert meshferry("convert", blend(edit), tmp_path / "gltf" / "x.gltf", "--strict").status == 0
    assert {path.name for path in (tmp_path / "gltf").glob("*.png")} >= {"x.tile.1001.png"}


@pytest.mark.parametrize("is_early", [False, True])
def test_images_are_as_before_after_an_error(tmp_path, clean_blender, is_early):
    from meshferry.blender_data.addon_formats.image_files import own_image_files

    def state():
        return {
            one: (one.name, one.filepath, one.source, one.packed_file and bytes(one.packed_file.data), *one.pixels)
            for one in bpy.data.images
        }

    bpy = clean_blender
    images = [load(bpy, tmp_path, path) for path in ("a/col.png", "b/other.png", "c/col.png")]
    for image, name in zip(images, ("0", "col.png", "other.png"), strict=True):
        image.name = name
    images[2].pack()
    images[1].source = "SEQUENCE"
    before = state()
    (tmp_path / "own").mkdir()
    if is_early:
        (tmp_path / "own" / "2").touch()

    def use():
        with own_image_files(tmp_path / "own", "", images) as files:
            assert {image.name for image in images} == {"col.png", "other.png", "col_2.png"}
            assert {name for name, _ in files.values()} == {"0", "col.png", "other.png"} and state() != before
            raise FileExistsError

    with pytest.raises(FileExistsError):
        use()
    assert state() == before


def test_a_dry_run_without_pictures_does_not_export(meshferry, blend, tmp_path, monkeypatch):
    from meshferry.cli.conversions import blender_exchange

    source = blend(lambda bpy, _folder: squares(bpy))
    monkeypatch.setattr(blender_exchange, "_run", None)
    for kind in ("fbx", "glb"):
        assert meshferry("convert", source, tmp_path / kind / f"x.{kind}", "--dry-run", "--strict").status == 0


def test_names_of_pictures_are_not_printed(meshferry, blend, tmp_path):
    assert meshferry("convert", blend(of_sheen), tmp_path / "x.glb").status == 0
    done = meshferry("convert", tmp_path / "x.glb", tmp_path / "obj" / "x.obj")
    assert len(done.out.splitlines()) == 1 and " -> " in done.out


def test_files_of_upload_sets_have_the_extension_of_their_content(meshferry, blend, tmp_path):
    assert meshferry("convert", blend(of_names), tmp_path / "dae" / "x.dae", "--strict").status == 0
    made = [path for path in (tmp_path / "dae").iterdir() if path.suffix != ".dae"]
    assert len(made) == 2 * len(NAMES) + 2 == len({path.name.casefold() for path in made})
    for path in made:
        assert path.suffix == {b"\x89PN": ".png", b"\xff\xd8\xff": ".jpeg"}[path.read_bytes()[:3]]

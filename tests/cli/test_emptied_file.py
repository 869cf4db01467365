"""One file of Blender for many imports: it is emptied in between, and nothing of one may be found in the next."""

import conversion_models as models
import pytest

pytestmark = pytest.mark.needs_bpy


@pytest.fixture
def session():
    from meshferry.cli.conversions.blend_files import BlendSession

    with BlendSession() as session:
        session.start_empty()
        yield session


def import_scene(session, scene, path, **options):
    from meshferry.blender_data.importing.import_options import ImportOptions

    given = {"use_file_frame_rate": True, "vertex_animation": "SHAPE_KEYS"} | options
    return session.import_scene(scene, ImportOptions.of(given), path)


def everything():
    """Return a scene with all kinds of data blocks, also a texture, at a rate and with a range of its own."""
    from meshferry.io_formats.core.scene import Material
    from meshferry.io_formats.core.shading import Texture

    scene = models.make_everything()
    scene.clips[0].fps = 59.94
    scene.materials = [Material("Steel", texture=Texture("steel", "steel.png"))]
    return scene


def homefiles_read(session, monkeypatch):
    """Return a list that gets an entry for each empty file that Blender reads."""
    read = []
    run = session._run

    def noted(operator, **arguments):
        if "read_homefile" in operator.idname():
            read.append(operator)
        run(operator, **arguments)

    monkeypatch.setattr(session, "_run", noted)
    return read


def saved_size(session, path):
    session.save(path, compress=False)
    return path.stat().st_size


def write_picture(path):
    import bpy

    picture = bpy.data.images.new("made", 2, 2)
    picture.filepath_raw, picture.file_format = str(path), "PNG"
    picture.save()
    bpy.data.images.remove(picture)


def test_nothing_stays_of_an_import(session, tmp_path, monkeypatch):
    import bpy
    from scene_snapshot import changes, snapshot

    write_picture(tmp_path / "steel.png")
    before = snapshot()
    read = homefiles_read(session, monkeypatch)
    for _ in range(2):
        made = import_scene(session, everything(), tmp_path / "model.x", frame_start=300)
        assert made.armatures and bpy.data.actions and bpy.data.shape_keys and bpy.data.images and bpy.data.materials
        assert made.collection.name == "model", "names are those of a first import"
        assert (bpy.context.scene.frame_start, bpy.context.scene.render.fps) == (300, 60)
        session.start_empty()
        assert changes(before, snapshot()) == {}
        assert bpy.context.view_layer.active_layer_collection.collection == bpy.context.scene.collection
    assert not read


def test_files_are_as_large_as_after_one_import(session, tmp_path, monkeypatch):
    read = homefiles_read(session, monkeypatch)
    sizes = []
    for _ in range(3):
        empty = saved_size(session, tmp_path / "empty.blend")
        import_scene(session, everything(), tmp_path / "model.x")
        sizes.append((empty, saved_size(session, tmp_path / "full.blend")))
        session.start_empty()
    assert len(set(sizes)) == 1 and not read


def test_what_else_was_done_goes_with_the_file(session):
    import bpy

    usual = bpy.context.scene.render.resolution_x
    session.load_for_changes().context.scene.render.resolution_x = 7
    session.start_empty()
    assert bpy.context.scene.render.resolution_x == usual
    add = session.load_for_changes().ops.scene.new
    session.start_empty()
    session.call(add, type="EMPTY")  # operators may do anything
    assert len(bpy.data.scenes) == 2
    session.start_empty()
    assert len(bpy.data.scenes) == 1


def test_a_broken_import_starts_anew(session, tmp_path, monkeypatch):
    from meshferry.io_formats.core.errors import MeshferryError

    read = homefiles_read(session, monkeypatch)
    with pytest.raises(MeshferryError, match=r"missing\.blend"):
        import_scene(session, everything(), tmp_path / "model.x", material_library=str(tmp_path / "missing.blend"))
    session.start_empty()
    assert len(read) == 1


def test_linked_libraries_start_anew(session, tmp_path, monkeypatch):
    import bpy

    bpy.data.materials.new("Steel").use_fake_user = True
    session.save(tmp_path / "library.blend", compress=False)
    session.load_for_changes()
    session.start_empty()
    read = homefiles_read(session, monkeypatch)
    made = import_scene(session, everything(), tmp_path / "model.x", material_library=str(tmp_path / "library.blend"))
    assert bpy.data.libraries and made.objects
    session.start_empty()
    assert len(read) == 1 and not bpy.data.libraries and not bpy.data.materials


@pytest.mark.parametrize("kind", ["glb", "obj"])
def test_nothing_of_one_export_is_found_in_the_next(meshferry, tmp_path, monkeypatch, kind):
    """Exporters change the scene: its name, its scale, the frames, what is selected."""
    from meshferry.cli.conversions.blend_files import BlendSession

    sources = []
    for number, path in enumerate(models.write_ours(tmp_path).values()):
        if path.suffix in {".timbermesh", ".mesh"} or (path.suffix == ".anim" and kind == "glb"):
            sources.append(path.rename(tmp_path / f"model_{number}{path.suffix}"))
    assert len(sources) > 1
    (tmp_path / "alone").mkdir()
    for source in sources:
        assert meshferry("convert", source, tmp_path / "alone" / f"{source.stem}.{kind}").status == 0
    read = []
    run = BlendSession._run

    def noted(session, operator, **arguments):
        read.extend([operator] if "read_homefile" in operator.idname() else [])
        return run(session, operator, **arguments)

    monkeypatch.setattr(BlendSession, "_run", noted)
    assert meshferry("convert", *sources, "--to", kind, "-o", tmp_path / "together").status == 0
    assert len(read) == 1
    for source in sources:
        name = f"{source.stem}.{kind}"
        assert (tmp_path / "together" / name).read_bytes() == (tmp_path / "alone" / name).read_bytes()

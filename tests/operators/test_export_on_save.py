"""Re-export on save: what is queued, asked, written and reported. Timers and dialogs of the window are stood in for."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import courtyard
import pytest
from example_files import EXAMPLES, FORMATS, imported

pytestmark = pytest.mark.needs_bpy


class Saving:
    """A Blender in which the preference is on."""

    def __init__(self, bpy: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        from meshferry.blender_data import file_records
        from meshferry.operators.files import export_on_save, save_queue

        self.bpy, self.folder, self.queue = bpy, folder, save_queue
        self.reports: list[tuple[str, str]] = []
        self.asked: list[list[str]] = []
        """The names of the files in each question."""
        self.is_agreed = True
        self.is_idle = True
        monkeypatch.setattr(file_records, "user_folder", lambda: folder / "settings")
        monkeypatch.setattr(save_queue, "is_interactive", lambda: True)
        monkeypatch.setattr(save_queue, "idle_window", lambda: bpy.context.window if self.is_idle else None)
        monkeypatch.setattr(export_on_save, "report", lambda _operator, level, text: self.reports.append((level, text)))

        def ask() -> None:
            operator = export_on_save.WM_OT_meshferry_allow_on_save
            self.asked.append([path.name for path in export_on_save._split(bpy.context.scene)[1]])
            if self.is_agreed:
                bpy.ops.wm.meshferry_allow_on_save()
            else:
                operator.cancel(None, bpy.context)

        monkeypatch.setattr(save_queue, "ask", ask)

    def save(self, name: str = "lamp.blend", *, copy: bool = False) -> list[tuple[str, str]]:
        """Save the .blend file and wait until nothing is left to do; return the reports."""
        self.bpy.ops.wm.save_as_mainfile(filepath=str(self.folder / name), copy=copy)
        return self.wait()

    def wait(self) -> list[tuple[str, str]]:
        """Let the timers run until none is left; return the new reports."""
        before = len(self.reports)
        for timer in (self.queue.start_when_idle, self.queue.report_missed):
            while self.bpy.app.timers.is_registered(timer):
                self.bpy.app.timers.unregister(timer)
                for _turn in range(10):
                    if timer() is None:
                        break
        return self.reports[before:]

    def open(self, name: str = "lamp.blend") -> list[tuple[str, str]]:
        """Open a .blend file; return the reports."""
        for timer in (self.queue.start_when_idle, self.queue.report_missed):  # as Blender does
            if self.bpy.app.timers.is_registered(timer):
                self.bpy.app.timers.unregister(timer)
        self.bpy.ops.wm.open_mainfile(filepath=str(self.folder / name))
        return self.wait()

    def mesh(self) -> Any:
        """Return the largest mesh, active and in Object mode."""
        objects = [obj for obj in self.bpy.context.scene.objects if obj.type == "MESH"]
        found = max(objects, key=lambda obj: len(obj.data.vertices))
        self.bpy.context.view_layer.objects.active = found
        return found

    def edit(self) -> None:
        """Move the first vertices of the largest mesh by 0.5 m."""
        mesh = self.mesh().data
        keys = mesh.shape_keys.key_blocks if mesh.shape_keys else []
        for points in (mesh.vertices, *(key.data for key in keys)):
            for vertex in list(points)[:12]:
                vertex.co.z += 0.5

    def export_again(self) -> None:
        """Export the file of the largest mesh by hand, as a user who agrees to its question does."""
        self.mesh()
        assert self.bpy.ops.export_scene.meshferry_again(is_confirmed=True) == {"FINISHED"}


@pytest.fixture
def saving(clean_blender, tmp_path, monkeypatch):
    addons = clean_blender.context.preferences.addons
    addon = addons.new()
    addon.module = "meshferry"
    found = Saving(clean_blender, tmp_path, monkeypatch)
    addon.preferences.use_export_on_save = True
    yield found
    addon.preferences.use_export_on_save = False
    addons.remove(addon)


def content(path: Path) -> tuple[bytes, int]:
    """Return the content of a file and the time of its last write."""
    return path.read_bytes(), path.stat().st_mtime_ns


def state(bpy: Any) -> list[str]:
    """Return all properties of the add-on on data blocks, the selection, the frame and the modes."""
    found = [f"{bpy.context.scene.frame_current} {bpy.context.scene.frame_subframe}"]
    for block in (*bpy.data.objects, *bpy.data.collections, *bpy.data.meshes, *bpy.data.materials, *bpy.data.actions):
        found.append(f"{block.name} {block.users}")
        stack = [block.meshferry] if hasattr(block, "meshferry") else []
        while stack:
            group = stack.pop()
            for prop in group.bl_rna.properties:
                value = getattr(group, prop.identifier, None)
                if isinstance(value, bpy.types.PropertyGroup):
                    stack.append(value)
                elif prop.type not in {"POINTER", "COLLECTION"}:
                    found.append(f"{block.name} {prop.identifier} {value!r}")
    found += [f"{obj.name} {obj.mode} {obj.select_get()} {obj.matrix_basis}" for obj in bpy.context.scene.objects]
    return [*found, *(text.name for text in bpy.data.texts), str(len(bpy.data.meshes)), str(len(bpy.data.objects))]


@pytest.mark.parametrize(
    ("name", "operator"), [pytest.param(*one, marks=[pytest.mark.slow] * (one in FORMATS[1:3])) for one in FORMATS]
)
def test_ten_saves_write_what_was_edited(saving, tmp_path, name, operator):
    path = imported(saving.bpy, tmp_path, name, operator)
    assert saving.save() == []  # imported, never exported: not asked about
    assert saving.asked == []
    saving.export_again()
    assert saving.save() == [("INFO", "Re-export on save: 1 file unchanged")]
    assert saving.asked == [[name]]
    for number in range(8):
        is_edited = number in (2, 3, 6)
        if is_edited:
            saving.edit()
        before, blocks = content(path), state(saving.bpy)
        said = saving.save()
        assert state(saving.bpy) == blocks
        if is_edited:
            assert [text.split(" (")[0].split(",")[0] for _level, text in said] == [
                f"Re-export on save: {name} written"
            ]
            assert content(path)[0] != before[0]
        else:
            assert said == [("INFO", "Re-export on save: 1 file unchanged")]
            assert content(path) == before
    assert len(saving.asked) == 1
    saving.edit()
    saving.save()
    saving.edit()
    saving.save("copy.blend", copy=True)
    saving.open()
    saving.export_again()  # knows the file, although no data block has its digest


def test_only_content_that_no_export_wrote_is_kept(saving, tmp_path):
    path = imported(saving.bpy, tmp_path)
    first = path.read_bytes()
    saving.edit()
    saving.bpy.ops.export_scene.unigine_mesh(filepath=str(path))
    saving.save()
    for _number in range(3):
        saving.edit()
        saving.save()
    assert (tmp_path / "lamp.mesh.bak").read_bytes() == first != path.read_bytes()
    assert not (tmp_path / "lamp.mesh.bak2").exists()


def allowed_lamp(saving: Saving) -> Path:
    """Import a lamp, export it and allow its export on save; return its file."""
    path = imported(saving.bpy, saving.folder)
    saving.export_again()
    saving.save()
    assert saving.asked.pop() == ["lamp.mesh"]
    return path


def test_a_saved_copy_exports_nothing(saving):
    path = allowed_lamp(saving)
    before = content(path)
    saving.edit()
    assert saving.save("copy.blend", copy=True) == []
    assert content(path) == before
    assert saving.save()[0][1].startswith("Re-export on save: lamp.mesh written")


def test_another_path_is_asked_about_again(saving):
    path = allowed_lamp(saving)
    before = content(path)
    saving.edit()
    saving.is_agreed = False
    assert saving.save("other.blend") == []
    assert saving.save("other.blend") == []  # a declined question is not repeated
    assert saving.asked == [["lamp.mesh"]]
    assert content(path) == before
    assert saving.save("lamp.blend") == []  # saved over by Save As: its list does not apply to other content
    assert saving.asked == [["lamp.mesh"]]
    saving.open()
    assert saving.save() == []
    assert saving.asked == [["lamp.mesh"]] * 2


def test_undo_does_not_confuse_it(saving):
    path = allowed_lamp(saving)
    bpy = saving.bpy
    before = path.read_bytes()
    bpy.ops.ed.undo_push(message="start")
    saving.edit()
    bpy.ops.ed.undo_push(message="edit")
    assert "lamp.mesh written" in saving.save()[0][1]
    edited = path.read_bytes()
    bpy.ops.ed.undo()
    assert "lamp.mesh written" in saving.save()[0][1]
    assert path.read_bytes() == before
    bpy.ops.ed.redo()
    assert "lamp.mesh written" in saving.save()[0][1]
    assert path.read_bytes() == edited


def test_a_failing_export_does_not_stop_the_others(saving, make_file):
    path = allowed_lamp(saving)
    bpy = saving.bpy
    sails = make_file("sails.timbermesh")
    bpy.ops.import_scene.timbermesh(filepath=str(sails))
    bpy.ops.export_scene.timbermesh(filepath=str(sails), collection="sails")
    assert saving.save() == [("INFO", "Re-export on save: 2 files unchanged")]  # beside an allowed file: not asked
    path.write_bytes(path.read_bytes() + b"\0")
    changed = content(path)
    saving.edit()
    bpy.data.collections["sails"].all_objects[-1].location.x += 1
    ((level, text),) = saving.save()
    assert level == "WARNING"
    assert text.startswith("Re-export on save: sails.timbermesh written, ")
    assert "lamp.mesh: The file was changed since Blender last read or wrote it" in text
    assert content(path) == changed
    report = bpy.context.window_manager.meshferry_report
    assert report.is_problem
    assert report.summary == text
    assert saving.save()[0][1].startswith("Re-export on save: 1 file unchanged, lamp.mesh: The file was changed")


def test_files_of_other_scenes_are_counted(saving):
    path = allowed_lamp(saving)
    bpy = saving.bpy
    saving.edit()
    before = content(path)
    first, second = bpy.context.scene, bpy.data.scenes.new("Second")
    bpy.context.window.scene = second
    assert saving.save() == [("INFO", "Re-export on save: 1 file of other scenes left out")]
    assert content(path) == before
    bpy.context.window.scene = first
    assert "lamp.mesh written" in saving.save()[0][1]


def test_a_deleted_file_is_written_again(saving):
    path = allowed_lamp(saving)
    before = path.read_bytes()
    path.unlink()
    assert "lamp.mesh written" in saving.save()[0][1]
    assert path.read_bytes() == before


def test_a_set_is_written_if_one_of_its_files_changes(saving, tmp_path):
    bpy = saving.bpy
    imported(bpy, tmp_path, "tunic.llmesh", "second_life")
    saving.mesh()
    out = tmp_path / "set"
    out.mkdir()
    assert bpy.ops.export_scene.second_life_upload(filepath=str(out / "tunic.dae")) == {"FINISHED"}
    files = {path.name for path in out.iterdir()}
    assert len(files) > 2
    saving.save()
    assert saving.asked == [["tunic.dae"]]
    (bystander := out / "other.dae").write_bytes(b"other")
    for name in sorted(files):
        assert saving.save() == [("INFO", "Re-export on save: 1 file unchanged")]
        (out / name).unlink()
        others = {other: content(out / other) for other in files - {name}}
        assert "tunic.dae written" in saving.save()[0][1]
        assert {other: content(out / other) for other in others} == others
        assert {path.name for path in out.iterdir() if path.suffix != ".bak"} == files | {bystander.name}
    assert bystander.read_bytes() == b"other"


def test_saves_and_edits_while_the_export_waits_become_one_export(saving):
    path = allowed_lamp(saving)
    bpy = saving.bpy
    before = content(path)
    saving.is_idle = False
    for _number in range(3):
        saving.edit()
        assert saving.save() == []
    assert content(path) == before
    bpy.app.timers.register(saving.queue.start_when_idle)
    saving.is_idle = True
    saving.edit()
    (line,) = saving.wait()
    assert "lamp.mesh written" in line[1]
    assert saving.save() == [("INFO", "Re-export on save: 1 file unchanged")]


def test_objects_deleted_while_the_export_waits_leave_their_file(saving):
    path = allowed_lamp(saving)
    before = content(path)
    saving.is_idle = False
    saving.save()
    saving.bpy.app.timers.register(saving.queue.start_when_idle)
    saving.bpy.data.batch_remove(list(saving.bpy.data.objects))
    saving.is_idle = True
    saving.wait()
    assert content(path) == before


def test_blender_closed_before_the_export_is_reported_once(saving):
    path = allowed_lamp(saving)
    before = content(path)
    saving.edit()
    saving.bpy.ops.wm.save_as_mainfile(filepath=str(saving.folder / "lamp.blend"))
    ((level, text),) = saving.open()
    assert level == "WARNING"
    assert text == "Not re-exported after the last save: lamp.mesh. Save again"
    assert content(path) == before
    assert saving.open() == []
    assert "lamp.mesh written" in saving.save()[0][1]  # trusted: it is the file that was saved last
    assert saving.asked == []


def test_the_list_is_not_in_the_blend_file(saving, monkeypatch):
    from meshferry.blender_data import file_records

    path = allowed_lamp(saving)
    before = (saving.folder / "lamp.blend").read_bytes()
    assert not any(name in before for name in (b"is_pending", b"declined", b"digests", b"allowed"))
    monkeypatch.setattr(file_records, "user_folder", lambda: saving.folder / "another user")
    saving.open()
    saving.edit()
    before = content(path)
    saving.is_agreed = False
    assert saving.save() == []
    assert content(path) == before
    assert saving.asked == [] == [*file_records.exports_of_all_files()]  # Re-export of an import stores no options


def test_a_blend_file_that_was_replaced_is_asked_about_again(saving):
    path = allowed_lamp(saving)
    saving.edit()
    saving.save("download.blend", copy=True)
    saving.open("lamp.blend")
    shutil.copyfile(saving.folder / "download.blend", saving.folder / "lamp.blend")
    saving.open("lamp.blend")
    before = content(path)
    saving.is_agreed = False
    assert saving.save() == []
    assert saving.asked == [["lamp.mesh"]]
    assert content(path) == before


HOSTILE = (
    "{outside}/letter.mesh",
    "//server/share/lamp.mesh",
    r"\\server\share\lamp.mesh",
    "{inside}/../outside/x.mesh",
)


@pytest.mark.parametrize("place", HOSTILE)
def test_paths_in_a_hostile_blend_file_are_neither_opened_nor_written(saving, tmp_path, monkeypatch, place):
    bpy = saving.bpy
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    outside.mkdir()
    inside.mkdir()
    for name in ("letter.mesh", "x.mesh"):
        shutil.copyfile(EXAMPLES / "lamp.mesh", outside / name)
    path = imported(bpy, inside)
    bpy.ops.export_scene.unigine_mesh(filepath=str(path))
    saving.save()
    assert saving.asked.pop() == ["lamp.mesh"]
    for owner in (*bpy.data.objects, *bpy.data.collections):
        if owner.meshferry.file.path:
            owner.meshferry.file.path = place.format(outside=outside, inside=inside)
    saving.save("hostile.blend", copy=True)
    shutil.copyfile(tmp_path / "hostile.blend", tmp_path / "lamp.blend")
    saving.open()
    saving.is_agreed = False
    before = {file: content(file) for file in (*outside.iterdir(), *inside.iterdir())}

    def refuse(self: Path, *_arguments: Any, **_keywords: Any) -> Any:
        assert not str(self).startswith(("//", "\\\\")), "a path of another machine was accessed"
        return opened(self)

    opened = Path.exists
    monkeypatch.setattr(Path, "exists", refuse)
    assert saving.save() == []
    assert {file: content(file) for file in (*outside.iterdir(), *inside.iterdir())} == before
    assert len(saving.asked) == (0 if place.startswith("\\") and Path.cwd().drive == "" else 1)


@pytest.mark.parametrize("options", ["{", "[1]", "3", "null", "[" * 100_000])
def test_damaged_records_of_a_hostile_blend_file_are_left_alone(saving, capfd, options):
    path = allowed_lamp(saving)
    for owner in (*saving.bpy.data.objects, *saving.bpy.data.collections):
        owner.meshferry.file.options = options
    saving.edit()
    before = content(path)
    assert saving.save() == []
    assert content(path) == before
    assert "Traceback" not in "".join(capfd.readouterr())


@pytest.mark.parametrize("folder", ["//server/share", r"\\server\share", "/home/artist/game"])
def test_files_on_other_machines_are_always_asked_about(folder):
    from meshferry.blender_data.file_records import AllowedExports, file_key

    separator = folder[0]
    allowed = AllowedExports("/home/artist/lamp.blend", digests={file_key(Path(f"{folder}{separator}lamp.mesh")): ""})
    beside = Path(f"{folder}{separator}vase.mesh")
    assert allowed.has_folder_of(beside) == folder.startswith("/home")
    assert not allowed.has_folder_of(Path("/home/artist/game/models/vase.mesh"))


def test_two_imports_of_a_file_are_named(saving):
    path = allowed_lamp(saving)
    saving.bpy.ops.import_scene.unigine(filepath=str(path))
    before = content(path)
    ((level, text),) = saving.save()
    assert level == "WARNING"
    assert "lamp.mesh: Several imports or exports belong to this file: 'lamp', 'lamp.001'" in text
    assert content(path) == before


@pytest.mark.parametrize("is_added", [False, True])
def test_moved_objects_of_a_scene_go_back_into_its_file(saving, tmp_path, is_added):
    bpy = saving.bpy
    node = courtyard.make(tmp_path) / "courtyard.world"
    assert bpy.ops.import_scene.unigine(filepath=str(node)) == {"FINISHED"}
    collection = next(found for found in bpy.data.collections if found.meshferry.file.path)
    saving.bpy.context.view_layer.objects.active = collection.all_objects[0]
    saving.queue.session()
    assert saving.save() == []
    bpy.ops.wm.meshferry_switch_on_save(path=str(node))
    saving.wait()
    moved = next(obj for obj in collection.all_objects if obj.meshferry.node_key)
    moved.location.x += 1
    if is_added:
        collection.objects.link(moved.copy())
    before, blocks = node.read_bytes(), state(bpy)
    ((_level, text),) = saving.save()
    assert state(bpy) == blocks
    if is_added:
        assert "Objects were added or removed: choose Re-export" in text
        assert node.read_bytes() == before
    else:
        assert f"{node.name} written" in text
        assert node.read_bytes() != before
        assert saving.save() == [("INFO", "Re-export on save: 1 file unchanged")]
        saving.open()
        moved = next(obj for obj in bpy.data.objects if obj.meshferry.node_key)
        moved.location.y += 1
        assert f"{node.name} written" in saving.save()[0][1]
    assert saving.asked == []


def test_the_switch_takes_a_file_out_of_the_list(saving):
    path = allowed_lamp(saving)
    saving.bpy.ops.wm.meshferry_switch_on_save(path=str(path))
    saving.edit()
    before = content(path)
    assert saving.save() == []
    assert saving.asked == []
    assert content(path) == before
    saving.bpy.ops.wm.meshferry_switch_on_save(path=str(path))
    assert saving.wait() == [] and content(path) == before, "a switch writes nothing"
    assert saving.open() == []
    saving.edit()
    assert "lamp.mesh written" in saving.save()[0][1]
    assert saving.asked == []


def test_a_file_that_was_declined_stays_so_if_another_is_allowed(saving, make_file):
    path = allowed_lamp(saving)
    bpy = saving.bpy
    sails = make_file("sails.timbermesh")
    bpy.ops.import_scene.timbermesh(filepath=str(sails))
    bpy.ops.export_scene.timbermesh(filepath=str(sails), collection="sails")
    saving.edit()
    saving.is_agreed = False
    before = content(path)
    saving.save("other.blend")
    assert sorted(saving.asked.pop()) == ["lamp.mesh", "sails.timbermesh"]
    bpy.ops.wm.meshferry_switch_on_save(path=str(sails))
    assert saving.save("other.blend") == [("INFO", "Re-export on save: 1 file unchanged")]
    assert content(path) == before


@pytest.mark.parametrize("key", [str, str.upper])
def test_the_preferences_list_and_remove_what_is_allowed(saving, monkeypatch, key):
    """The list shows the paths as they are, on Windows too, where it compares them without case."""
    from meshferry.blender_data import file_records

    monkeypatch.setattr(file_records.os.path, "normcase", lambda path: key(str(path)))
    path = allowed_lamp(saving)
    (allowed,) = file_records.exports_of_all_files()
    assert (allowed.blend, allowed.paths()) == (str(saving.folder / "lamp.blend"), [str(path)])
    assert list(allowed.digests) == [key(str(path))]
    saving.bpy.ops.preferences.meshferry_forbid_on_save(blend=allowed.blend, file=str(path))
    assert [*file_records.exports_of_all_files()] == []
    assert [*(saving.folder / "settings").glob("*.json")] == []
    saving.is_agreed = False
    saving.edit()
    saving.save()
    assert saving.asked == [["lamp.mesh"]]


@pytest.mark.parametrize("digests", ["", "{", "3", '{"/a/b.mesh": 4}', '["/a/b.mesh"]'])
def test_a_damaged_list_allows_nothing(saving, digests):
    from meshferry.blender_data import file_records

    path = allowed_lamp(saving)
    (place,) = (saving.folder / "settings").glob("*.json")
    place.write_text(f'{{"blend": "x", "stamp": [], "is_pending": true, "digests": {digests}}}' if digests else "")
    assert [*file_records.exports_of_all_files()] == []
    assert file_records.exports_of_blend(str(saving.folder / "lamp.blend")).digests == {}
    saving.edit()
    saving.is_agreed = False
    before = content(path)
    assert saving.save() == []
    assert content(path) == before


def test_handlers_and_timer_exist_only_while_it_is_on(saving, clean_blender):
    from meshferry.operators.files import save_queue

    handlers = clean_blender.app.handlers
    assert save_queue.after_save in handlers.save_post
    assert save_queue.after_load in handlers.load_post
    allowed_lamp(saving)
    saving.is_idle = False
    saving.bpy.ops.wm.save_mainfile()
    assert clean_blender.app.timers.is_registered(save_queue.start_when_idle)
    clean_blender.context.preferences.addons["meshferry"].preferences.use_export_on_save = False
    assert save_queue.after_save not in handlers.save_post
    assert save_queue.after_load not in handlers.load_post
    assert not clean_blender.app.timers.is_registered(save_queue.start_when_idle)


def test_background_mode_exports_nothing(clean_blender):
    from meshferry.operators.files import save_queue

    if not clean_blender.app.background:
        pytest.skip("this Blender has a window")
    save_queue.switch(on=True)
    assert save_queue.after_save not in clean_blender.app.handlers.save_post
    assert save_queue.after_load not in clean_blender.app.handlers.load_post


def run(steps: Any) -> None:
    """Take all further steps."""
    for _step in steps:
        pass


def textured_cube(bpy: Any) -> Any:
    """Add a cube with a packed texture in a collection of its own; return the collection."""
    bpy.ops.mesh.primitive_cube_add()
    image = bpy.data.images.new("wood", 4, 4)
    image.pack()
    material = bpy.data.materials.new("board")
    material.use_nodes = True
    nodes = material.node_tree.nodes
    texture = nodes.new("ShaderNodeTexImage")
    texture.image = image
    shader = next(node for node in nodes if node.type == "BSDF_PRINCIPLED")
    material.node_tree.links.new(texture.outputs[0], shader.inputs["Base Color"])
    bpy.context.object.data.materials.append(material)
    collection = bpy.data.collections.new("crate")
    bpy.context.scene.collection.children.link(collection)
    collection.objects.link(bpy.context.object)
    return collection


@pytest.mark.parametrize(("operator", "name"), [("unigine_scene", "crate.node"), ("second_life_upload", "crate.dae")])
def test_of_a_set_only_changed_files_are_written(saving, tmp_path, operator, name):
    bpy = saving.bpy
    textured_cube(bpy)
    getattr(bpy.ops.export_scene, operator)(filepath=str(tmp_path / name), collection="crate")
    unchanged = [("INFO", "Re-export on save: 1 file unchanged")]
    assert saving.save() == unchanged
    texture = next(path for path in tmp_path.rglob("*.png"))
    before = content(texture)
    saving.edit()
    assert f"{name} written" in saving.save()[0][1]
    assert content(texture) == before
    assert saving.save() == unchanged  # the manifest of a scene, too
    saving.open()
    assert saving.save() == unchanged
    saving.edit()
    assert f"{name} written" in saving.save()[0][1]
    assert len(saving.asked) == 1


def test_files_beside_an_allowed_one_are_not_replaced_if_they_are_of_others(saving, tmp_path):
    bpy = saving.bpy
    textured_cube(bpy)
    bpy.ops.export_scene.second_life_upload(filepath=str(tmp_path / "crate.dae"), collection="crate")
    saving.save()
    texture = next(path for path in tmp_path.rglob("*.png"))
    texture.write_bytes(b"of another program")
    before = {path: content(path) for path in tmp_path.iterdir() if path.is_file() and path.suffix != ".blend"}
    saving.edit()
    ((level, text),) = saving.save()
    assert level == "WARNING"
    assert f"'{texture.name}' exists already and was not written on save; choose Re-export" in text
    assert {path: content(path) for path in before} == before


def test_a_question_allows_only_the_files_that_it_shows(saving):
    from meshferry.operators.files import export_on_save

    bpy = saving.bpy
    for number in range(15):
        obj = bpy.data.objects.new(f"part {number}", None)
        bpy.context.scene.collection.objects.link(obj)
        stored = obj.meshferry.file
        stored.path, stored.format, stored.options = str(saving.folder / f"{number}.mesh"), "unigine_mesh", "{}"
        stored.owner = obj.name
    bpy.ops.wm.save_as_mainfile(filepath=str(saving.folder / "lamp.blend"))
    assert len(export_on_save._split(bpy.context.scene)[1]) == 15
    bpy.ops.wm.meshferry_allow_on_save()
    allowed, asked = export_on_save._split(bpy.context.scene)
    assert (len(allowed), len(asked)) == (12, 3)


def test_an_answer_for_a_replaced_blend_file_allows_no_other_file_of_the_list(saving):
    from meshferry.blender_data import file_records

    path = allowed_lamp(saving)
    saving.save("download.blend", copy=True)
    shutil.copyfile(saving.folder / "download.blend", saving.folder / "lamp.blend")
    saving.open()
    other = saving.folder / "other.mesh"
    saving.bpy.ops.wm.meshferry_switch_on_save(path=str(other))
    allowed = file_records.exports_of_blend(saving.bpy.data.filepath)
    assert allowed.allows(other)
    assert not allowed.allows(path)


def test_paths_through_another_folder_are_different_files():
    from meshferry.blender_data.file_records import file_key

    assert file_key(Path("models/link/../lamp.mesh")) != file_key(Path("models/lamp.mesh"))


def test_a_recovered_blend_file_is_asked_about_again(saving):
    path = allowed_lamp(saving)
    saving.queue.after_load("/tmp/quit.blend")
    saving.edit()
    before = content(path)
    saving.is_agreed = False
    assert saving.save() == []
    assert saving.asked == [["lamp.mesh"]]
    assert content(path) == before


def test_a_blend_file_that_is_replaced_during_the_export_is_asked_about_again(saving):
    allowed_lamp(saving)
    saving.save("download.blend", copy=True)
    saving.bpy.ops.wm.save_mainfile()
    shutil.copyfile(saving.folder / "download.blend", saving.folder / "lamp.blend")
    assert saving.wait() == [("INFO", "Re-export on save: 1 file unchanged")]
    saving.open()
    saving.is_agreed = False
    saving.save()
    assert saving.asked == [["lamp.mesh"]]


@pytest.mark.parametrize("name", ["lamp.blend", "other.blend"])
def test_a_save_in_the_middle_of_the_export(saving, name):
    from meshferry.blender_data import file_records
    from meshferry.operators.files import export_on_save

    path = allowed_lamp(saving)
    bpy = saving.bpy
    saving.edit()
    before = content(path)
    steps = export_on_save.EXPORT_SCENE_OT_meshferry_on_save.steps(None, bpy.context)
    next(steps)
    next(steps)
    bpy.ops.wm.save_as_mainfile(filepath=str(saving.folder / name))
    run(steps)
    is_other = name == "other.blend"
    assert (content(path) == before) == is_other
    allowed = file_records.exports_of_blend(bpy.data.filepath)
    assert allowed.allows(path) == allowed.is_pending == (not is_other)  # the second save waits for its own export
    saving.is_agreed = False
    assert saving.wait() == ([] if is_other else [("INFO", "Re-export on save: 1 file unchanged")])
    assert saving.asked == ([["lamp.mesh"]] if is_other else [])


def test_data_blocks_that_a_script_removes_in_the_middle_are_not_accessed(saving, monkeypatch):
    from meshferry.blender_data import scene_state

    accessed: list[Any] = []
    monkeypatch.setattr(scene_state, "_set", lambda owner, *_others: accessed.append(owner))
    cube = saving.bpy.data.objects.new("cube", None)
    cube.keyframe_insert("location", frame=1)
    (channel, *_others) = scene_state.animated_values([cube], {})
    with scene_state.restored([(cube.animation_data, "use_nla"), (saving.bpy.context.scene, "camera")]):
        saving.bpy.data.objects.remove(cube)
    assert accessed == [saving.bpy.context.scene]
    channel.restore()


@pytest.mark.parametrize("steps_before", [1, 2])
def test_objects_that_a_script_removes_in_the_middle_leave_their_file(saving, steps_before):
    from meshferry.operators.files import export_on_save

    path = allowed_lamp(saving)
    saving.edit()
    before = content(path)
    steps = export_on_save.EXPORT_SCENE_OT_meshferry_on_save.steps(None, saving.bpy.context)
    for _number in range(steps_before):
        next(steps)
    saving.bpy.data.batch_remove(list(saving.bpy.data.objects))
    run(steps)
    assert content(path) == before
    assert saving.reports[-1][0] == "WARNING" or steps_before == 1


@pytest.mark.parametrize(("path", "kind"), [("lamp.mesh", "second_life_upload"), (".bashrc", "unigine_mesh")])
def test_files_of_another_format_than_their_name_tells_are_left_alone(saving, path, kind):
    lamp = allowed_lamp(saving)
    for owner in (*saving.bpy.data.objects, *saving.bpy.data.collections):
        stored = owner.meshferry.file
        if stored.path:
            stored.path, stored.format, stored.options = str(saving.folder / path), kind, "{}"
    saving.edit()
    before = content(lamp)
    assert saving.save() == []
    assert content(lamp) == before
    assert not (saving.folder / ".bashrc").exists()
    assert saving.asked == []

"""MeshSerializer2 in a Blender window: dialogs, drops under several names, files of others, exports of several."""

import shutil
from typing import Any

import bpy
from window import (
    DRAW,
    FOLDER,
    Steps,
    check,
    drop,
    file_dialog,
    in_view3d,
    menu_entries,
    picture,
    press,
    show_sidebar,
    undo,
)

KEPT = FOLDER / "kept"
"""With a single file, called ``.data``."""


def menus() -> Steps:
    """File > Import and File > Export list the entries."""
    for menu, operator in (
        (bpy.types.TOPBAR_MT_file_import, "import_scene.mesh_serializer"),
        (bpy.types.TOPBAR_MT_file_export, "export_scene.mesh_serializer"),
    ):
        text = menu_entries(menu).get(operator)
        check(text == "Unity MeshSerializer2 (.data)", f"{menu.__name__} lists {text}")
    yield DRAW


def dialogs() -> Steps:
    """The file dialog of the import lists files of the usual names, and all on request."""
    yield from file_dialog(
        lambda: bpy.ops.import_scene.mesh_serializer("INVOKE_DEFAULT", directory=f"{KEPT}/"),
        "mesh-serializer-import-dialog",
    )


def model() -> Steps:
    """A dropped file is a model that can be worked on, checked and exported."""
    before = set(bpy.data.objects.keys())
    yield from drop(KEPT, "mesh-serializer-model")
    came = [obj for obj in bpy.data.objects if obj.name not in before]
    check(len(came) == 1 and len(came[0].data.polygons) > 0, f"one file gave {[obj.name for obj in came]}")
    if not came:
        return
    check(not came[0].material_slots, "no empty material slot is in the way")
    yield from show_sidebar("Meshferry")
    with in_view3d():
        bpy.ops.export_scene.mesh_serializer_check()
    found = bpy.context.window_manager.meshferry_check
    check(found.subject == came[0].name and not len(found.findings), "the check finds nothing to mend")
    yield from picture("mesh-serializer-sidebar")
    yield from exports(came[0])
    yield from undo(before, "the model")
    yield from other_name(before)
    yield from foreign(before)


def exports(obj: Any) -> Steps:
    """The dialog names the files, with the extension that was chosen; what is exported is there."""
    out = FOLDER / "out-data"
    out.mkdir()
    for name in ("Left", "Right"):
        copy = obj.copy()
        copy.name = name
        bpy.context.scene.collection.objects.link(copy)
        copy.select_set(True)
    (out / "Left.bytes").touch()
    yield DRAW
    path = str(out / "any.bytes")
    yield from file_dialog(
        lambda: bpy.ops.export_scene.mesh_serializer("INVOKE_DEFAULT", filepath=path), "mesh-serializer-export-dialog"
    )
    with in_view3d():
        bpy.ops.export_scene.mesh_serializer(filepath=path, use_replace=True)
    written = {found.name: found.stat().st_size for found in out.iterdir()}
    check(len(written) == 3 and len(set(written.values())) == 1, f"an export of three objects wrote {written}")
    for name in ("Left", "Right"):
        bpy.data.objects.remove(bpy.data.objects[name])


def other_name(before: set[str]) -> Steps:
    """A file called as other families call theirs gets the options of its own."""
    folder = FOLDER / "kept_mesh"
    folder.mkdir()
    for path in KEPT.iterdir():
        shutil.copy(path, folder / f"{path.stem}.mesh")
    yield from drop(folder, "mesh-serializer-other-name")
    yield from undo(before, "the model of another name")


def foreign(before: set[str]) -> Steps:
    """Files that are not models fail immediately."""
    folder = FOLDER / "foreign"
    folder.mkdir()
    (folder / "buffer.bin").write_bytes(bytes(range(256)) * 20)
    with in_view3d():
        bpy.ops.wm.drop_import_file("INVOKE_DEFAULT", directory=f"{folder}/", files=[{"name": "buffer.bin"}])
    yield from picture("mesh-serializer-foreign")  # the error, and no dialog before it
    check(set(bpy.data.objects.keys()) == before, "nothing came of a foreign file")
    press("ESC")
    yield DRAW

"""Install a built package into an empty Blender profile, import files with it and see which protobuf it took.

    python check_install.py PACKAGE.zip FOLDER_OF_EXAMPLES

Runs under a Python with bpy and without protobuf, in a process of its own: one that has loaded another protobuf, or has
Meshferry from somewhere else, would prove nothing. Started by scripts/run_packaged_tests.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
from pathlib import Path


def check(condition: bool, message: str) -> None:
    """Fail with a message; assert would vanish under ``-O`` and says less."""
    if not condition:
        raise SystemExit(f"FAILED: {message}")
    print(f"ok: {message}", flush=True)


def main() -> None:
    """Install, use, remove."""
    package, examples = str(Path(sys.argv[1]).resolve()), Path(sys.argv[2]).resolve()
    check(importlib.util.find_spec("google") is None, "this Python has no protobuf of its own")
    check(importlib.util.find_spec("meshferry") is None, "nor an installed Meshferry")

    with tempfile.TemporaryDirectory() as profile:
        os.environ["BLENDER_USER_RESOURCES"] = profile  # read when Blender starts, so before bpy is imported
        import bpy

        print("Blender", bpy.app.version_string, "Python", sys.version.split()[0], flush=True)
        bpy.ops.extensions.package_install_files(
            filepath=package, repo="user_default", enable_on_install=True, overwrite=True
        )
        module = "bl_ext.user_default.meshferry"
        try:
            check(module in bpy.context.preferences.addons, f"{module} is installed and enabled")
            check(hasattr(bpy.types, "IMPORT_SCENE_OT_timbermesh"), "the import operator is registered")
            settings = bpy.context.preferences.addons[module].preferences
            check(settings is not None and settings.use_timbermesh, "the preferences have every format in use")
            guides = Path(sys.modules[module].__file__).parent / "docs" / "users"
            check(all((guides / f"{name}.html").is_file() for name in ("unigine", "batch")), "the guides are pages")

            bpy.ops.wm.read_homefile(use_empty=True)  # factory settings would disable the extension
            check(module in sys.modules and not bpy.data.objects, "the scene is empty, the extension still enabled")
            result = bpy.ops.import_scene.timbermesh(filepath=str(examples / "windmill.timbermesh"))
            meshes = [obj.data for obj in bpy.data.objects if obj.type == "MESH"]
            check(result == {"FINISHED"}, "the import finished")
            check(bool(meshes) and all(len(mesh.polygons) > 0 for mesh in meshes), f"{len(meshes)} mesh objects came")

            import google.protobuf
            from google.protobuf.internal import api_implementation

            check(api_implementation.Type() in {"upb", "cpp"}, f"protobuf is compiled ({api_implementation.Type()})")
            check(
                Path(google.protobuf.__file__).resolve().is_relative_to(Path(profile).resolve()),
                f"and comes from the extension ({google.protobuf.__version__})",
            )

            bpy.ops.wm.read_homefile(use_empty=True)
            lamp = [{"name": "lamp_nod.anim"}, {"name": "lamp.mesh"}]
            result = bpy.ops.import_scene.unigine(directory=str(examples), files=lamp)
            rigs = [obj for obj in bpy.data.objects if obj.type == "ARMATURE"]
            check(result == {"FINISHED"} and len(rigs) == 1, "a rigged mesh and its animation share an armature")
            check(len(rigs[0].data.bones) == 7 and rigs[0].animation_data.action is not None, "which moves")
            written = Path(profile) / "lamp.mesh"
            result = bpy.ops.export_scene.unigine_mesh(filepath=str(written), collection="lamp")
            check(result == {"FINISHED"} and written.read_bytes()[:4] == b"ms13", "and goes back to a file")

            start = Path(sys.modules[module].__file__).parent / "operators" / "families" / "second_life"
            bpy.ops.wm.read_homefile(filepath=str(start / "starting_file.blend"), load_ui=False)
            check(not bpy.data.filepath and bpy.context.object.name == "Tunic", "the starting file opens as a new file")
            result = bpy.ops.export_scene.second_life_check()
            found = bpy.context.window_manager.meshferry_check.findings
            check(result == {"FINISHED"} and not len(found), "and could be uploaded")
        finally:
            # Classes left registered hang Blender 4.5 at exit.
            bpy.ops.preferences.addon_disable(module=module)
        check(not hasattr(bpy.types, "IMPORT_SCENE_OT_timbermesh"), "disabled, nothing of it is left registered")


if __name__ == "__main__":
    main()
    # Blender as a Python module may wait for one of its own threads for ever while it shuts down.
    sys.stdout.flush()
    os._exit(0)

"""Run the command line in Blender's own Python.

    blender -b --python cli/convert.py -- windmill.timbermesh windmill.blend
    blender -b --python cli/convert.py -- inspect windmill.timbermesh

The arguments are those of ``meshferry convert``; the name of any command may stand in front of them. Works from the
folder of the installed extension, enabled or not, with ``--factory-startup`` too, and from a checkout. The exit status
is that of the command, although Blender itself exits with 0 if a script fails.

This file runs before the package can be imported. It imports only fast modules, since Ctrl+C raises an exception until
the package handles signals.
"""

from __future__ import annotations

try:
    import importlib
    import importlib.util
    import os
    import sys
except KeyboardInterrupt:
    raise SystemExit(130) from None

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
ALIAS = "meshferry"
COMMANDS = ("inspect", "convert", "batch", "check", "formats", "--version")
WORKER = "batch-worker"
"""Argument that makes this process a batch worker."""
OLDEST_PYTHON = (3, 11)
"""Python of Blender 4.5; this file can still be parsed by that of older versions, to report them."""


def main() -> int:
    """Find the package and run its command line; return the exit status."""
    if sys.version_info < OLDEST_PYTHON:
        print("Meshferry needs Blender 4.5 or newer", file=sys.stderr)
        return 1
    if sys.path and os.path.realpath(sys.path[0] or ".") == os.path.join(ROOT, "cli"):
        del sys.path[0]  # Python adds the folder cli, whose modules would hide others
    package = _package_name()
    if sys.argv[-2:] in ([sys.argv[0], WORKER], ["--", WORKER]):
        _add_extension_libraries(package)
        return int(importlib.import_module(package + ".cli.batch.workers.worker").run())
    with importlib.import_module(package + ".cli.interruption").handled(is_process=True):
        _add_extension_libraries(package)
        command_line = importlib.import_module(package + ".cli.main")
        status: int = command_line.main(arguments(sys.argv), program="convert.py --")
        return status


def arguments(argv: list[str]) -> list[str]:
    """Extract the arguments of Meshferry's command line from those of the process."""
    given = argv[argv.index("--") + 1 :] if "--" in argv else [] if "bpy" in sys.modules else argv[1:]
    return given if given and given[0] in COMMANDS else ["convert", *given]


def _package_name() -> str:
    """Return the name under which the package can be imported; load it first if necessary."""
    extension = _extension_name()
    if extension:
        importlib.import_module(extension)
        return extension
    _load(ALIAS, "__init__.py", submodule_search_locations=[ROOT])
    return ALIAS


def _extension_name() -> str:
    """Return the module name of the package if it is an installed extension of Blender, otherwise an empty string."""
    folder, name = os.path.split(ROOT)
    for module_name, module in list(sys.modules.items()):
        parent, _dot, repository = module_name.partition(".")
        if parent != "bl_ext" or not repository or "." in repository:
            continue
        if any(os.path.realpath(path) == folder for path in getattr(module, "__path__", ())):
            return module_name + "." + name
    return ""


def _add_extension_libraries(package: str) -> None:
    """Add the wheels of the extension to the path; Blender does so only for enabled extensions."""
    bpy = sys.modules.get("bpy")
    parents = [os.path.dirname(os.path.dirname(ROOT))]
    if bpy is not None:
        parents.append(bpy.utils.user_resource("EXTENSIONS"))
    version = "python{:d}.{:d}".format(*sys.version_info[:2])
    for parent in parents:
        _add_path(os.path.join(parent, ".local", "lib", version, "site-packages"))
    wheels = os.path.join(ROOT, "wheels")
    is_there = importlib.import_module(package + ".cli.environment").is_there
    complete = all(is_there(module) for module in ("google.protobuf", "llsd", "rich"))
    if bpy is not None and package != ALIAS and os.path.isdir(wheels) and not complete:
        place = bpy.utils.extension_path_user(package, path="libraries", create=True)
        for wheel in sorted(os.listdir(wheels)):
            if wheel.endswith(".whl"):
                _add_path(_unpacked(os.path.join(wheels, wheel), os.path.join(place, wheel[: -len(".whl")])))


def _add_path(folder: str) -> None:
    if os.path.isdir(folder) and folder not in sys.path:
        sys.path.append(folder)


def _unpacked(wheel: str, folder: str) -> str:
    """Return the folder with the content of a wheel, which is unpacked there if it does not exist yet."""
    import shutil
    import tempfile

    if not os.path.isdir(folder):
        temporary = tempfile.mkdtemp(dir=os.path.dirname(folder))
        shutil.unpack_archive(wheel, temporary, "zip")
        try:
            os.rename(temporary, folder)
        except OSError:  # another process unpacked it at the same time
            shutil.rmtree(temporary, ignore_errors=True)
    return folder


def _load(name: str, *path: str, **options: Any) -> ModuleType:
    """Load a file of the package as a module with this name."""
    spec = importlib.util.spec_from_file_location(name, os.path.join(ROOT, *path), **options)
    if spec is None or spec.loader is None:
        raise ImportError(f"There is no package in {ROOT}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _run() -> int:
    try:
        return main()
    except KeyboardInterrupt:
        return 130
    except BaseException:  # noqa: BLE001 (Blender would end with 0)
        import traceback

        traceback.print_exc()
        return 1


if __name__ == "__main__":
    # Blender as a Python module may crash while it shuts down, which would change the exit status.
    _load("meshferry_environment", "cli", "environment.py").leave(_run())

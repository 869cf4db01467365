"""The Python and the Blender that the command line runs in: version, libraries, processor cores, memory.

Imports only the standard library, since it reports when other modules cannot be imported.
"""

import contextlib
import importlib.util
import math
import os
import shutil
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

LIBRARIES = {"numpy": "numpy", "google.protobuf": "protobuf", "llsd": "llsd"}
"""Modules that Meshferry needs -> their names in pip."""


def version() -> str:
    """Return Meshferry's version from ``blender_manifest.toml``."""
    manifest = Path(__file__).resolve().parent.parent / "blender_manifest.toml"
    try:
        return str(tomllib.loads(manifest.read_text(encoding="utf-8"))["version"])
    except (OSError, KeyError, ValueError):
        pass
    import importlib.metadata  # rarely needed, and slow to load

    try:
        return importlib.metadata.version("meshferry")
    except importlib.metadata.PackageNotFoundError:
        return "of unknown version"


def blender_version() -> str:
    """Return the version of the loaded Blender, or an empty string."""
    bpy = sys.modules.get("bpy")
    return str(bpy.app.version_string) if bpy is not None and hasattr(bpy, "app") else ""


def described() -> str:
    """Return the versions that a bug report needs: Meshferry, Python, Blender."""
    blender = blender_version()
    python = ".".join(str(part) for part in sys.version_info[:3])
    return f"Meshferry {version()}, Python {python}" + (f", Blender {blender}" if blender else "")


def missing_libraries() -> list[str]:
    """Return the pip names of missing libraries."""
    return [library for module, library in LIBRARIES.items() if not is_there(module)]


def is_there(module: str) -> bool:
    """Return whether a module can be imported, without importing it."""
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # the parent package is missing
        return False


def how_to_install(libraries: list[str]) -> str:
    """Return instructions for installing libraries into the running Python.

    In Blender the target is the user scripts folder, which needs no administrator rights. Blender may not search the
    default target of ``pip install``.
    """
    wanted = " ".join(libraries)
    modules = _blender_modules_folder()
    if not modules:
        return f'For this Python: "{sys.executable}" -m pip install {wanted}'
    return (
        f'For this Blender: "{sys.executable}" -m pip install --target "{modules}" {wanted}\n'
        "Or install the extension, which brings them: Edit > Preferences > Get Extensions > Install from Disk"
    )


def _blender_modules_folder() -> str:
    """Return the folder for add-on modules of the Blender program. Empty in plain Python, with or without bpy."""
    if not blender_program():
        return ""
    return str(sys.modules["bpy"].utils.user_resource("SCRIPTS", path=str(Path("addons", "modules"))))


def blender_program() -> str:
    """Return the path of the Blender program that this runs in; empty in plain Python, with or without bpy."""
    bpy = sys.modules.get("bpy")
    return str(bpy.app.binary_path or "") if bpy is not None and hasattr(bpy, "app") else ""


def is_blender_module() -> bool:
    """Return whether Blender is loaded as a Python module, not running as a program."""
    return hasattr(sys.modules.get("bpy"), "app") and not blender_program()


def leave(status: int) -> NoReturn:
    """Exit the process with a status.

    Blender 4.5 as a Python module may wait forever for one of its threads while it shuts down, if the module is still
    referenced. Therefore its shutdown is skipped and its temporary folder removed here.
    """
    if not is_blender_module():
        sys.exit(status)
    bpy = sys.modules["bpy"]
    temporary = Path(bpy.app.tempdir)
    if temporary.name.startswith("blender_"):  # never the parent folder of the session's own folder
        shutil.rmtree(temporary, ignore_errors=True)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):  # None for closed streams
            stream.flush()
    end_process(status)


def end_process(status: int) -> NoReturn:
    """End the process at once, without flushing streams.

    On Windows, ``os._exit`` runs the destructors of Blender's library, which print to standard output.
    """
    if sys.platform == "win32":
        import ctypes

        kernel: ctypes.CDLL = ctypes.WinDLL("kernel32")  # type: ignore[attr-defined,unused-ignore]
        kernel.GetCurrentProcess.restype = ctypes.c_void_p
        kernel.TerminateProcess(ctypes.c_void_p(kernel.GetCurrentProcess()), ctypes.c_uint(status))
    os._exit(status)


if sys.platform != "win32":
    import resource

_CONTROL_GROUPS = Path("/sys/fs/cgroup")


def available_cores(control_groups: Path = _CONTROL_GROUPS) -> int:
    """Return the number of cores available to this process, within the limit of its container (``control_groups``)."""
    if sys.platform != "win32" and hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    share = _processor_share(control_groups)
    return max(1, min(cores, math.ceil(share)) if share else cores)


def _processor_share(control_groups: Path) -> float:
    """Return the processor time that the control group may use, in cores; 0 if no limit is known."""
    for names in (("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")):  # version 2 and version 1
        with contextlib.suppress(OSError, ValueError, ZeroDivisionError):  # "max 100000", for example
            quota, period = " ".join((control_groups / name).read_text("ascii") for name in names).split()
            return max(0.0, int(quota) / int(period))
    return 0.0


def threads_for(jobs: int) -> int:
    """Return the number of threads for each worker; one core is reserved for the driver."""
    return max(1, (available_cores() - 1) // jobs)


@contextlib.contextmanager
def limited_cores(count: int, number: int = 0) -> Iterator[None]:
    """On Linux, restrict this process to ``count`` cores inside a ``with`` block.

    A library that is loaded in the block starts one thread for each of these cores. Processes with consecutive numbers
    use different cores as long as there are enough: on the same cores they would load Blender one after the other.
    """
    if sys.platform != "linux" or not count:
        yield
        return
    usual = os.sched_getaffinity(0)
    try:
        with contextlib.suppress(OSError):
            cores = sorted(usual)
            os.sched_setaffinity(0, {cores[(number * count + index) % len(cores)] for index in range(count)})
        yield
    finally:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, usual)


def peak_memory() -> int:
    """Return the peak resident memory of this process in bytes; 0 if unknown."""
    if sys.platform == "win32":
        return _peak_working_set()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _peak_working_set() -> int:
    """Return ``PeakWorkingSetSize`` of Windows' ``GetProcessMemoryInfo``; 0 if it fails."""
    import ctypes

    kernel: ctypes.CDLL = ctypes.WinDLL("kernel32")  # type: ignore[attr-defined,unused-ignore]
    kernel.GetCurrentProcess.restype = ctypes.c_void_p
    kernel.K32GetProcessMemoryInfo.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32)
    counters = (ctypes.c_size_t * 9)()  # two DWORD, then eight SIZE_T, the first of which is the peak
    kernel.K32GetProcessMemoryInfo(kernel.GetCurrentProcess(), ctypes.byref(counters), ctypes.sizeof(counters))
    return counters[1]

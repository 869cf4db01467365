"""What every test shares: the package under one name, Blender with the add-on registered, the real sample files.

The repository root is the package. pytest and Blender would each import it under a name of their own (the checkout
folder's, the extension repository's), so it is loaded here under the fixed name ``meshferry``, installed or not.

Environment
-----------
MESHFERRY_SITE
    A folder put on ``sys.path``: where Blender's own Python has no protobuf and no hypothesis.
MESHFERRY_SAMPLES
    The folder of real files; ``../shared/samples`` beside the checkout otherwise.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib.util
import itertools
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from load_package import SAMPLES, load_package

if importlib.util.find_spec("hypothesis") is not None:
    from hypothesis import HealthCheck, settings

    # Neither a deadline nor a judgement of slow generation: no test depends on how busy the machine is.
    settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("untimed")

HAS_BPY = importlib.util.find_spec("bpy") is not None

# Before NumPy is loaded, here and in processes of the tests: OpenBLAS takes ten times as long to invert a 4 by 4 matrix
# in two threads, and much longer where other processes need the cores, such as the second one of the tests.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# No test cuts the power, and waiting for the disk is a tenth of the time of a test that writes files.
os.fsync = lambda _file: None

load_package()

IN_BLENDER = bool(getattr(getattr(sys.modules.get("bpy"), "app", None), "binary_path", ""))
"""Whether the tests run inside a Blender application, not with Blender as a module."""

# Shells start jobs in the background with SIGINT ignored, nohup with SIGHUP; processes of the tests would inherit that.
for name, handler in (("SIGINT", signal.default_int_handler), ("SIGHUP", signal.SIG_DFL)):
    number = getattr(signal, name, None)
    # None is a handler in C, Blender's own of SIGINT.
    if number is not None and signal.getsignal(number) in (signal.SIG_IGN, None):
        signal.signal(number, handler)


_session = pytest.StashKey[pytest.Session]()
_temporary_folder = pytest.StashKey[Path]()
_leftovers = pytest.StashKey[list[str]]()
_folders = itertools.count()

REMOVAL_SECONDS = 10
"""Time for processes that the last test stopped to remove their temporary files."""


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Give the tests and all their processes one temporary folder, which is removed at the end.

    The environment passes it on, also to the workers of pytest-xdist.
    """
    if "PYTEST_XDIST_WORKER" in os.environ:
        return
    folder = os.path.realpath(tempfile.mkdtemp(prefix="meshferry-tests-"))  # without short names, such as RUNNER~1
    os.environ.update(dict.fromkeys(("TMPDIR", "TEMP", "TMP"), folder))
    tempfile.tempdir = None  # computed anew from the environment
    config.stash[_temporary_folder] = Path(folder)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Distribute whole modules; all modules with tests in Blender form two groups, which one worker each executes.

    Loading Blender takes seconds and hundreds of MB. The tests of operators are the second group, since they take about
    half of the time.
    """
    from xdist.scheduler import LoadFileScheduling

    @functools.cache
    def group_of(module: str) -> str:
        if "needs_bpy" not in (config.rootpath / module).read_text(encoding="utf-8"):
            return module
        return "operators" if module.startswith("tests/operators/") else "Blender"

    class Scheduler(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group_of(super()._split_scope(nodeid))

    return Scheduler(config, log)


def pytest_collection_finish() -> None:
    """Leave the collected tests out of later searches for garbage."""
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail the run if a test or a process of a test left files in the temporary folder."""
    session.config.stash[_session] = session
    folder = session.config.stash.get(_temporary_folder, None)
    if folder is None:
        return
    deadline = time.monotonic() + REMOVAL_SECONDS
    while (left := _left_in(folder)) and time.monotonic() < deadline:
        time.sleep(0.1)
    session.config.stash[_leftovers] = left
    if left and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _left_in(folder: Path) -> list[str]:
    """Return the names in a temporary folder without those that pytest and this process's Blender use until the end."""
    bpy = sys.modules.get("bpy")
    own = Path(bpy.app.tempdir).name if bpy is not None else ""
    return sorted(name for name in os.listdir(folder) if name != own and not name.startswith("pytest-of-"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """List the files that the session check found."""
    for name in config.stash.get(_leftovers, []):
        terminalreporter.write_line(f"FAILED: the tests left {name} in the temporary folder", red=True)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the temporary folder; skip the shutdown of Blender as a module, which may hang (``environment.leave``)."""
    if _temporary_folder in config.stash:
        shutil.rmtree(config.stash[_temporary_folder], ignore_errors=True)
    from meshferry.cli import environment

    if environment.is_blender_module() and _session in config.stash:
        environment.leave(int(config.stash[_session].exitstatus))


@pytest.fixture(scope="session")
def samples() -> Path:
    """Return the folder of real files; skip where there is none."""
    if not SAMPLES.is_dir():
        pytest.skip(f"no folder of real sample files at {SAMPLES} (set MESHFERRY_SAMPLES)")
    return SAMPLES


@pytest.fixture(scope="session")
def registered_addon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """Register the add-on for the whole run, with a user's folder of its own, and unregister it at the end.

    Classes left registered hang Blender 4.5 for ever at exit when Blender is a Python module.
    """
    pytest.importorskip("bpy", reason="Blender is absent")
    from meshferry.blender_data import file_records

    folder = tmp_path_factory.mktemp("user")
    file_records.user_folder = lambda: folder
    addon = sys.modules["meshferry"]
    try:
        addon.register()
    except Exception:
        with contextlib.suppress(Exception):
            addon.unregister()  # what was registered before the failure would hang the exit and hide the message
        raise
    yield addon
    addon.unregister()


@pytest.fixture(scope="session")
def empty_file(registered_addon: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a .blend file with an empty scene and one workspace, which takes half as long as that of Blender."""
    import bpy

    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    spare = [*bpy.data.workspaces, *bpy.data.screens]
    bpy.data.batch_remove([block for block in spare if block not in (bpy.context.workspace, bpy.context.screen)])
    path = tmp_path_factory.getbasetemp() / "empty.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(path), copy=True)
    return str(path)


@pytest.fixture
def clean_blender(empty_file: str) -> ModuleType:
    """Start the test from an empty scene with the add-on registered; return ``bpy``.

    Opening a file keeps the preferences; no test changes them.
    """
    import bpy

    bpy.ops.wm.read_homefile(filepath=empty_file, use_empty=True)
    return bpy


@pytest.fixture
def tmp_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an empty folder. pytest's own fixture goes through the folders of all tests before to number one."""
    folder = tmp_path_factory.getbasetemp() / str(next(_folders))
    folder.mkdir()
    return folder


@pytest.fixture(autouse=True)
def _blender_for_marked_tests(request: pytest.FixtureRequest) -> None:
    """Give tests marked ``needs_bpy`` a clean Blender, or skip them where there is no Blender."""
    if request.node.get_closest_marker("needs_workers") is not None and IN_BLENDER:
        pytest.skip("this Blender's own Python lacks libraries, so that no worker can start there")
    if request.node.get_closest_marker("needs_bpy") is None:
        return
    if not HAS_BPY:
        pytest.skip("Blender is absent: install the bpy wheel or run scripts/run_blender_tests")
    request.getfixturevalue("clean_blender")

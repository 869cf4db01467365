"""Replacing and removing files where the system refuses for a moment or for read-only files, as Windows does."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from meshferry.io_formats.core.errors import ExportError
from meshferry.io_formats.core.format import OutputFile
from meshferry.io_formats.disk import atomic_write, file_sets


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Let the system behave as Windows; return how often it is still to report a sharing violation, by function."""
    violations = {"replace": 0, "unlink": 0}
    replace, unlink = os.replace, os.unlink

    def refuse(function: str, path: str | Path) -> None:
        if violations[function] or (os.path.exists(path) and not os.stat(path).st_mode & stat.S_IWRITE):
            violations[function] = max(0, violations[function] - 1)
            raise PermissionError(13, "Access is denied", str(path))

    def windows_replace(source: str | Path, target: str | Path) -> None:
        refuse("replace", target)
        replace(source, target)

    def windows_unlink(path: str | Path, **_: object) -> None:
        refuse("unlink", path)
        unlink(path)

    monkeypatch.setattr(atomic_write.sys, "platform", "win32")
    monkeypatch.setattr(atomic_write.os, "replace", windows_replace)
    monkeypatch.setattr(atomic_write.os, "unlink", windows_unlink)
    monkeypatch.setattr(atomic_write.time, "sleep", lambda _: None)
    monkeypatch.setattr(atomic_write.shutil, "_use_fd_functions", False)  # as on Windows
    monkeypatch.setattr(file_sets, "lock", lambda _: True)  # msvcrt exists on Windows only
    return violations


def write_one(path: Path) -> None:
    atomic_write.replace_file(path, b"new")


def write_set(path: Path) -> None:
    file_sets.write_outputs(path, [OutputFile("model_beside.bin", b"new"), OutputFile(path.name, b"new")])


@pytest.fixture
def read_only(tmp_path: Path) -> list[Path]:
    """Return two files that a version control system made read-only."""
    paths = [tmp_path / "model.bin", tmp_path / "model_beside.bin"]
    for path in paths:
        path.write_bytes(b"old")
        path.chmod(0o444)
    return paths


@pytest.mark.parametrize("write", [write_one, write_set])
def test_read_only_files_are_replaced_and_stay_read_only(
    windows: dict[str, int], read_only: list[Path], write: Callable[[Path], None]
) -> None:
    write(read_only[0])
    assert read_only[0].read_bytes() == b"new"
    assert not read_only[0].stat().st_mode & stat.S_IWRITE
    assert len(os.listdir(read_only[0].parent)) == 2, "temporary files stayed"


@pytest.mark.parametrize("write", [write_one, write_set])
def test_sharing_violations_are_retried_three_times(
    windows: dict[str, int], tmp_path: Path, write: Callable[[Path], None]
) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(b"old")
    windows["replace"], windows["unlink"] = 3, 3
    write(path)
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize("write", [write_one, write_set])
def test_a_file_that_stays_open_elsewhere_is_left_as_it_was(
    windows: dict[str, int], read_only: list[Path], write: Callable[[Path], None]
) -> None:
    windows["replace"] = 99
    with pytest.raises(ExportError, match="Access is denied"):
        write(read_only[0])
    assert [path.read_bytes() for path in read_only] == [b"old", b"old"]
    assert not read_only[0].stat().st_mode & stat.S_IWRITE
    assert len(os.listdir(read_only[0].parent)) == 2, "temporary files stayed"


def test_a_folder_goes_with_its_read_only_files(windows: dict[str, int], tmp_path: Path) -> None:
    folder = tmp_path / "staging"
    folder.mkdir()
    (folder / "kept").write_bytes(b"")
    (folder / "kept").chmod(0o444)
    atomic_write.remove_folder(folder)
    assert not folder.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="Windows and macOS have no paths of this length")
def test_folders_are_made_beyond_the_limit_of_recursion(tmp_path: Path) -> None:
    folder = tmp_path.joinpath(*"a" * 1500)
    atomic_write.make_folder(folder)
    for path in (folder, *folder.parents[:1499]):  # shutil.rmtree recurses
        path.rmdir()


@pytest.mark.parametrize("name", ["a.mesh", "a_house_of_the_village.mesh", "ä" * 120 + ".mesh"])
def test_temporary_names_are_no_longer_than_the_target(tmp_path: Path, name: str) -> None:
    handle, temporary = atomic_write.temporary_file(tmp_path / name)
    os.close(handle)
    used = Path(temporary).name
    assert len(os.fsencode(used)) <= max(len(os.fsencode(name)), 24)
    assert used.startswith(f".{name[:1]}") == (len(name) > 25)


@pytest.mark.parametrize("write", [write_one, write_set])
def test_names_of_devices_are_refused(tmp_path: Path, windows: dict[str, int], write: Callable[[Path], None]) -> None:
    with pytest.raises(ExportError, match=r"Con\.bin: the file cannot be written: Windows reserves this name"):
        write(tmp_path / "Con.bin")
    assert list(tmp_path.iterdir()) == []
    write(tmp_path / "icon.con.bin")

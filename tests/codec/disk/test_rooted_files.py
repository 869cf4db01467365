"""Files below one folder: found under every spelling, bounded, and never outside of the folder."""

from __future__ import annotations

import os
import sys
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from meshferry.io_formats.core.errors import FormatError
from meshferry.io_formats.disk import rooted_files
from meshferry.io_formats.disk.rooted_files import LfsPointerError, RootedFiles, TooManyFilesError, is_network_path

NAME = "Größe/Дом/é.mat"


def write(path: Path, content: bytes = b"x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    write(tmp_path / "data" / NAME, b"inside")
    write(tmp_path / "beside" / "Lib.mat", b"beside")
    write(tmp_path.parent / "far.mat", b"far")
    return tmp_path / "data"


@pytest.mark.parametrize(
    "spelling",
    [
        NAME,
        NAME.upper(),
        NAME.replace("/", "\\"),
        unicodedata.normalize("NFD", NAME),
        "./Größe//x/../Дом/é.mat",
        "GRÖSSE/дом/É.MAT",
    ],
    ids=["exact", "case", "backslash", "decomposed", "dots", "sharp s"],
)
def test_every_spelling_finds_the_file(data: Path, spelling: str) -> None:
    files = RootedFiles(data)
    assert files.find(spelling) == NAME
    assert files.read(spelling) == b"inside"


def test_only_the_folder_above_is_reached_by_dots(data: Path) -> None:
    files = RootedFiles(data)
    found = files.find_above("..\\BESIDE/lib.mat")
    assert found == "../beside/Lib.mat"
    assert files.read(found) == b"beside"
    for path in ("../../far.mat", "../beside/../../far.mat", str(data / NAME), "Größe/Дом", "..", ""):
        assert files.find_above(path) is None
        with pytest.raises(FormatError, match="no such file"):
            files.read(path)


def test_where_case_is_ignored_the_spelling_of_the_folder_is_returned(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rooted_files.os.path, "lexists", lambda _path: True)
    assert RootedFiles(data).find_above("../BESIDE/lib.MAT") == "../beside/Lib.mat"


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights on Windows")
def test_links_lead_to_inside_only(data: Path, tmp_path: Path) -> None:
    (data / "file").symlink_to(data / NAME)
    (data / "folder").symlink_to(data / "Größe")
    (data / "above").symlink_to(tmp_path)
    (data / "loop").symlink_to(data)
    (data / "out.mat").symlink_to(tmp_path / "beside" / "Lib.mat")
    (data / "gone").symlink_to(data / "nowhere")
    (tmp_path / "up.mat").symlink_to(tmp_path.parent / "far.mat")
    files = RootedFiles(data)
    assert sorted(files.paths.values()) == sorted([NAME, "file", "folder/Дом/é.mat"])
    assert files.read("folder/Дом/é.mat") == files.read("file") == b"inside"
    assert files.find_above("../up.mat") is None


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs on Windows")
def test_a_fifo_does_not_block(data: Path) -> None:
    os.mkfifo(data / "pipe.mat")
    files = RootedFiles(data)
    assert files.find("pipe.mat") is None
    (data / "Größe/Дом/é.mat").unlink()
    os.mkfifo(data / NAME)
    with pytest.raises(FormatError, match="not a regular file"):
        files.read(NAME)


def test_large_files_and_pointers_of_lfs_are_refused(data: Path) -> None:
    write(data / "big", b"12345")
    write(data / "pointer.mesh", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n")
    files = RootedFiles(data)
    assert files.read("big", 5) == b"12345"
    with pytest.raises(FormatError, match="more than 4 bytes"):
        files.read("big", 4)
    with pytest.raises(LfsPointerError, match=r"pointer\.mesh: .*run git lfs pull"):
        files.read("pointer.mesh")


def test_the_number_of_files_is_bounded(data: Path) -> None:
    for number in range(9):
        write(data / "deep" / "deeper" / f"{number}.png")
        write(data / f"{number}.png")
    with pytest.raises(TooManyFilesError, match="more than 12 files"):
        RootedFiles(data, most=12)
    near = RootedFiles(data, most=12, is_partial=True)
    assert {f"{number}.png" for number in range(9)} <= set(near.paths)


def test_listing_can_be_cancelled(data: Path) -> None:
    def check() -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        RootedFiles(data, check=check)


@pytest.mark.parametrize("changed", ["Größe", NAME])
def test_new_and_changed_files_are_noticed(data: Path, changed: str) -> None:
    files = RootedFiles(data)
    files.read(NAME)
    assert files.is_current()
    os.utime(data / changed, ns=(1, 1))
    assert not files.is_current()


def test_deep_folders_end(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rooted_files, "MOST_FOLDERS_DEEP", 3)
    write(data / "1/2/3/there")
    write(data / "1/2/3/4/gone")
    files = RootedFiles(data)
    assert files.find("1/2/3/there")
    assert files.find("1/2/3/4/gone") is None


def test_mounted_files_are_below_their_name(data: Path, tmp_path: Path) -> None:
    files = RootedFiles(data)
    files.mount("shared", tmp_path / "beside")
    assert files.find("SHARED/lib.mat") == "shared/Lib.mat"
    assert files.read("shared/Lib.mat") == b"beside"
    assert files.location("shared/Lib.mat") == (tmp_path / "beside" / "Lib.mat").resolve()


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights on Windows")
def test_links_to_network_paths_are_not_resolved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On Windows, resolving such a link logs in to the server."""
    data = tmp_path / "data"
    (data / "sub").mkdir(parents=True)
    (data / "sub" / "a.mat").write_text("a")
    links = {"good": "sub", "direct": "//server/share/a.mat", "chain": "sub/../direct", "folder": "//server/share"}
    links |= {"inside": "folder/x.mat", "unc": "\\\\?\\UNC\\server\\share", "loop": "loop2", "loop2": "loop"}
    for name, target in links.items():
        (data / name).symlink_to(target)
    (tmp_path / "above").symlink_to("//server/share/a.mat")
    real = os.path.realpath

    def realpath(path: str, **more: Any) -> str:
        assert os.path.basename(path) in {"data", "good", ""}, f"{path} is resolved"
        return real(path, **more)

    monkeypatch.setattr(os.path, "realpath", realpath)
    files = RootedFiles(data)
    assert sorted(files.paths) == ["good/a.mat", "sub/a.mat"]
    assert files.find_above("../above") is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\\\\?\\C:\\x", False),
        ("\\\\?\\UNC\\server\\x", True),
        ("\\\\?\\GLOBALROOT\\Device\\Mup\\server\\x", True),
        ("/\\server/x", True),
        ("C:\\x", False),
        ("/x//y", False),
        ("x", False),
    ],
)
def test_network_paths(text: str, expected: bool) -> None:
    assert is_network_path(text) == expected


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights on Windows")
def test_links_that_cannot_be_read_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in /proc."""
    (tmp_path / "a.mat").write_text("a")
    (tmp_path / "link").symlink_to(tmp_path / "a.mat")

    def readlink(path: str, **_more: Any) -> str:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "readlink", readlink)
    assert sorted(RootedFiles(tmp_path).paths) == ["a.mat"]

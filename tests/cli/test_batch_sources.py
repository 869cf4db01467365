"""What people name on the command line becomes the files of a batch."""

from __future__ import annotations

import argparse
import gzip
import inspect
import io
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from meshferry.cli import inputs
from meshferry.cli.batch import output_folder, sources
from meshferry.cli.batch.tasks import SourceChoice, SourceFile
from meshferry.cli.conversions.convert_plan import known_kind, searched
from meshferry.io_formats.core.errors import MeshferryError
from meshferry.io_formats.disk.atomic_write import OWN_MARK

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="links and such names need rights or other systems")
MESHES = (".mesh", ".timbermesh", ".llmesh", ".anim")


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with files in folders, which is the working folder."""
    for name in (
        "lib/b.mesh",
        "lib/a.MESH",
        "lib/readme.txt",
        "lib/props/lamp.timbermesh",
        "lib/props/old/lamp.mesh",
        "lib/props/old/chair [1].mesh",
        "lib/zoo/lion.anim",
        "other/b.mesh",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * 7)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def find() -> Callable[..., list[SourceFile]]:
    """Find sources; ``find.messages`` stores the reported messages."""

    def run(*paths: object, leave_out: Path | None = None, written: str = "", **choice: Any) -> list[SourceFile]:
        run.messages = []  # type: ignore[attr-defined]
        warned = lambda path, text: run.messages.append((path, text))  # type: ignore[attr-defined] # noqa: E731
        chosen = SourceChoice([str(path) for path in paths], **choice)
        found = sources.find_files(chosen, MESHES, leave_out=leave_out, written=written, on_problem=warned)
        assert isinstance(found, Iterator)
        return list(found)

    return run


def places(found: list[SourceFile]) -> list[str]:
    return [source.place for source in found]


def test_a_folder_to_the_bottom_in_steady_order(tree: Path, find: Callable[..., list[SourceFile]]) -> None:
    found = find("lib")
    assert places(found) == [
        "a.MESH",
        "b.mesh",
        "props/lamp.timbermesh",
        "props/old/chair [1].mesh",
        "props/old/lamp.mesh",
        "zoo/lion.anim",
    ]
    for source in found:
        assert source.root == str(tree / "lib")
        path = Path(source.root, source.path)
        assert (source.size, source.modified) == (7, path.stat().st_mtime_ns)
        assert (source.path, source.member, source.is_link) == (source.place, "", False)
    assert find("lib/") == find(tree / "lib") == found
    assert not find.messages  # type: ignore[attr-defined]
    for name in "hdfbgace":
        (tree / "many" / name / name).mkdir(parents=True)
        (tree / "many" / name / name / "x.mesh").write_bytes(b"")
        (tree / "many" / name / "y.mesh").write_bytes(b"")
    assert places(find("many")) == [
        place for name in "abcdefgh" for place in (f"{name}/y.mesh", f"{name}/{name}/x.mesh")
    ]


def test_files_by_name(tree: Path, find: Callable[..., list[SourceFile]]) -> None:
    """On the command line files go straight into the output folder; below --base they keep their folders."""
    assert places(find("lib/b.mesh", "lib/readme.txt", "missing.mesh")) == ["b.mesh", "readme.txt", "missing.mesh"]
    assert [source.size for source in find("lib/b.mesh", "missing.mesh")] == [7, -1]
    found = find("lib/props/old/lamp.mesh", "other/b.mesh", base="lib")
    assert found[0].root == str(tree / "lib")
    assert found[0].place == "props/old/lamp.mesh"
    drive = tree.drive.replace(":", "/")  # of Windows
    assert found[1].place == drive + (tree / "other" / "b.mesh").relative_to(tree.anchor).as_posix()
    assert Path(found[1].root, found[1].path) == tree / "other" / "b.mesh"


def test_patterns_that_the_shell_left_alone(tree: Path, find: Callable[..., list[SourceFile]]) -> None:
    assert places(find("lib/*.mesh")) == ["a.MESH", "b.mesh"]
    assert places(find("lib/*")) == ["a.MESH", "b.mesh"]  # no text files, no folders
    assert places(find("lib/*.txt")) == ["readme.txt"]  # asked for
    assert places(find("lib/*/*.mesh")) == []
    assert find.messages == [("lib/*/*.mesh", "No file matches this pattern")]  # type: ignore[attr-defined]
    assert places(find("lib/*/lamp*")) == ["props/lamp.timbermesh"]
    assert places(find("lib/**/lamp.*")) == ["props/lamp.timbermesh", "props/old/lamp.mesh"]
    assert places(find("*/b.mesh")) == ["lib/b.mesh", "other/b.mesh"]
    # a file may be called like a pattern
    assert places(find("lib/props/old/chair [1].mesh")) == ["chair [1].mesh"]


def test_match_skip_and_newer(tree: Path, find: Callable[..., list[SourceFile]]) -> None:
    assert places(find("lib", match=["lamp.*", "B.mesh"])) == ["b.mesh", "props/lamp.timbermesh", "props/old/lamp.mesh"]
    assert places(find("lib", match=["props/**"], skip=["props/old/"])) == ["props/lamp.timbermesh"]
    assert places(find("lib", match=["lamp.*"], skip=["**/old/*"])) == ["props/lamp.timbermesh"]
    old = time.time_ns() - 10**9 * 86400 * 10
    for path in (tree / "lib").rglob("*"):  # on Windows, *.mesh finds .MESH, too
        if path.suffix == ".mesh":
            os.utime(path, ns=(old, old))
    wanted = places(find("lib", "missing.mesh", newer=sources.newer_than("7d")))
    assert wanted == ["a.MESH", "props/lamp.timbermesh", "zoo/lion.anim", "missing.mesh"]
    assert len(find("lib", newer=sources.newer_than("2w"))) == 6
    assert sources.newer_than(str(tree / "lib" / "b.mesh")) == (tree / "lib" / "b.mesh").stat().st_mtime_ns
    assert places(find("lib", newer=old)) == wanted[:3]
    assert sources.newer_than("2026-01-31T12:00:00+00:00") == 1769860800 * 10**9
    for text in ("", "7 parrots", "2026-02-31", "9" * 400 + "w", "a\0b"):
        with pytest.raises(argparse.ArgumentTypeError, match="neither a date"):
            sources.newer_than(text)


@pytest.mark.parametrize(
    ("pattern", "hits", "misses"),
    [
        ("*.mesh", ["a.mesh", "x/y/A.MESH"], ["a.mesh.bak", "mesh"]),
        ("x/*.mesh", ["x/a.mesh"], ["a.mesh", "x/y/a.mesh", "y/x/a.mesh"]),
        ("./x/*", ["x/a"], ["y/x/a"]),
        ("x/**", ["x/a", "x/y/a"], ["x", "xa/b"]),
        ("**/x/*", ["x/a", "y/z/x/a"], ["x/y/a"]),
        ("x/", ["x/a", "x/y/a"], ["y/x/a"]),
        ("x\\?.mesh", ["x/a.mesh"], ["x/ab.mesh", "x/.mesh"]),
        ("[ab]*", ["a", "q/b1"], ["c"]),
        ("[!ab]", ["c"], ["a", "b", "cc"]),
        ("x[!a]y", ["xby"], ["x/y"]),
        ("[", ["["], ["a"]),
        ("a[]]", ["a]"], ["a"]),
        ("a(b)+.{1}", ["a(b)+.{1}"], ["abb.x"]),
        ("[a-c]^$", ["b^$"], ["d^$"]),
        ("*" * 40 + "x", ["aax"], ["a" * 5000]),
    ],
)
def test_patterns(pattern: str, hits: list[str], misses: list[str]) -> None:
    test = sources.compile_pattern(pattern).fullmatch
    assert all(test(text) for text in hits)
    assert not any(test(text) for text in misses)


LINES = '# a comment\n\nlib/b.mesh\n"lib/a.MESH"\r\nmissing.mesh\nlib/zoo\n./# odd.mesh'


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_lists(tree: Path, find: Callable[..., list[SourceFile]], encoding: str) -> None:
    """Folders below the working folder are kept; PowerShell's own encoding is read, too."""
    (tree / "# odd.mesh").write_bytes(b"")
    (tree / "list.txt").write_bytes((LINES + "\nlib/größe.mesh").encode(encoding))
    found = find(lists=["list.txt"])
    assert places(found) == ["lib/b.mesh", "lib/a.MESH", "missing.mesh", "lion.anim", "# odd.mesh", "lib/größe.mesh"]
    assert [source.size for source in found] == [7, 7, -1, 7, 0, -1]
    assert {source.root for source in found} == {str(tree), str(tree / "lib" / "zoo")}
    (tree / "below.txt").write_text("b.mesh\nprops/old/lamp.mesh\n")
    assert places(find(lists=["below.txt"], base="lib")) == ["b.mesh", "props/old/lamp.mesh"]
    assert [source.size for source in find(lists=["below.txt"], base="lib")] == [7, 7]


def test_lists_are_streamed(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What another program prints is worked on before that program has ended."""
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as pipe, os.fdopen(writing, "wb", buffering=0) as other:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(pipe))
        goes_on = threading.Event()

        def write() -> None:  # in a thread, as it is more than a pipe of Windows holds
            other.write(b"lib/b.mesh\nother/b.mesh\n" + b"# filler\n" * 2000)
            goes_on.wait()
            other.write(b"missing.mesh")
            other.close()

        threading.Thread(target=write).start()
        found = sources.find_files(SourceChoice(lists=["-"]), MESHES)
        assert next(found).place == "lib/b.mesh"
        assert next(found).place == "other/b.mesh"
        goes_on.set()
        assert [source.place for source in found] == ["missing.mesh"]
        assert not pipe.closed


def test_lists_that_are_none(tree: Path, find: Callable[..., list[SourceFile]]) -> None:
    for data, text in {
        b"lib/b.mesh\nx\0y\n": "line 2 is not a path",
        b"x" * 300_000: "line 1 is not a path",
        b"\xff\xfeab\n": "this is not text",
    }.items():
        (tree / "list.txt").write_bytes(data)
        with pytest.raises(MeshferryError, match=f"^list.txt: {text}"):
            find(lists=["list.txt"])
    with pytest.raises(MeshferryError, match="the list cannot be read"):
        find(lists=["nowhere.txt"])
    with pytest.raises(MeshferryError, match="the list cannot be read"):
        find(lists=["lib"])


def test_the_output_folder_holds_no_sources(tree: Path, find: Callable[..., list[SourceFile]]) -> None:
    for name in ("lib/out/x.mesh", "lib/out/meshferry-batch/y.mesh", "lib/meshferry-batch/z.mesh"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_bytes(b"")
    found = places(find("lib", leave_out=tree / "lib" / "out", written=".blend"))
    assert len(found) == 6 and not any("out" in place or "batch" in place for place in found)
    # Outputs beside their sources: files of the target format are not sources.
    found = places(find("lib", leave_out=tree / "lib", written=".mesh"))
    assert found == ["props/lamp.timbermesh", "zoo/lion.anim"]
    assert places(find("lib/props", leave_out=tree / "lib", written=".timbermesh")) == [
        "old/chair [1].mesh",
        "old/lamp.mesh",
    ]
    assert places(find("lib/out/x.mesh", leave_out=tree / "lib" / "out", written=".mesh")) == ["x.mesh"]


@POSIX
def test_links_and_odd_files(tree: Path, find: Callable[..., list[SourceFile]]) -> None:
    """Links to folders are not followed, so there are no loops; links to files are files; pipes are nothing."""
    (tree / "lib/zoo/loop").symlink_to(tree / "lib")
    (tree / "lib/zoo/link.mesh").symlink_to(tree / "other" / "b.mesh")
    (tree / "lib/zoo/broken.mesh").symlink_to("nowhere.mesh")
    (tree / "lib/zoo/itself.mesh").symlink_to("itself.mesh")
    (tree / "lib/zoo/folder.mesh").symlink_to(tree / "lib")
    os.mkfifo(tree / "lib/zoo/pipe")
    os.mkfifo(tree / "lib/zoo/pipe.mesh")
    (tree / "lib/zoo/to_pipe").symlink_to("pipe")
    found = find("lib/zoo")
    assert [(source.place, source.size, source.is_link) for source in found] == [
        ("broken.mesh", -1, False),
        ("itself.mesh", -1, False),
        ("link.mesh", 7, True),
        ("lion.anim", 7, False),
    ]
    assert find("lib/zoo/pipe.mesh") == []
    assert find.messages == [("lib/zoo/pipe.mesh", "This is a FIFO; batches read regular files only")]  # type: ignore[attr-defined]
    assert places(find("lib/zoo/loop", match=["b.mesh"])) == ["b.mesh"]  # named, it is a folder


@POSIX
def test_names_that_are_no_text(tree: Path, find: Callable[..., list[SourceFile]]) -> None:
    name = os.fsdecode(b"lib/zoo/\xff\xfe.mesh")
    try:
        Path(name).write_bytes(b"x")
    except OSError:
        pytest.skip("this file system takes text alone")
    (found,) = find("lib/zoo", match=["*.mesh"])
    assert json.loads(json.dumps(found.place)) == found.place == os.fsdecode(b"\xff\xfe.mesh")
    assert Path(found.root, found.path).read_bytes() == b"x"
    (tree / "list.txt").write_bytes(b"lib/zoo/\xff\xfe.mesh\n")
    (listed,) = find(lists=["list.txt"])
    assert listed.size == 1


def test_unreadable_folders(tree: Path, monkeypatch: pytest.MonkeyPatch, find: Callable[..., list[SourceFile]]) -> None:
    real = os.scandir

    def scandir(path: str) -> Any:
        if str(path).endswith("props"):
            raise PermissionError(13, "Permission denied", path)
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert places(find("lib")) == ["a.MESH", "b.mesh", "zoo/lion.anim"]
    ((path, text),) = find.messages  # type: ignore[attr-defined]
    assert path == os.path.join("lib", "props")
    assert text == "The folder cannot be read: Permission denied"
    with pytest.raises(MeshferryError, match="cannot be read"):
        list(sources.find_files(SourceChoice(["lib"]), MESHES))
    warned: list[tuple[object, str]] = []
    found = inputs.expand(["lib"], (".timbermesh", ".llmesh"), warn=lambda *warning: warned.append(warning))
    assert (warned, found.files) == ([(path, text)], ()), "other commands warn, too"


def test_folders_deeper_than_the_recursion_limit(tmp_path: Path) -> None:
    bottom = tmp_path.joinpath(*["d"] * 200)
    bottom.mkdir(parents=True)
    (bottom / f".{OWN_MARK}abcdefgh.part").touch()
    (bottom / "x.mesh").touch()
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 120)
    try:
        last = list(inputs.folders_below(str(tmp_path), inputs.ignore_warning))[-1]
        output_folder.remove_leftovers(tmp_path)
    finally:
        sys.setrecursionlimit(limit)
    assert last == ("d/" * 200, [f".{OWN_MARK}abcdefgh.part", "x.mesh"])
    assert os.listdir(bottom) == ["x.mesh"]


def test_junctions_and_removed_folders_are_not_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tag is that of Windows for a mount point."""
    real = os.lstat
    for name in ("kept", "junction", "removed"):
        (tmp_path / name).mkdir()

    def lstat(path: Any, **more: Any) -> Any:
        if Path(path).name == "removed":
            os.rmdir(path)
            raise FileNotFoundError
        status = real(path, **more)
        return SimpleNamespace(
            st_mode=status.st_mode, st_reparse_tag=0xA0000003 if Path(path).name == "junction" else 0
        )

    monkeypatch.setattr(inputs.os, "lstat", lstat)
    found = inputs.folders_below(str(tmp_path / "."), lambda *problem: pytest.fail(str(problem)))
    assert [folder for folder, _ in found] == ["", "kept/"]


@pytest.mark.skipif(sys.platform == "win32", reason="no paths beyond the limit")
def test_folders_and_files_beyond_the_longest_path_are_reported(tmp_path: Path) -> None:
    handle = os.open(tmp_path, os.O_RDONLY)
    for _ in range(25):
        os.mkdir("d" * 200, dir_fd=handle)
        above, handle = handle, os.open("d" * 200, os.O_RDONLY, dir_fd=handle)
        os.close(above)
    os.close(handle)
    warned: list[tuple[str, str]] = []
    deepest = list(inputs.folders_below(str(tmp_path), lambda *warning: warned.append(warning)))[-1][0]
    ((path, text),) = warned
    assert path == os.path.join(tmp_path, deepest) + "d" * 200
    assert text == "The folder cannot be read: File name too long"
    room = os.pathconf("/", "PC_PATH_MAX") - len(os.path.join(tmp_path, deepest))
    assert inputs.counts(Path(tmp_path, deepest, "x" * room + ".bvh"), (".bvh",)), "reading it reports the error"


def test_what_holds_nothing_is_told(tree: Path, find: Callable[..., list[SourceFile]]) -> None:
    (tree / "empty").mkdir()
    (tree / "models.zip").write_bytes(b"PK")
    assert places(find("empty", "models.zip", "lib/zoo")) == ["lion.anim"]
    assert find.messages == [  # type: ignore[attr-defined]
        ("empty", f"There are no {' or '.join(MESHES)} files in this folder"),
        ("models.zip", "This has to be unpacked first; only archives of OpenSim (.oar, .iar) are read as they are"),
    ]
    assert find("lib", match=["nothing*"]) == []
    assert not find.messages  # type: ignore[attr-defined]  # there are files, none of them asked for


def _archive(path: Path, *names: str, broken: bool = False) -> None:
    import tarfile

    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for name in names:
            info = tarfile.TarInfo(name)
            info.size = 2
            tar.addfile(info, io.BytesIO(b"{}"))
    data = gzip.compress(stream.getvalue())
    path.write_bytes(data[: len(data) // 2] if broken else data)


def test_archives(tree: Path, find: Callable[..., list[SourceFile]]) -> None:
    _archive(tree / "lib/zoo/region.oar", "assets/1_mesh.llmesh", "assets/1_texture.jp2", "../../2_mesh.llmesh")
    found = find("lib/zoo")
    assert [(source.path, source.member, source.place, source.size) for source in found] == [
        ("lion.anim", "", "lion.anim", 7),
        ("region.oar", "assets/1_mesh.llmesh", "region/assets/1_mesh.llmesh", 2),
        ("region.oar", "../../2_mesh.llmesh", "region/2_mesh.llmesh", 2),
    ]
    modified = (tree / "lib/zoo/region.oar").stat().st_mtime_ns
    assert found[1].modified == modified
    assert places(find("lib/zoo/region.oar", match=["assets/1*"])) == []
    assert places(find("lib/zoo/region.oar", match=["*.oar/assets/1*"])) == ["region/assets/1_mesh.llmesh"]
    assert find("lib/zoo/region.oar", newer=modified) == []
    assert len(find("lib/zoo/*.oar", newer=modified - 1)) == 2
    # packed anew, it counts where it is named
    (tree / "lib/zoo/region.oar").rename(tree / "lib/zoo/packed.tar.gz")
    assert places(find("lib/zoo")) == ["lion.anim"]
    assert places(find("lib/zoo/packed.tar.gz"))[0] == "packed/assets/1_mesh.llmesh"
    # meshes are not searched where animations are written, and nothing is where neither is
    _archive(tree / "lib/zoo/dance.oar", "assets/1_animation.bvh", "assets/1_mesh.llmesh")
    dance = SourceChoice(["lib/zoo/dance.oar"])
    assert [source.member for source in sources.find_files(dance, [".anim"])] == ["assets/1_animation.bvh"]
    warned: list[tuple[str, str]] = []
    packed = SourceChoice(["lib/zoo/packed.tar.gz"])
    assert list(sources.find_files(packed, [".mesh"], on_problem=lambda *what: warned.append(what))) == []
    assert "hold meshes" in warned[0][1]


def test_broken_archives_are_told_and_the_rest_goes_on(tree: Path, find: Callable[..., list[SourceFile]]) -> None:
    _archive(tree / "lib/zoo/broken.oar", "assets/1_mesh.llmesh", broken=True)
    _archive(tree / "lib/zoo/none.oar", "assets/1_texture.jp2")
    assert places(find("lib/zoo")) == ["lion.anim"]
    ((path, text),) = find.messages  # type: ignore[attr-defined]
    assert path == str(tree / "lib/zoo/broken.oar")
    assert text.startswith(("The archive is cut off here (at byte", "This is not"))
    assert find("lib/zoo/none.oar") == []
    assert find.messages == [
        (str(tree / "lib/zoo/none.oar"), "There are no *.llmesh or *_animation.bvh files in this archive")
    ]  # type: ignore[attr-defined]


def test_content_decides_where_extensions_do_not(tree: Path, samples: Path) -> None:
    """As in ``convert``, a .bytes file of another program is not a source, nor is one without extension."""
    kind = searched(known_kind("blend")[1])
    asset = next((samples / "secondlife").glob("elfears_*.llmesh")).read_bytes()
    (tree / "lib/98a6e63e").write_bytes(asset)
    (tree / "lib/LICENSE").write_text("words")
    (tree / "lib/other.bytes").write_text("words")
    names = [source.place for source in sources.find_files(SourceChoice(["lib"]), kind)]
    assert "98a6e63e" in names
    assert not {"LICENSE", "other.bytes"} & set(names)

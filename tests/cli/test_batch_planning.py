"""The plan of a batch: what becomes what, with no two files in one place."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from meshferry.cli.batch import plan as plan_file
from meshferry.cli.batch.plan import Plan, PlanHead, PlannedNames
from meshferry.cli.batch.tasks import PLAN_FILE, STATE_FOLDER, SourceFile, Task
from meshferry.cli.conversions.settings import Settings
from meshferry.io_formats.core.errors import FormatError, MeshferryError
from meshferry.io_formats.disk.file_names import CAUTIOUS, NameRules

HEAD = PlanHead(Settings("blend", {"compression": "SMALL"}, strict=True), "1.2.3")
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="links need rights on Windows")
TELLS_CASE = pytest.mark.skipif(
    sys.platform in {"win32", "darwin"}, reason="for Windows and macOS, names in other case are the same source"
)


def source(
    place: str, *, root: str = "/lib", member: str = "", path: str = "", size: int = 5, **more: Any
) -> SourceFile:
    return SourceFile(root, path or place, member, place, size, 1_700_000_000_123_456_789, **more)


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Plan]:
    monkeypatch.setattr(plan_file, "rules_of", lambda _folder: CAUTIOUS)

    def make(*sources: SourceFile, clashes: Any = "refuse", extension: str = ".blend", to: str = "out") -> Plan:
        head = dataclasses.replace(HEAD, settings=Settings(extension))
        return plan_file.make_plan(iter(sources), tmp_path / to, head, numbers=clashes == "number")

    return make


def targets(plan: Plan) -> list[str]:
    return [task.target for task in plan.tasks()]


def test_the_tree_is_kept(plan: Callable[..., Plan], tmp_path: Path) -> None:
    found = plan(
        source("a/lamp.mesh"),
        source("b/Lodge.Folktails.Model.timbermesh"),
        source("98a6e63e", root="/other"),
        source("region/assets/x_mesh.llmesh", path="region.oar", member="assets/x_mesh.llmesh"),
        source("gone.mesh", size=-1),
    )
    assert targets(found) == [
        "a/lamp.blend",
        "b/Lodge.Folktails.Model.blend",
        "98a6e63e.blend",
        "region/assets/x_mesh.blend",
        "gone.blend",
    ]
    assert found.roots == ("/lib", "/other")
    assert found.count == 5
    first, _, third, fourth, fifth = found.tasks()
    assert first == Task(0, 0, "a/lamp.mesh", "", "a/lamp.blend", 5, 1_700_000_000_123_456_789)
    assert (third.root, found.path_of(third)) == (1, Path("/other/98a6e63e"))
    assert fourth.source == "region.oar: assets/x_mesh.llmesh"
    assert fifth.size == -1
    assert found.folder == tmp_path / "out" / STATE_FOLDER
    assert os.listdir(found.folder) == [PLAN_FILE]
    index = PlannedNames(found.path)
    assert all(target in index for target in targets(found)) and "a/lamp.mesh" not in index


@TELLS_CASE
def test_clashes_are_refused_with_names(plan: Callable[..., Plan], tmp_path: Path) -> None:
    names = ["x.mesh", "x.anim", "sub/Y.mesh", "sub/y.mesh", "z.mesh", "z.anim", "z.timbermesh", "w.mesh"]
    with pytest.raises(MeshferryError) as caught:
        plan(*(source(name) for name in names))
    said = [
        "/lib/x.mesh and /lib/x.anim would both become x.blend",
        "/lib/sub/Y.mesh and /lib/sub/y.mesh would both become sub/Y.blend",
        "/lib/z.mesh and /lib/z.anim would both become z.blend",
        "and 1 more",
        "use --clashes number to number them",
        "nothing was written",
    ]
    assert str(caught.value) == "; ".join(said)
    assert os.listdir(tmp_path / "out" / STATE_FOLDER) == []


@TELLS_CASE
@pytest.mark.parametrize(
    ("rules", "wanted"),
    [
        (
            NameRules(False, False, False),
            ["ß.blend", "ss.blend", "\u00e9.blend", "e\u0301.blend", "A.blend", "a.blend"],
        ),
        (
            NameRules(True, False, False),
            ["ß.blend", "ss.blend", "\u00e9.blend", "e\u0301.blend", "A.blend", "a_2.blend"],
        ),
        (
            NameRules(True, False, True),
            ["ß.blend", "ss.blend", "\u00e9.blend", "e\u0301_2.blend", "A.blend", "a_2.blend"],
        ),
        (CAUTIOUS, ["ß.blend", "ss_2.blend", "\u00e9.blend", "e\u0301_2.blend", "A.blend", "a_2.blend"]),
    ],
    ids=["exact", "case", "case and composition", "cautious"],
)
def test_the_output_folder_decides_which_names_are_one(
    plan: Callable[..., Plan], monkeypatch: pytest.MonkeyPatch, rules: Any, wanted: list[str]
) -> None:
    monkeypatch.setattr(plan_file, "rules_of", lambda _folder: rules)
    names = ["ß.mesh", "ss.mesh", "\u00e9.mesh", "e\u0301.mesh", "A.mesh", "a.mesh"]
    found = plan(*map(source, names), clashes="number")
    assert targets(found) == wanted
    assert all(target in PlannedNames(found.path) for target in wanted)
    if wanted[-1] == "a_2.blend":
        with pytest.raises(MeshferryError, match=r"/lib/A\.mesh and /lib/a\.mesh would both become A\.blend"):
            plan(*map(source, names))


@TELLS_CASE
def test_the_output_folder_is_probed_only_for_different_names(
    plan: Callable[..., Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A probe writes a file, so that a preview should do without it."""
    probed: list[str] = []
    monkeypatch.setattr(plan_file, "rules_of", lambda folder: probed.append(folder) or CAUTIOUS)
    same = source("x.mesh"), source("x.anim"), source("y.mesh")
    assert targets(plan(*same, clashes="number")) == ["x.blend", "x_2.blend", "y.blend"]
    assert not probed
    assert targets(plan(*same, source("Y.mesh"), clashes="number"))[2:] == ["y.blend", "Y_2.blend"]
    assert len(set(probed)) == 1


@TELLS_CASE
def test_clashes_are_numbered_in_order(plan: Callable[..., Plan]) -> None:
    names = ["x.mesh", "x_2.mesh", "X.anim", "x.timbermesh", "sub/x.mesh", "x_2.anim", "X_3.mesh", "é.mesh", "É.mesh"]
    made = plan(*(source(name) for name in names), clashes="number")
    index = PlannedNames(made.path)
    assert all(target in index for target in targets(made))
    assert targets(made) == [
        "x.blend",
        "x_2.blend",
        "X_4.blend",  # x_2 and X_3 are others'
        "x_5.blend",
        "sub/x.blend",
        "x_2_2.blend",
        "X_3.blend",
        "é.blend",
        "É_2.blend",
    ]


def test_members_and_files_of_several_roots_clash(plan: Callable[..., Plan]) -> None:
    asset = {"member": "assets/1_mesh.llmesh", "root": "/lands"}
    found = [
        source("a/assets/1_mesh.llmesh", path="a.oar", **asset),
        source("a/assets/1_mesh.llmesh", path="a.iar", **asset),
        source("a/assets/1_mesh.mesh", root="/other"),
    ]
    with pytest.raises(MeshferryError, match=r"/lands.a\.oar: assets/1_mesh\.llmesh and /lands.a\.iar: assets"):
        plan(*found)
    assert targets(plan(*found, clashes="number")) == [f"a/assets/1_mesh{end}.blend" for end in ("", "_2", "_3")]


def test_each_source_counts_once(plan: Callable[..., Plan], tmp_path: Path) -> None:
    """However it was named: by another root, or through a link to its folder."""
    (tmp_path / "lib" / "sub").mkdir(parents=True)
    root = str(tmp_path / "lib")
    found = [
        source("sub/x.mesh", root=root),
        source("x.mesh", root=root + os.sep + "sub"),
        source("y.mesh", root=root),
        source("sub/x.mesh", root=root),
        source("r/1.llmesh", path="r.oar", member="1.llmesh", root=root),
        source("r/2.llmesh", path="r.oar", member="2.llmesh", root=root),
        source("r/1.llmesh", path="r.oar", member="1.llmesh", root=root),
    ]
    if sys.platform != "win32":
        (tmp_path / "link").symlink_to(tmp_path / "lib" / "sub")
        found.append(source("other/x.mesh", path="x.mesh", root=str(tmp_path / "link")))
    made = plan(*found)
    assert targets(made) == ["sub/x.blend", "y.blend", "r/1.blend", "r/2.blend"]
    assert [task.number for task in made.tasks()] == [0, 2, 4, 5]
    assert (made.count, made.last_line) == (4, 6)


def test_sources_in_the_output_folder_keep_their_names_from_whatever_is_named_later(
    plan: Callable[..., Plan], tmp_path: Path
) -> None:
    root = str(tmp_path / "out")
    made = plan(
        source("a/crate.bin", root=root), source("crate.data", root=root), source("lamp.bin"), extension=".gltf"
    )
    index = PlannedNames(made.path)
    assert all(name in index for name in ("a/crate.gltf", "a/crate.bin", "crate.data", "lamp.gltf"))
    assert "lamp.bin" not in index


def test_a_source_is_never_overwritten(plan: Callable[..., Plan], tmp_path: Path) -> None:
    root = str(tmp_path / "out")
    for clashes in ("refuse", "number"):
        with pytest.raises(MeshferryError) as caught:
            plan(source("x.mesh", root=root), clashes=clashes, extension=".mesh")
        assert str(caught.value) == f"{root}{os.sep}x.mesh would overwrite itself; nothing was written"
        with pytest.raises(MeshferryError) as caught:
            plan(source("X.anim"), source("x.mesh", root=root), clashes=clashes, extension=".mesh")
        assert f"/lib{os.sep}X.anim would overwrite the input {root}{os.sep}x.mesh" in str(caught.value)
        # whatever the number of a clash would be
        below = os.path.join(root, "sub")
        found = [source("sub/a.mesh"), source("sub/a.anim"), source("a_2.mesh", root=below), source("b.anim")]
        with pytest.raises(MeshferryError):
            plan(*found, clashes="refuse", extension=".mesh")
    assert targets(plan(*found, clashes="number", extension=".mesh")) == [
        "sub/a.mesh",
        "sub/a_3.mesh",
        "a_2.mesh",
        "b.mesh",
    ]


@POSIX
def test_links_between_sources_and_targets(plan: Callable[..., Plan], tmp_path: Path) -> None:
    """A file is written through a link, and read through one."""
    (tmp_path / "out").mkdir()
    (tmp_path / "lib").mkdir()
    root = str(tmp_path / "lib")
    (tmp_path / "lib" / "real.mesh").write_bytes(b"x")
    (tmp_path / "out" / "x.mesh").symlink_to(tmp_path / "lib" / "real.mesh")
    twice = [source("x.anim", root=root)] * 2
    with pytest.raises(MeshferryError, match=r"^[^;]*x\.anim would overwrite the input .*real\.mesh; nothing"):
        plan(*twice, source("real.mesh", root=root), extension=".mesh")
    plan(source("x.anim", root=root), source("other.mesh", root=root), extension=".mesh")
    (tmp_path / "out" / "y.mesh").write_bytes(b"x")
    (tmp_path / "lib" / "y.mesh").symlink_to(tmp_path / "out" / "y.mesh")
    with pytest.raises(MeshferryError, match="overwrite itself"):
        plan(source("y.mesh", root=root, is_link=True), extension=".mesh")
    # the folder itself under another name
    (tmp_path / "again").symlink_to(tmp_path / "out")
    with pytest.raises(MeshferryError, match="overwrite itself"):
        plan(source("y.mesh", root=str(tmp_path / "again")), extension=".mesh")
    # no number gives the name of a link
    (tmp_path / "out" / "z_2.mesh").symlink_to(tmp_path / "lib" / "real.mesh")
    made = plan(source("z.mesh", root=root), source("z.anim", root=root), extension=".mesh", clashes="number")
    assert targets(made) == ["z.mesh", "z_3.mesh"]


def test_a_plan_is_complete_or_not_there(plan: Callable[..., Plan], tmp_path: Path) -> None:
    def broken() -> Iterator[SourceFile]:
        yield source("a.mesh")
        raise MeshferryError("the list cannot be read")

    folder = tmp_path / "out" / STATE_FOLDER
    for problem in ("before", "after"):
        with pytest.raises(MeshferryError, match="the list"):
            plan_file.make_plan(broken(), tmp_path / "out", HEAD)
        if problem == "before":
            assert os.listdir(folder) == []
            plan(source("b.mesh"))
    assert targets(Plan(folder)) == ["b.blend"]
    assert os.listdir(folder) == [PLAN_FILE]
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(MeshferryError, match="is a file, not a folder"):
        plan(source("a.mesh"), to="file")
    with pytest.raises(MeshferryError, match="the plan cannot be written"):
        plan(source("a.mesh"), to="file/out")


def test_a_plan_of_nothing(plan: Callable[..., Plan]) -> None:
    made = plan()
    assert (made.count, list(made.tasks()), made.roots) == (0, [], ())


def test_odd_names_survive(plan: Callable[..., Plan]) -> None:
    names = ["\udcff\udcfe.mesh", 'quote".mesh', "line\nbreak.mesh", "größe 💡.mesh", "a" * 250 + ".mesh"]
    made = plan(*(source(name, root="/lib\udcff") for name in names))
    assert [task.path for task in made.tasks()] == names
    assert targets(made) == [name.replace(".mesh", ".blend") for name in names]
    assert Plan(made.folder).roots == ("/lib\udcff",)


def test_any_part_of_a_plan(plan: Callable[..., Plan], monkeypatch: pytest.MonkeyPatch) -> None:
    made = plan(*(source(f"{'x' * (number % 13 + 1)}/{number}.mesh") for number in range(2100)))
    every = list(made.tasks())
    assert [task.number for task in every] == list(range(2100))
    for start in (0, 1, 998, 999, 1000, 1001, 2098, 2100):
        assert list(Plan(made.folder).tasks(start, start + 3)) == every[start : start + 3]
    assert list(made.tasks(90)) == every[90:]
    assert list(made.tasks(5, 5)) == list(made.tasks(2200, 2300)) == []


def test_digest_changes_with_all_that_matters() -> None:
    changed = [
        {"options": {}},
        {"options": {"compression": "FAST"}},
        {"strict": False},
        {"to": "glb"},
        {"new_names": {"a": "b"}},
    ]
    heads = [dataclasses.replace(HEAD, settings=dataclasses.replace(HEAD.settings, **change)) for change in changed]
    digests = {head.digest for head in (*heads, HEAD, dataclasses.replace(HEAD, version="1.2.4"))}
    assert len(digests) == 7
    assert dataclasses.replace(HEAD, roots=("/x",), count=3).digest == HEAD.digest
    # Version 0.1.0 computed this one for its options; its results stay valid.
    old = PlanHead(Settings("timbermesh", {"compression": "SMALL"}), "0.1.0")
    assert old.digest == "24c02045a74a824e4cfd87eb55f61125"


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE tasks SET target = '../a.blend' WHERE line = 2",
        "UPDATE tasks SET target = 'x/../../a.blend' WHERE line = 2",
        "UPDATE tasks SET target = '/a.blend' WHERE line = 2",
        "UPDATE tasks SET target = '' WHERE line = 2",
        "UPDATE tasks SET root = 1 WHERE line = 2",
        "UPDATE tasks SET root = -1 WHERE line = 2",
    ],
)
def test_targets_outside_of_the_output_folder_are_refused(plan: Callable[..., Plan], change: str) -> None:
    made = plan(source("x.mesh"), source("y.mesh"))
    with contextlib.closing(plan_file.connect(made.path)) as connection:
        connection.execute(change)
    tasks = Plan(made.folder).tasks()
    assert next(tasks).target == "x.blend"
    with pytest.raises(FormatError, match="Line 2 of the plan is not valid"):
        next(tasks)


@pytest.mark.parametrize("content", [b"", b"not a database" * 100, "DELETE FROM head", "UPDATE head SET json = '[]'"])
def test_what_is_not_a_plan_is_refused(plan: Callable[..., Plan], tmp_path: Path, content: Any) -> None:
    made = plan(source("x.mesh"))
    if isinstance(content, bytes):
        made.path.write_bytes(content)
    else:
        with contextlib.closing(plan_file.connect(made.path)) as connection:
            connection.execute(content)
    with pytest.raises(FormatError, match="This is not a plan of a batch"):
        Plan(made.folder)
    with pytest.raises(FormatError, match="There is no plan of a batch here"):
        Plan(tmp_path / "nowhere")


NAMES = st.builds(
    "{}{}{}".format,
    st.sampled_from(["", "a/", "A/", "a/b/"]),
    st.sampled_from(["x", "X", "x_2", "x_2_2", "x_3", "X_3", "x.y", "ß", "SS", "é", "_2"]),
    st.sampled_from([".mesh", ".anim", ".MESH", ".blend", ""]),
)
ROOTS = st.sampled_from(["/lib", "/lib/a", "/other", "OUT", "OUT/a"])


@TELLS_CASE
@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(ROOTS, NAMES), max_size=30), st.sampled_from(["refuse", "number"]))
@example([("/lib", "x.mesh"), ("/lib", "X.mesh"), ("/lib", "x.anim"), ("/lib", "x_2.mesh")], "number")
@example([("/lib", "a/x.mesh"), ("/lib/a", "x.mesh")], "refuse")
def test_whatever_is_found(found: list[tuple[str, str]], clashes: Any) -> None:
    """No two works share a target, each source comes once, in order, and nothing read is written over."""
    folder = Path(tempfile.mkdtemp())
    try:
        output = folder / "out"
        listed = [SourceFile(root.replace("OUT", str(output)), name, "", name, 1, 2) for root, name in found]
        outcome: list[list[Task] | str] = []
        for _ in range(2):
            try:
                numbers = clashes == "number"
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(plan_file, "rules_of", lambda _folder: CAUTIOUS)
                    made = plan_file.make_plan(iter(listed), output, HEAD, numbers=numbers)
                outcome.append(list(made.tasks()))
            except MeshferryError as problem:
                outcome.append(str(problem))
        assert outcome[0] == outcome[1]
        once = list(dict.fromkeys(os.path.join(one.root, one.path) for one in listed))
        plain: dict[str, str] = {}
        for one in listed:
            name = PurePosixPath(one.place)
            stem = name.name if name.suffix.lower() == "" else name.stem
            plain.setdefault(os.path.join(one.root, one.path), str(name.with_name(stem + ".blend")))
        read = {os.path.relpath(path, output).casefold() for path in once}
        overwrites = any(target.casefold() in read for target in plain.values())
        collides = len({target.casefold() for target in plain.values()}) < len(plain)
        if isinstance(outcome[0], str):
            assert overwrites or (collides and clashes == "refuse")
            return
        tasks = outcome[0]
        assert not overwrites and not (collides and clashes == "refuse")
        roots = Plan(output / STATE_FOLDER).roots
        assert [os.path.join(roots[task.root], task.path) for task in tasks] == once
        made = [task.target.casefold() for task in tasks]
        assert len(set(made)) == len(made)
        assert not read & set(made)
        first: set[str] = set()
        for task, path in zip(tasks, once, strict=True):
            if plain[path].casefold() not in first:
                assert task.target == plain[path]  # who comes first keeps the name
            first.add(plain[path].casefold())
            assert PurePosixPath(task.target).parent == PurePosixPath(plain[path]).parent
    finally:
        shutil.rmtree(folder)

"""The plan of a batch: what becomes what, with no two files in one place."""

from __future__ import annotations

import json
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
from meshferry.cli.batch.plan import plan_file, planning
from meshferry.cli.batch.plan.plan_file import BatchFile, Plan
from meshferry.cli.batch.plan.target_index import TargetIndex
from meshferry.cli.batch.tasks import BATCH_FILE, PLAN_FILE, STATE_FOLDER, Source, Task
from meshferry.io_formats.core.errors import FormatError, MeshferryError
from meshferry.io_formats.disk.file_names import CAUTIOUS, NameRules

BATCH = BatchFile(("--strict", "--scale=2"), "blend", ".blend", "1.2.3")
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="links need rights on Windows")


def source(place: str, *, root: str = "/lib", member: str = "", path: str = "", size: int = 5, **more: Any) -> Source:
    return Source(root, path or place, member, place, size, 1_700_000_000_123_456_789, **more)


@pytest.fixture
def plan(tmp_path: Path) -> Callable[..., Plan]:
    def make(
        *sources: Source, clashes: Any = "refuse", extension: str = ".blend", to: str = "out", rules: Any = CAUTIOUS
    ) -> Plan:
        return planning.make_plan(iter(sources), tmp_path / to, extension, clashes, BATCH, rules)

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
    assert sorted(os.listdir(found.folder)) == [BATCH_FILE, PLAN_FILE, "targets.u64"]
    index = TargetIndex(tmp_path / "out")
    assert all(target in index for target in targets(found)) and "a/lamp.mesh" not in index


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
    assert not (tmp_path / "out").exists()


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
    plan: Callable[..., Plan], rules: Any, wanted: list[str]
) -> None:
    names = ["ß.mesh", "ss.mesh", "\u00e9.mesh", "e\u0301.mesh", "A.mesh", "a.mesh"]
    found = plan(*map(source, names), clashes="number", rules=rules)
    assert targets(found) == wanted
    assert all(target in TargetIndex(found.folder.parent) for target in wanted)
    if wanted[-1] == "a_2.blend":
        with pytest.raises(MeshferryError, match=r"/lib/A\.mesh and /lib/a\.mesh would both become A\.blend"):
            plan(*map(source, names), rules=rules)


def test_clashes_are_numbered_in_order(plan: Callable[..., Plan]) -> None:
    names = ["x.mesh", "x_2.mesh", "X.anim", "x.timbermesh", "sub/x.mesh", "x_2.anim", "X_3.mesh", "é.mesh", "É.mesh"]
    made = plan(*(source(name) for name in names), clashes="number")
    index = TargetIndex(made.folder.parent)
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
    with pytest.raises(MeshferryError, match=r"/lands/a\.oar: assets/1_mesh\.llmesh and /lands/a\.iar: assets"):
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
    assert [task.number for task in made.tasks()] == [0, 1, 2, 3]
    assert made.count == 4


def test_sources_in_the_output_folder_keep_their_names_from_whatever_is_named_later(
    plan: Callable[..., Plan], tmp_path: Path
) -> None:
    root = str(tmp_path / "out")
    plan(source("a/crate.bin", root=root), source("crate.data", root=root), source("lamp.bin"), extension=".gltf")
    index = TargetIndex(tmp_path / "out")
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
    with pytest.raises(MeshferryError, match=r"x\.anim would overwrite the input .*real\.mesh"):
        plan(source("x.anim", root=root), source("real.mesh", root=root), extension=".mesh")
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


def test_nothing_is_left_of_a_plan_that_failed(plan: Callable[..., Plan], tmp_path: Path) -> None:
    def broken() -> Iterator[Source]:
        yield source("a.mesh")
        raise MeshferryError("the list cannot be read")

    for problem in ("before", "after"):
        with pytest.raises(MeshferryError, match="the list"):
            planning.make_plan(broken(), tmp_path / "deep" / "out", ".blend", "refuse", BATCH)
        if problem == "before":
            assert list(tmp_path.iterdir()) == []
            made = plan(source("b.mesh"), to="deep/out")
    assert targets(Plan.open(made.folder)) == ["b.blend"]
    assert sorted(os.listdir(made.folder)) == [BATCH_FILE, PLAN_FILE, "targets.u64"]
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
    assert Plan.open(made.folder).roots == ("/lib\udcff",)
    assert (made.folder / PLAN_FILE).read_bytes().isascii() and (made.folder / BATCH_FILE).read_bytes().isascii()


@pytest.mark.parametrize("block", [100, 1000])
def test_any_part_of_a_plan(plan: Callable[..., Plan], monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    """Works are found by number, across the index and the blocks it is made from."""
    monkeypatch.setattr(plan_file, "_STEP", 8)
    monkeypatch.setattr(plan_file, "_BLOCK", block)
    made = plan(*(source(f"{'x' * (number % 13 + 1)}/{number}.mesh") for number in range(100)))
    every = list(made.tasks())
    assert [task.number for task in every] == list(range(100))
    for start in range(102):
        part = list(Plan.open(made.folder).tasks(start, start + 3))
        assert part == every[start : start + 3]
    assert list(made.tasks(90)) == every[90:]
    assert list(made.tasks(5, 5)) == list(made.tasks(200, 300)) == []
    again = Plan.open(made.folder.parent, roots=["/mnt"])
    assert again.path_of(every[3]) == Path("/mnt/xxxx/3.mesh")


def test_digest_changes_with_all_that_matters() -> None:
    import dataclasses

    changed = [{"argv": ("--strict",)}, {"argv": ()}, {"to": "glb"}, {"extension": ".glb"}, {"version": "1.2.4"}]
    digests = {dataclasses.replace(BATCH, **change).digest for change in changed} | {BATCH.digest}
    assert len(digests) == 6
    assert dataclasses.replace(BATCH, roots=("/x",), count=3, plan_size=7).digest == BATCH.digest
    assert BatchFile.from_json(BATCH.to_json()) == BATCH


@pytest.mark.parametrize(
    "line",
    [
        '[0,"a.mesh","","a.blend",5]',
        '[0,"a.mesh","","a.blend",5,6,7]',
        '[0,"a.mesh","",null,5,6]',
        '[true,"a.mesh","","a.blend",5,6]',
        '[1,"a.mesh","","a.blend",5,6]',
        '[-1,"a.mesh","","a.blend",5,6]',
        '[0,"a.mesh","","../a.blend",5,6]',
        '[0,"a.mesh","","x/../../a.blend",5,6]',
        '[0,"a.mesh","","/a.blend",5,6]',
        '[0,"a.mesh","","",5,6]',
        "[" * 100_000,
        "{}",
        "\udcff",
        "",
    ],
)
def test_plans_changed_by_hand(plan: Callable[..., Plan], line: str) -> None:
    made = plan(source("x.mesh"), source("y.mesh"))
    lines = (made.folder / PLAN_FILE).read_bytes().splitlines()
    lines[1] = os.fsencode(line)
    data = b"\n".join([*lines, b""])
    (made.folder / PLAN_FILE).write_bytes(data)
    with pytest.raises(FormatError, match=r"plan\.jsonl: The plan has .* bytes instead of"):
        Plan.open(made.folder)
    head = json.loads((made.folder / BATCH_FILE).read_text())
    (made.folder / BATCH_FILE).write_text(json.dumps(head | {"plan_size": len(data)}))
    tasks = Plan.open(made.folder).tasks()
    assert next(tasks).target == "x.blend"
    with pytest.raises(FormatError, match=r"plan\.jsonl: Line 2 is not one of a plan"):
        next(tasks)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"argv": "--strict"}, "'argv' is not a list of texts"),
        ({"roots": [1]}, "'roots' is not a list of texts"),
        ({"count": "7"}, "'count' is missing or of another kind"),
        ({"to": None}, "'to' is missing or of another kind"),
        ({"count": -1}, "a count is below zero"),
        (None, "This is not the head of a plan"),
    ],
)
def test_heads_changed_by_hand(plan: Callable[..., Plan], change: dict[str, Any] | None, text: str) -> None:
    made = plan(source("x.mesh"))
    path = made.folder / BATCH_FILE
    path.write_text("[]" if change is None else json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(FormatError, match=text):
        Plan.open(made.folder)
    with pytest.raises(FormatError, match="There is no plan of a batch here"):
        Plan.open(made.folder / "nowhere")


def test_other_roots_have_to_be_as_many(plan: Callable[..., Plan]) -> None:
    made = plan(source("x.mesh"))
    with pytest.raises(FormatError, match="has 1 folders of sources, not 2"):
        Plan.open(made.folder, roots=["/a", "/b"])


NAMES = st.builds(
    "{}{}{}".format,
    st.sampled_from(["", "a/", "A/", "a/b/"]),
    st.sampled_from(["x", "X", "x_2", "x_2_2", "x_3", "X_3", "x.y", "ß", "SS", "é", "_2"]),
    st.sampled_from([".mesh", ".anim", ".MESH", ".blend", ""]),
)
ROOTS = st.sampled_from(["/lib", "/lib/a", "/other", "OUT", "OUT/a"])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(ROOTS, NAMES), max_size=30), st.sampled_from(["refuse", "number"]))
@example([("/lib", "x.mesh"), ("/lib", "X.mesh"), ("/lib", "x.anim"), ("/lib", "x_2.mesh")], "number")
@example([("/lib", "a/x.mesh"), ("/lib/a", "x.mesh")], "refuse")
def test_whatever_is_found(found: list[tuple[str, str]], clashes: Any) -> None:
    """No two works share a target, each source comes once, in order, and nothing read is written over."""
    folder = Path(tempfile.mkdtemp())
    try:
        output = folder / "out"
        listed = [Source(root.replace("OUT", str(output)), name, "", name, 1, 2) for root, name in found]
        outcome: list[list[Task] | str] = []
        for _ in range(2):
            try:
                outcome.append(
                    list(planning.make_plan(iter(listed), output, ".blend", clashes, BATCH, CAUTIOUS).tasks())
                )
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
            assert not output.exists()
            return
        tasks = outcome[0]
        assert not overwrites and not (collides and clashes == "refuse")
        roots = Plan.open(output).roots
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

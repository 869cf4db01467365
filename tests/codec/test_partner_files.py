"""Files that come in sets: which belong together by name, and what becomes of them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import toy_format
from meshferry.cli.batch import plan as batch_plan
from meshferry.cli.batch.plan import PlanHead
from meshferry.cli.batch.tasks import SourceFile
from meshferry.cli.conversions.convert_plan import plan_conversions
from meshferry.cli.conversions.settings import Settings
from meshferry.io_formats import api, partner_files, registry
from meshferry.io_formats.core.errors import FormatError, MeshferryError
from meshferry.io_formats.core.format import Family
from meshferry.io_formats.partner_files import FileSet, file_set, file_sets
from meshferry.io_formats.passes.lod_names import FILE_SUFFIXES

OFF, LEVELS = {"use_partner_files": False}, {"use_files_as_levels": True}


def join(document: Any, partners: Any) -> Any:
    """Join toy files: the document of the set lists the triangles of each part."""
    document.parts = {part: len(one.triangles) for part, one in partners.items()}
    return document


@pytest.fixture(autouse=True)
def toys(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Register a format whose files come in sets."""
    module: Any = sys.modules[toy_format.__name__]
    toy = replace(
        toy_format.TOY,
        modules=lambda _name: SimpleNamespace(**{**vars(module), "join": join}),
        partner_suffixes=FILE_SUFFIXES,
    )
    monkeypatch.setattr(registry, "FORMATS", [*registry.FORMATS, toy])
    monkeypatch.setattr(registry, "_offered", [Family("toy", "Toy", (toy,))])
    partner_files._suffixes.cache_clear()
    partner_files._pattern.cache_clear()
    yield
    partner_files._suffixes.cache_clear()
    partner_files._pattern.cache_clear()


def write(folder: Path, *names: str) -> list[Path]:
    """Write files with 1, 2, 3 … triangles."""
    for count, name in enumerate(names, 1):
        points = "".join(f"v {number} {number % 2} 0\n" for number in range(count + 2))
        triangles = "".join(f"f {number} {number + 1} {number + 2}\n" for number in range(count))
        (folder / name).write_bytes(f"TOY 1\n{points}{triangles}".encode())
    return [folder / name for name in names]


def spelled(sets: list[FileSet]) -> dict[str, dict[str, str]]:
    return {one.path.name: {part: path.name for part, path in one.partners.items()} for one in sets}


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["a.toy", "a_LOD2.toy", "A_lod1.TOY", "a_LOD0.toy", "a_PHYS.toy"], {"a.toy": "_LOD2 _LOD1 _LOD0 _PHYS"}),
        (["a_HIGH.toy", "a_MED.toy", "a_LOW.toy", "a_lowest.toy"], {"a_HIGH.toy": "_LOD2 _LOD1 _LOD0"}),
        (["a_LOD3.toy", "a_mid.toy"], {"a_LOD3.toy": "_LOD2"}),
        (["a_LOD1.toy", "a_LOD2.toy"], {"a_LOD1.toy": "", "a_LOD2.toy": ""}),
        (["a.toy", "a_HIGH.toy", "a_LOD2.toy"], {"a.toy": "_LOD2", "a_HIGH.toy": ""}),
        (["a.toy", "a_LOD2.obj", "b_LOD2.toy", "_LOD2.toy"], {"a.toy": "", "b_LOD2.toy": "", "_LOD2.toy": ""}),
    ],
)
def test_names_decide_which_files_belong_together(tmp_path: Path, names: list[str], expected: dict[str, str]) -> None:
    paths = [path for path in write(tmp_path, *names) if path.suffix.lower() == ".toy"]
    found = {one.path.name: " ".join(one.partners) for one in file_sets(paths)}
    assert found == expected
    assert [one.path for one in file_sets(paths, OFF)] == paths
    assert all(not one.partners for one in file_sets(paths, OFF))


def test_a_main_file_finds_its_partners_and_a_partner_does_not(tmp_path: Path) -> None:
    main, level, physics, other = write(tmp_path, "a.toy", "a_LOD1.toy", "a_phys.toy", "b.toy")
    assert spelled([file_set(main)]) == {"a.toy": {"_LOD1": "a_LOD1.toy", "_PHYS": "a_phys.toy"}}
    assert spelled([file_set(level)]) == {"a_LOD1.toy": {}}
    assert spelled(file_sets([level, other])) == {"a_LOD1.toy": {}, "b.toy": {}}
    assert list(spelled(file_sets([physics, other, main]))) == ["b.toy", "a.toy"]
    read = api.load_set(file_set(main))
    assert read.document.parts == {"_LOD1": 2, "_PHYS": 3}
    assert read.partners == {"_LOD1": level, "_PHYS": physics}
    assert read.data == main.read_bytes()


def test_a_damaged_partner_is_left_out_with_its_name_and_the_cause(tmp_path: Path) -> None:
    main, level, physics = write(tmp_path, "a.toy", "a_LOD1.toy", "a_PHYS.toy")
    level.write_bytes(b"TOY 1\nv a b c\n")
    physics.write_bytes(b"v 1")
    scene = api.read_scene(main)
    assert [(found.code, found.is_loss, found.item) for found in scene.warnings] == [
        ("partner-not-read", True, "a_LOD1.toy"),
        ("partner-not-read", True, "a_PHYS.toy"),
    ]
    assert "could not convert" in scene.warnings[0]
    main.write_bytes(b"TOY 1\nv a b c\n")
    with pytest.raises(FormatError, match=r"a\.toy: The file is damaged"):
        api.read_scene(main)


def test_triangles_decide_the_levels_of_chosen_files(tmp_path: Path) -> None:
    low, physics, high, mid = write(tmp_path, "x.toy", "any_PHYS.toy", "y_LOD0.toy", "z.toy")
    sets = file_sets([low, physics, high, mid, tmp_path / "lamp.mesh"], LEVELS)
    assert [one.path.name for one in sets] == ["x.toy", "lamp.mesh"]
    read = api.load_set(sets[0])
    assert read.path == mid
    assert {part: path.name for part, path in read.partners.items()} == {
        "_LOD2": "y_LOD0.toy",
        "_LOD1": "x.toy",
        "_PHYS": "any_PHYS.toy",
    }
    assert read.document.parts == {"_LOD2": 3, "_LOD1": 1, "_PHYS": 2}
    assert read.data == mid.read_bytes()
    many = file_sets(write(tmp_path, *(f"{name}.toy" for name in "abcde")), LEVELS)
    with pytest.raises(FormatError, match="has at most 4 and one physics shape"):
        api.load_set(many[0])


def test_conversions_read_a_set_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "a.toy", "a_LOD1.toy", "b_LOD1.toy")
    folders = [str(tmp_path)], "blend", str(tmp_path / "out")
    plan = plan_conversions(*folders, Settings())
    assert [job.sources[0].name for job in plan.jobs] == ["a.toy", "b_LOD1.toy"]
    assert spelled([plan.jobs[0].file_set(plan.jobs[0].sources[0])]) == {"a.toy": {"_LOD1": "a_LOD1.toy"}}
    plan = plan_conversions([str(tmp_path / "a.toy"), str(tmp_path / "b_LOD1.toy"), "x.blend"], None, None, Settings())
    assert len(plan.jobs[0].sources) == 2
    monkeypatch.setattr(Settings, "read_options", OFF)
    assert len(plan_conversions(*folders, Settings()).jobs) == 3
    monkeypatch.setattr(Settings, "read_options", LEVELS)
    with pytest.raises(MeshferryError, match="--files-as-levels"):
        plan_conversions(*folders, Settings())


def test_a_batch_has_one_task_for_a_set_and_notices_changes_of_its_partners(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = write(tmp_path, "a.toy", "a_LOD1.toy", "b_LOD1.toy", "lamp.mesh")
    status = [path.stat() for path in paths]
    sources = [
        SourceFile(str(tmp_path), path.name, "", path.name, found.st_size, found.st_mtime_ns)
        for path, found in zip(paths, status, strict=True)
    ]
    for given in (sources, sources[::-1]):
        plan = batch_plan.make_plan(given, tmp_path / "out", PlanHead(Settings("blend"), "1"))
        tasks = {task.path: task for task in plan.tasks()}
        assert sorted(tasks) == ["a.toy", "b_LOD1.toy", "lamp.mesh"]
        assert plan.count == 3
        assert tasks["a.toy"].size == status[0].st_size + status[1].st_size
        assert tasks["a.toy"].modified == max(found.st_mtime_ns for found in status[:2])
    monkeypatch.setattr(Settings, "read_options", OFF)
    assert batch_plan.make_plan(sources, tmp_path / "out", PlanHead(Settings("blend"), "1")).count == 4

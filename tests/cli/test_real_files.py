"""Real files of the families through the shell, into .blend files and back as they were, judged by the oracles.

The smallest family in processes of their own, as users start them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mesh_serializer_made as made
import pytest
import second_life_judge
import second_life_oracle
import unigine_judge
import unigine_oracle

pytestmark = pytest.mark.needs_bpy

EMBEDDING = ("ms10", "ms11", "ms12")
"""Versions of UNIGINE meshes with animations inside."""


def same_unigine(before: bytes, after: bytes) -> object:
    old, new = unigine_oracle.decode(before), unigine_oracle.decode(after)
    if old.magic.startswith("an"):
        return unigine_judge.same_animation(old, new)
    return unigine_judge.same_mesh(old, new, is_exact=True)


def same_second_life(before: bytes, after: bytes) -> object:
    old, new = second_life_oracle.decode(before), second_life_oracle.decode(after)
    is_exact = old.skin is None
    within = second_life_judge.EXACT if is_exact else second_life_judge.EDITABLE
    return second_life_judge.same_asset(old, new, normals=within, except_doubtful=not is_exact)


def same_mesh_serializer(before: bytes, after: bytes) -> object:
    differing = made.assert_same(made.unpack(before), made.unpack(after))
    assert differing == 0 and after == before
    return differing


def unigine_exports(folder: Path) -> list[tuple[list[Path], Sequence[str]]]:
    """Return the .blend files of each version with the options that write this version."""
    exports: list[tuple[list[Path], Sequence[str]]] = []
    for version in sorted({path.name[:4] for path in folder.iterdir()}):
        kind, option = ("anim", "--animation-version") if version.startswith("an") else ("mesh", "--mesh-version")
        embedding = ["--embedded-animation"] if version in EMBEDDING else []
        exports.append((sorted(folder.glob(f"{version}_*.blend")), ["--to", kind, option, version, *embedding]))
    return exports


@dataclass(frozen=True)
class Family:
    """The samples of a family, and how they are written and compared."""

    folder: str
    suffixes: tuple[str, ...]
    count: int
    compare: Callable[[bytes, bytes], object]
    exports: Callable[[Path], list[tuple[list[Path], Sequence[str]]]]
    """Return inputs and options of the exports from a folder of .blend files."""
    extension: str = ""
    """Of the files that are written; empty if it is that of the sample."""


FAMILIES = {
    "unigine": Family("unigine", (".mesh", ".anim"), 42, same_unigine, unigine_exports),
    "second_life": Family(
        "secondlife",
        (".mesh", ".llmesh"),
        26,
        same_second_life,
        lambda folder: [([folder], ("--to", "llmesh", "--as-imported"))],
        ".llmesh",
    ),
    "mesh_serializer": Family(
        "unity_meshserializer",
        (".data", ".bin"),
        6,
        same_mesh_serializer,
        lambda folder: [([folder], ("--to", "data"))],
        ".data",
    ),
}


@pytest.mark.parametrize(
    "key",
    [
        pytest.param("mesh_serializer", marks=pytest.mark.slow),
        # tests/blender/test_faithful.py goes through the same files in each version.
        *(pytest.param(key, marks=[pytest.mark.slow, pytest.mark.any_version]) for key in ("unigine", "second_life")),
    ],
)
def test_every_real_file_comes_back_through_the_shell(
    key: str, meshferry: Any, run_script: Any, samples: Path, tmp_path: Path
) -> None:
    run = run_script if key == "mesh_serializer" else meshferry
    family = FAMILIES[key]
    source, back = samples / family.folder, tmp_path / "back"
    if not source.is_dir():
        pytest.skip(f"{source} is absent")
    done = run("convert", "--json", source, "--to", "blend", "-o", tmp_path / "blends")
    assert done.status == 0, done.err
    names = sorted(path.relative_to(source) for path in source.rglob("*") if path.suffix in family.suffixes)
    assert len(names) == family.count
    for inputs, options in family.exports(tmp_path / "blends"):
        done = run("convert", "--json", *inputs, *options, "-o", back)
        assert done.status == 0, done.err
    expected = {name: back / name.with_suffix(family.extension or name.suffix) for name in names}
    bundled = {path for path in back.rglob("*.*.*") if key == "second_life"}
    assert {path for path in back.rglob("*") if path.is_file()} - bundled == set(expected.values())
    for name, path in expected.items():
        print(name, family.compare((source / name).read_bytes(), path.read_bytes()))
    if key == "second_life":
        # The three models of the bundle, one of them a further part of another, and its materials' names.
        assert {path.name for path in bundled} == {f"synth_scene.{name}.llmesh" for name in ("crate", "many", "manyb")}


@pytest.mark.slow
@pytest.mark.any_version
def test_every_real_asset_becomes_an_upload_set_or_says_why_not(run_script: Any, samples: Path, tmp_path: Path) -> None:
    source = samples / "secondlife"
    if not source.is_dir():
        pytest.skip(f"no real Second Life files in {samples}")
    done = run_script("--", "convert", "--json", source, "--to", "dae", "-o", tmp_path)
    assert "defect" not in done.out + done.err
    assert len(done.entries) == 27
    for entry in done.entries:
        if "error" in entry:
            assert entry.get("files") is None
            continue
        stem = Path(entry["output"]).with_suffix("")
        levels = {f"{stem}{suffix}.dae" for suffix in ("", "_LOD2", "_LOD1", "_LOD0")}
        beside = set(entry["files"])
        assert levels <= beside <= {*levels, f"{stem}_PHYS.dae"}
        assert all(Path(path).is_file() for path in beside)
    print([(entry["input"], entry["error"]) for entry in done.entries if "error" in entry])
    assert sum("error" in entry for entry in done.entries) < 5

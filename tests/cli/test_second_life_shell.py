"""Real Second Life assets through the shell, into .blend files and back as they were, judged by the oracle.

Processes of their own, as users start them; few, since each starts Blender.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import second_life_judge as judge
import second_life_oracle as oracle

pytestmark = pytest.mark.needs_bpy


@pytest.mark.slow
def test_every_real_asset_comes_back_through_the_shell(run_script, samples: Path, tmp_path: Path) -> None:
    from meshferry.blender_data import compat

    source = samples / "secondlife"
    if not source.is_dir():
        pytest.skip(f"no real Second Life files in {samples}")
    there = run_script("--", "convert", "--json", source, "--to", "blend", "-o", tmp_path / "blends")
    assert there.status == 0, there.err
    names = sorted(path.relative_to(source) for path in source.rglob("*") if path.suffix in (".mesh", ".llmesh"))
    assert len(names) == 26
    folder = ["--to", "llmesh", "-o", tmp_path / "back", "--as-imported"]
    back = run_script("--", "convert", "--json", tmp_path / "blends", *folder)
    assert back.status == 0, back.err
    for name in names:
        before = oracle.decode((source / name).read_bytes())
        after = oracle.decode((tmp_path / "back" / name.with_suffix(".llmesh")).read_bytes())
        exact = compat.HAS_FREE_NORMALS and before.skin is None
        within = judge.EXACT if exact else judge.EDITABLE
        print(name, judge.same_asset(before, after, normals=within, except_doubtful=not exact))
    # The three models of the bundle, one of them a further part of another, and its materials' names.
    parts = sorted(path.name for path in (tmp_path / "back" / "synthetic").glob("synth_scene.*"))
    assert parts == [f"synth_scene.{name}.llmesh" for name in ("crate", "many", "manyb")]


@pytest.mark.slow
def test_every_real_asset_becomes_an_upload_set_or_says_why_not(run_script, samples: Path, tmp_path: Path) -> None:
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

"""Real UNIGINE files through the shell, into .blend files and back in their own versions, judged by the oracle.

Processes of their own, as users start them; few, since each starts Blender.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import unigine_judge as judge
import unigine_oracle as oracle

pytestmark = pytest.mark.needs_bpy

VERSIONS = {
    **dict.fromkeys(("mr02", "ms13", "ms14", "ms15"), ("mesh", "--mesh-version")),
    **dict.fromkeys(("ms10", "ms11", "ms12"), ("mesh", "--mesh-version")),
    **dict.fromkeys(("an10", "an11", "an13"), ("anim", "--animation-version")),
}
EMBEDDING = ("ms10", "ms11", "ms12")


@pytest.mark.slow
def test_every_real_file_comes_back_through_the_shell(run_script, samples: Path, tmp_path: Path) -> None:
    from meshferry.blender_data import compat

    source = samples / "unigine"
    if not source.is_dir():
        pytest.skip(f"no real UNIGINE files in {samples}")
    there = run_script("--", "convert", "--json", source, "--to", "blend", "-o", tmp_path / "blends")
    assert there.status == 0, there.err
    names = sorted(path.name for path in source.iterdir() if path.suffix in (".mesh", ".anim"))
    assert len(names) == 42
    for version, (kind, option) in VERSIONS.items():
        blends = sorted((tmp_path / "blends").glob(f"{version}_*.blend"))
        assert [blend.stem for blend in blends] == [Path(name).stem for name in names if name.startswith(version)]
        more = ["--embedded-animation"] if version in EMBEDDING else []
        folder = ["--to", kind, "-o", tmp_path / "back", option, version, *more]
        back = run_script("--", "convert", "--json", *blends, *folder)
        assert back.status == 0, back.err
    originals = {name: oracle.decode((source / name).read_bytes()) for name in names}
    assert {path.name for path in (tmp_path / "back").iterdir()} == set(names)
    for name, before in originals.items():
        after = oracle.decode((tmp_path / "back" / name).read_bytes())
        if name.endswith(".anim"):
            print(name, judge.same_animation(before, after))
            continue
        exact = compat.HAS_FREE_NORMALS and not before.bones
        within = judge.EXACT if exact else judge.EDITABLE
        print(name, judge.same_mesh(before, after, within, except_doubtful=not exact))

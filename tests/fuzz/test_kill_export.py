"""A few killed exports, of the many that ``kill_export.py`` kills."""

from __future__ import annotations

import sys
from pathlib import Path

import kill_export
import pytest

pytest.importorskip("google.protobuf")


@pytest.mark.skipif("blender" in Path(sys.executable).name.lower(), reason="the child processes need a plain Python")
@pytest.mark.parametrize("codec", [True, False], ids=["codec", "operator"])
def test_killed_export_leaves_a_whole_file(tmp_path: Path, codec: bool) -> None:
    if not codec:
        pytest.importorskip("bpy")
    killed = kill_export.run(tmp_path, 8 if codec else 3, seed=3, codec=codec)
    assert killed.temporaries <= killed.kills

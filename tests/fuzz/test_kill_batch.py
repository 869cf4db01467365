"""A few kills of a small batch, of the many that ``kill_batch.py`` does."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("google.protobuf")
pytest.importorskip("llsd")
pytest.importorskip("rich")
pytest.importorskip("psutil")

pytestmark = pytest.mark.any_version


@pytest.mark.slow
def test_a_killed_batch_ends_as_an_undisturbed_one(tmp_path: Path) -> None:
    bpy = sys.modules.get("bpy")
    if bpy is not None and bpy.app.binary_path:
        pytest.skip("the driver is started as plain Python, which this Blender's is not")
    import kill_batch

    killed = kill_batch.run(tmp_path, 3, 60, seed=4)
    assert sum(killed.kills.values()) > 0

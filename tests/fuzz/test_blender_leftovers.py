"""A hundred and fifty imports that fail, of the two thousand that ``blender_leftovers.py`` runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from blender_leftovers import Leftovers


@pytest.mark.needs_bpy
def test_failed_imports_leave_nothing(tmp_path: Path) -> None:
    report = Leftovers(tmp_path, seed=5, use_samples=False).run(150)
    assert not report.leftovers, report.leftovers[0]
    assert report.outcomes["failed, broken off"] > 50

"""A few of the hostile pictures that ``decode_jpeg2000.py`` decodes."""

from __future__ import annotations

import decode_jpeg2000
import pytest


@pytest.mark.slow
@pytest.mark.any_version
@pytest.mark.needs_bpy
def test_hostile_pictures_that_pass_the_check_cost_little() -> None:
    import bpy

    if bpy.app.binary_path:
        pytest.skip("the child processes need Blender as a Python module; this is the program")
    outcome = decode_jpeg2000.run(600, seed=4)
    assert not outcome.bad, outcome.bad
    assert outcome.decoded > 100 and outcome.undecodable > 50 and outcome.refused.total() > 100

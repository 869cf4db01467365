"""A few killed exports, of the many that ``kill_export.py`` kills."""

from __future__ import annotations

from pathlib import Path

import kill_export
import pytest

pytest.importorskip("google.protobuf")

pytestmark = pytest.mark.any_version


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "codec"),
    [
        *((name, True) for name in ("timbermesh", "unigine_mesh", "unigine_animation")),
        *((name, True) for name in ("second_life_mesh", "second_life_upload", "second_life_animation")),
        # Operators write one file or a set by the same code as the codecs.
        *((name, False) for name in ("timbermesh", "second_life_upload")),
    ],
)
def test_killed_export_leaves_a_whole_file(tmp_path: Path, name: str, codec: bool) -> None:
    if not codec:
        bpy = pytest.importorskip("bpy")
        if bpy.app.binary_path:
            pytest.skip("the child processes need Blender as a Python module; this is the program")
    killed = kill_export.run(tmp_path, 4 if codec else 2, 3, name, codec=codec)
    assert killed.temporaries <= killed.kills

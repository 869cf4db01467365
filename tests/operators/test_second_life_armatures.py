"""Files of dressed avatars do not depend on the bones that show the joints: their directions, and goals of limbs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pointing_bones
import pytest
from test_second_life_shaped_exports import EXPORTERS, MADE, choose, dressed, exporter, set_shape

pytestmark = pytest.mark.needs_bpy

BOUND = ("belt", "shirt")


def with_goals(bpy: Any, rig: Any) -> None:
    """Add goals and pose the limbs by them."""
    bpy.context.view_layer.objects.active = rig
    assert bpy.ops.object.second_life_ik_add() == {"FINISHED"}
    for number, name in enumerate(("IK Foot Left", "IK Foot Right", "IK Hand Left", "IK Hand Right")):
        rig.pose.bones[name].location = (0.1, 0.05 * number, -0.1)


KINDS = {
    "upload set": exporter("second_life_upload", ".dae", BOUND, **MADE),
    "mesh": exporter("second_life_mesh", ".llmesh", BOUND, **MADE),
    "bundle": exporter("second_life_bundle", ".slm", BOUND, **MADE),
    "request": exporter("second_life_request", ".llsd", BOUND, **MADE),
    **{kind: EXPORTERS[kind] for kind in ("unigine", "figures")},
}


@pytest.mark.slow
def test_files_do_not_depend_on_bones(clean_blender: Any, tmp_path: Path) -> None:
    bpy = clean_blender
    found: dict[str, dict[str, Any]] = {}
    for bones in ("new", "pointing", "goals"):
        bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
        rig = dressed(bpy, pointing_bones.add() if bones == "pointing" else None)
        if bones == "goals":
            set_shape(rig, "1")
            with_goals(bpy, rig)
        found[bones] = {}
        for kind, export in KINDS.items():
            choose(bpy, *(bpy.data.objects[name] for name in BOUND))
            folder = tmp_path / bones / kind
            folder.mkdir(parents=True)
            found[bones][kind] = export(bpy, folder)
    for kind, made in found["new"].items():
        assert made and found["pointing"][kind] == made and found["goals"][kind] == made, kind

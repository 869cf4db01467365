"""The special cases of docs/users/conversion.md are measured here."""

import pytest
import special_cases

pytestmark = [pytest.mark.needs_bpy, pytest.mark.slow]


def test_special_cases_are_kept_or_reported_as_the_page_states(tmp_path):
    import bpy

    has_usd = "usd_export" in dir(bpy.ops.wm)
    targets = [target for target in special_cases.TARGETS if has_usd or target != "`.usd`"]
    cells = special_cases.measured(tmp_path, targets)
    assert not [cell for cell, text in cells.items() if text.startswith("lost")]
    assert {text for (case, _), text in cells.items() if not case[0].isdigit() or "µm" in case} == {"kept", "–"}
    if has_usd and bpy.app.version[:2] == (4, 5):
        page = special_cases.survival.PAGE.read_text(encoding="utf-8")
        assert special_cases.table(cells) in page, "renew it: python tests/cli/special_cases.py"

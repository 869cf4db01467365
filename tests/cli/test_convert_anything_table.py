"""What survives which conversion: the page says what is measured here."""

import conversion_table as survival
import pytest

pytestmark = [pytest.mark.needs_bpy, pytest.mark.slow]


@pytest.fixture(scope="module")
def cells(tmp_path_factory, registered_addon):
    import bpy

    if "usd_export" not in dir(bpy.ops.wm):
        pytest.skip("this Blender is built without USD")
    return survival.measured(tmp_path_factory.mktemp("survival"))


def test_the_page_says_what_survives(cells):
    """On the Blender that the page names; what differs in others is tested one by one."""
    import bpy

    if bpy.app.version[:2] != (4, 5):
        pytest.skip("the page is about Blender 4.5")
    page = survival.PAGE.read_text(encoding="utf-8")
    begin, end = page.index(survival.BEGIN) + len(survival.BEGIN), page.index(survival.END)
    assert page[begin:end].strip() == survival.table(cells), "renew it: python tests/cli/conversion_table.py"


def test_what_is_lost_is_said(cells):
    from meshferry.io_formats import registry

    silent = {}
    for (source, target), cell in cells.items():
        known = next((one for one in registry.FORMATS if one.name == target), None)
        if not cell.kept:
            assert cell.error, (source, target)
            continue
        if known is not None and not known.capabilities.meshes:
            continue  # who asks for an animation or for bones asks for nothing else
        unsaid = set(survival.unsaid(cell)) - {"P"}
        if target == "second_life_mesh":
            unsaid -= {"M"}  # faces have numbers there, as the page says
        if unsaid:
            silent[source, target] = unsaid
    assert not silent


def test_nothing_is_lost_where_a_file_holds_everything(cells):
    for (source, target), cell in cells.items():
        if target == "blend":
            assert cell.kept == cell.held, source
            assert not [text for text in cell.said if "not carried over" in text], source

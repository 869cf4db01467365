"""File > New > Second Life Avatar: a new file with the avatar, a garment with all levels, and its physics."""

from pathlib import Path
from typing import Any

from ...menus import MenuEntry, registration
from ...preferences import drawn_for
from ...translations import CONTEXT

FILE = Path(__file__).with_name("starting_file.blend")
"""Only packages have it; ``examples/make_starting_file.py`` makes it."""


@drawn_for("second_life")
def draw_new_entry(self: Any, _context: Any) -> None:
    """Draw the entry. Blender's own operator asks to save the current file first, as for its templates."""
    if not FILE.is_file():
        return
    self.layout.operator_context = "INVOKE_DEFAULT"  # otherwise it does not ask
    entry = self.layout.operator(
        "wm.read_homefile", text="Second Life Avatar", text_ctxt=CONTEXT, icon="OUTLINER_OB_ARMATURE"
    )
    entry.filepath = str(FILE)
    entry.load_ui = False


ENTRIES = (MenuEntry("TOPBAR_MT_file_new", draw_new_entry),)

register, unregister = registration((), ENTRIES)

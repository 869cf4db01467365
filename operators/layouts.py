"""Parts of operators and layouts that several features share: conditions of buttons, panels, lists, menus."""

from collections.abc import Callable, Sequence
from typing import Any

import bpy
from bpy.props import BoolProperty, StringProperty

from ..blender_data.property_groups.translation_context import CONTEXT
from .translations import iface_

Condition = tuple[Callable[[bpy.types.Context], bool], str]
"""A function of the context, and the text that is shown at a greyed out button if the function returns False."""


IS_MESH: Condition = (
    lambda context: context.object is not None and context.object.type == "MESH",
    "Choose a mesh object",
)
IS_EDITABLE: Condition = (
    lambda context: context.object.is_editable and context.object.data.is_editable,
    "The object is linked from another file",
)
IN_OBJECT_MODE: Condition = (lambda context: context.mode == "OBJECT", "Leave edit mode first")
IN_EDITABLE_SCENE: Condition = (lambda context: context.scene.is_editable, "The scene is linked from another file")


_PATTERN_LENGTH = 15
"""Characters of a pattern that the file browser compares."""


def path_property(name: str, description: str, subtype: str, options: Any) -> Any:
    """Return a property for the path of a file or folder."""
    options = options | {"PATH_SUPPORTS_BLEND_RELATIVE"}
    return StringProperty(name=name, description=description, maxlen=1024, subtype=subtype, options=options)


WRITES_STORED_PATH = BoolProperty(
    name="Replacing Confirmed",
    description="Scripts: also write to a path that is stored in the .blend file, but was neither read nor chosen "
    "since the file was opened",
    options={"HIDDEN", "SKIP_SAVE"},
)
"""Property ``is_confirmed`` of operators that write to the path of an earlier export."""


def file_patterns(extensions: Sequence[str]) -> str:
    """Return the patterns by which the file browser lists files with these endings.

    Blender compares the first 15 characters of each pattern only (``BLI_path_extension_check_glob``).
    """
    return ";".join(f"*{extension[1 - _PATTERN_LENGTH :]}" for extension in extensions)


class Sidebar:
    """Base of the panels: their location in Blender."""

    bl_space_type = "VIEW_3D"
    bl_region_type = "UI"
    bl_category = "Meshferry"


def requires(*conditions: Condition) -> Any:
    """Return a ``poll`` of operators that requires all conditions and shows the text of the first one not met."""

    def poll(cls: Any, context: bpy.types.Context) -> bool:
        for is_met, text in conditions:
            if not is_met(context):
                cls.poll_message_set(text)
                return False
        return True

    return classmethod(poll)


def sidebar_panel(
    name: str,
    label: str,
    is_shown: Callable[[bpy.types.Context], bool],
    *,
    parent: str = "sidebar",
    is_closed: bool = False,
    category: str = Sidebar.bl_category,
) -> Callable[[Callable[[Any, bpy.types.Context], None]], Any]:
    """Return a decorator that makes a panel of the sidebar from the function that draws its layout.

    Parameters
    ----------
    name:
        Name of the class, ``<family>_PT_<panel>``.
    is_shown:
        The condition for the panel.
    parent:
        The panel of the same family that contains this one; empty for none.
    """

    def decorate(draw: Callable[[Any, bpy.types.Context], None]) -> Any:
        body: dict[str, Any] = {
            "__module__": __name__,  # so that the family's module does not register it, but variants of it
            "bl_label": label,
            "bl_category": category,
            "poll": classmethod(lambda _cls, context: is_shown(context)),
            "draw": lambda self, context: draw(self.layout, context),
        }
        if parent:
            body["bl_parent_id"] = f"{name.partition('_PT_')[0]}_PT_{parent}"
        if is_closed:
            body["bl_options"] = {"DEFAULT_CLOSED"}
        return type(name, (Sidebar, bpy.types.Panel), body)

    return decorate


class Rows:
    """Mixin of lists whose rows depend on the item only."""

    def draw_item(
        self,
        context: bpy.types.Context,
        layout: Any,
        data: Any,
        item: Any,
        icon: int,
        active_data: Any,
        active_property: str,
        index: int,
    ) -> None:
        """Draw one item; Blender requires these parameters."""
        self.draw_row(layout, item)

    @staticmethod
    def draw_row(layout: Any, item: Any) -> None:
        """Draw one item."""
        raise NotImplementedError


def property_column(layout: Any) -> Any:
    """Return a column in which the labels of properties are beside them."""
    column = layout.column()
    column.use_property_split = True
    column.use_property_decorate = False
    return column


def button(layout: Any, operator: str | type, text: str, icon: str = "NONE", **properties: Any) -> Any:
    """Draw a button with a translated text, or only its icon; set properties of its operator and return them."""
    name = operator if isinstance(operator, str) else operator.bl_idname  # type: ignore[attr-defined]
    drawn = layout.operator(name, text=text, text_ctxt=CONTEXT, icon=icon)
    for key, value in properties.items():
        setattr(drawn, key, value)
    return drawn


def draw_rest(layout: Any, listed: Sequence[Any], most: int) -> None:
    """Draw how many items of a list are not shown, if it has more than are shown."""
    if len(listed) > most:
        layout.label(text=iface_("and {} more").format(len(listed) - most), translate=False)


def selected_collections(context: bpy.types.Context) -> list[Any]:
    """Return the collections selected in the Outliner; none if there is no Outliner (scripts, background mode)."""
    return [item for item in getattr(context, "selected_ids", None) or () if isinstance(item, bpy.types.Collection)]


def collection_under_pointer(context: bpy.types.Context) -> Any | None:
    """Return the collection whose context menu is open, or the active one."""
    item = getattr(context, "id", None)
    return item if isinstance(item, bpy.types.Collection) else context.collection

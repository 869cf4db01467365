"""The options of a new building."""

from functools import partial

from ...core.options import Choice, Options, option, shared
from ..game_names import FACTIONS
from ..model.format import GAME

_building = partial(option, section="Building")
_size = partial(option, section="Size (0: from the Model)", default=0, minimum=0)
_KINDS = (
    Choice("DECORATION", "Decoration", "It may raise the wellbeing of beavers nearby"),
    Choice("PLATFORM", "Platform", "Others can be built on it"),
    Choice("WITH_ENTRANCE", "With Entrance", "Beavers go in, without work"),
    Choice("LIKE", "Like…", "All that another blueprint has beside model, size, names and cost"),
)
_FACTIONS = (
    Choice("AUTO", "Automatic", "By the collection's name, such as Hut.Folktails, or else by the materials"),
    *(Choice(name.upper(), name, f"{name} alone") for name in FACTIONS),
)


class BuildingOptions(Options):
    """The values that the artist gives for a new building; the scene decides everything else."""

    mod: str = option("Mod", "Folder of the mod; a new one gets a manifest", default="", section="Mod", is_path=True)
    use_replace: bool = option(
        "Replace", "Write over a building of this name; other content is kept as .bak", default=False, section="Mod"
    )
    kind: str = _building("Kind", "What the building is for the game", default="DECORATION", choices=_KINDS)
    like: str = _building(
        "Like",
        "Blueprint file, or building of the game or the mod, such as LumberMill.Folktails",
        default="",
        shown_when=lambda values: values["kind"] == "LIKE",
    )
    wellbeing: str = _building(
        "Wellbeing",
        "Need of the game that a decoration satisfies nearby; empty for none",
        default="BeaverStatue",
        shown_when=lambda values: values["kind"] == "DECORATION",
    )
    faction: str = _building("Faction", "Faction that builds it", default="AUTO", choices=_FACTIONS)
    tool_group: str = _building("Tool Group", "Group of the toolbar", default="Decoration")
    tool_order: int = _building("Order", "Position in the tool group", default=1000)
    cost: str = _building("Cost", "Goods, such as Log 10, Plank 5", default="Log 10")
    science: int = _building("Science", "Science points that unlock it", default=0, minimum=0)
    display_name: str = _building("Name", "Name in the game; empty: that of the collection", default="")
    description: str = _building("Description", "Text in the game", default="")
    icon: str = _building("Icon", "PNG or JPG; empty: rendered, unless there is one", default="", is_path=True)
    size_x: int = _size("Size X", "Cells along X; 0: from the model")
    size_y: int = _size("Size Y", "Cells along Y; 0: from the model")
    size_z: int = _size("Size Z", "Cells in height; 0: from the model")
    game: str = shared(GAME)


OPTIONS = tuple(option for option in BuildingOptions.table() if not option.preference)
"""The options without those of the preferences."""
BLOCKS = "BlockObjectSpec/Blocks"
"""Path of the cells in a blueprint."""

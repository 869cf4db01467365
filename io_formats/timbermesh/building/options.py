"""The options of a new building."""

from __future__ import annotations

from dataclasses import dataclass

from ...core.options import Choice, Options, option, shared
from ..game_names import FACTIONS
from ..model.format import GAME


@dataclass(frozen=True)
class BuildingOptions(Options):
    """The values that the artist gives for a new building; the scene decides everything else."""

    mod: str = option(
        "Mod",
        "Folder of the mod; one without a manifest.json gets it",
        default="",
        section="Mod",
        is_path=True,
    )
    author: str = option("Author", "Author of a new mod, the first part of its Id", default="", section="Mod")
    kind: str = option(
        "Kind",
        "What the building is for the game",
        default="DECORATION",
        section="Building",
        choices=(
            Choice("DECORATION", "Decoration", "It may raise the wellbeing of beavers nearby"),
            Choice("PLATFORM", "Platform", "Others can be built on it"),
            Choice("WITH_ENTRANCE", "With Entrance", "Beavers go in, without work"),
            Choice("LIKE", "Like…", "All that another blueprint has beside model, size, names and cost"),
        ),
    )
    like: str = option(
        "Like",
        "A blueprint file, or the name of a building of the game or of the mod, such as LumberMill.Folktails",
        default="",
        section="Building",
        shown_when=lambda values: values["kind"] == "LIKE",
    )
    wellbeing: str = option(
        "Wellbeing",
        "Need of the game that a decoration satisfies nearby; empty for none",
        default="BeaverStatue",
        section="Building",
        shown_when=lambda values: values["kind"] == "DECORATION",
    )
    faction: str = option(
        "Faction",
        "Faction that builds it. Automatic: the end of the collection's name, such as Hut.Folktails, or else the "
        "materials",
        default="AUTO",
        section="Building",
        choices=(
            Choice("AUTO", "Automatic", "By the collection's name, or else by the materials"),
            *(Choice(name.upper(), name, f"{name} alone") for name in FACTIONS),
        ),
    )
    tool_group: str = option("Tool Group", "Group of the toolbar", default="Decoration", section="Building")
    tool_order: int = option("Order", "Position in the tool group", default=1000, section="Building")
    cost: str = option("Cost", "Goods, such as Log 10, Plank 5", default="Log 10", section="Building")
    science: int = option("Science", "Science points that unlock it", default=0, minimum=0, section="Building")
    display_name: str = option(
        "Name", "Name in the game; empty: that of the collection, split at capitals", default="", section="Building"
    )
    description: str = option("Description", "Text in the game", default="", section="Building")
    icon: str = option(
        "Icon",
        "PNG or JPG picture; without one the model is rendered, unless an icon is there",
        default="",
        section="Building",
        is_path=True,
    )
    size_x: int = option("Size X", "Cells along X; 0: from the model", default=0, minimum=0, section="Size")
    size_y: int = option("Size Y", "Cells along Y; 0: from the model", default=0, minimum=0, section="Size")
    size_z: int = option("Size Z", "Cells in height; 0: from the model", default=0, minimum=0, section="Size")
    use_replace: bool = option(
        "Replace",
        "Write over model, blueprint, icon and texts of a building of this name; other content is kept as .bak",
        default=False,
        section="Mod",
    )
    game: str = shared(GAME)

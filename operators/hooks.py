"""Additions of a family of formats to the operators and panels that :mod:`.format_operators` builds for it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .files.check_operators import CheckObject, CheckScene
from .files.export_base import ExportScene
from .files.import_base import ImportFiles


@dataclass(frozen=True)
class Hooks:
    """The additions of one family to the user interface. Each class has only what differs from the default."""

    importer: type[ImportFiles] = ImportFiles
    exporters: Mapping[str, type[ExportScene]] | None = None
    """Mixin of the export operator by name of the format, in the order of the menu; default: all formats."""
    check: type[CheckScene] = CheckObject
    draw_collection_entries: Callable[[Any, Any], None] | None = None
    """Function that draws the entries in the Outliner's menu; default: an entry for the first exporter."""
    sidebar: type | None = None
    """Main panel in the sidebar; default: buttons to check and export the active object."""
    panels: Sequence[type] = ()
    """Panels below the main panel."""
    has_closed_copies: bool = True
    """Whether each panel has a variant for objects made in Blender, which is closed by default."""

"""The file that Re-export writes: which exports change it, and names for new files."""

from pathlib import Path
from typing import Any

import bpy

from ...blender_data import file_records
from ...blender_data.file_records import FileRecord, records
from ...io_formats.registry import by_name, find
from ..sidebar import import_homes_of


def moves_target(owner: Any, record: FileRecord) -> bool:
    """Return whether an export of an object or a collection makes its file the target.

    Data made in Blender follows each export, imported data only those in the format of its source. If the source places
    models, only an export of the whole collection to a file with the same extension moves the target.
    """
    home = next((found for found in import_homes_of(owner) if is_import(found)), None)
    if home is None:
        return True
    origin = by_name(home.meshferry.file_format)
    is_same = record.format in {origin.name, origin.rewritten_as}
    if not origin.is_patched:
        return is_same
    return is_same and owner == home and record.path.suffix == Path(home.meshferry.source_path).suffix


def is_import(collection: Any) -> bool:
    """Return whether a collection was imported from a file of a format that is installed."""
    return bool(collection.meshferry.source_path) and find(collection.meshferry.file_format) is not None


def proposed(path: Path, owner: Any) -> Path:
    """Return the path that an export of an object or a collection proposes.

    While a file that places models is imported, any existing file may be one of its models, so the name gets a number.
    Files of the exported object or its collections are proposed, too.
    """
    imports = filter(is_import, bpy.data.collections)
    if not any(by_name(found.meshferry.file_format).capabilities.placement for found in imports):
        return path
    owners = [owner, *import_homes_of(owner)] if owner is not None else []
    return file_records.free_path(path, {record.path for one in owners for record in records(one)}.__contains__)

"""Paths to other machines that are stored in the .blend file.

Windows logs in to a machine as soon as a path is tested, so they are not touched before the user agrees.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...blender_data import import_marks
from ...blender_data.file_records import FileRecord, SessionFile, session_file, session_files
from ...io_formats.core.errors import MeshferryError
from ...io_formats.core.messages import Text, listed
from ...io_formats.disk.rooted_files import is_network_path
from ..translations import rpt_


def unasked_paths(paths: Iterable[str | Path], *options: Mapping[str, Any]) -> list[str]:
    """Return the paths to other machines among stored paths and options.

    Paths that the user agreed to, or that were read or written since the .blend file was loaded, are left out.
    """
    texts = [*map(str, paths), *(value for one in options for value in one.values() if isinstance(value, str))]
    return [text for text in dict.fromkeys(texts) if is_network_path(text) and session_file(Path(text)) is None]


def unasked_paths_of(record: FileRecord, collection: Any) -> list[str]:
    """Return the paths of :func:`unasked_paths` that an export to the file of a record would use."""
    imported = import_marks.stored_options(collection) if collection is not None else {}
    return unasked_paths([record.path], imported, record.options or {})


def question_of_network(paths: Sequence[str]) -> str:
    """Return a question about stored paths to other machines; an empty string if there are none."""
    text = Text("Open paths on other machines, which are stored in this .blend file? {}", listed(paths))
    return rpt_(text) if paths else ""


def agree_to_network(paths: Sequence[str], *, is_agreed: bool) -> None:
    """Note that the user agreed to stored paths to other machines.

    Raises
    ------
    MeshferryError
        There are such paths, and the user did not agree.
    """
    if paths and not is_agreed:
        raise MeshferryError("Stored paths on other machines need your consent in a window: {}", listed(paths))
    for path in paths:
        session_files().setdefault(path, SessionFile())

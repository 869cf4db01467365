"""Folders that a project includes by ``.umount`` files (section 2)."""

from __future__ import annotations

import os
from pathlib import Path

from ...core.errors import FormatError, refusal
from ...disk.rooted_files import RootedFiles, is_inside, is_network_path, leads_to_network
from .metas import parse_json

EXTENSION = ".umount"
MOST_MOUNTS = 100
_SYSTEM_FOLDERS = ("/proc", "/sys")
"""Folders that contain no files of projects, but would take minutes to list."""
UMOUNT_LIMIT = 2**20
"""Largest size of a ``.umount`` file that is read."""


def add_mounts(files: RootedFiles) -> None:
    """Add the files of mounted folders.

    Network paths are not opened: otherwise a downloaded project could make Windows log in to any server. Mounted
    folders that contain the project, or are inside it, are left out, because their files would be listed twice.
    """
    paths = sorted(path for key, path in files.paths.items() if key.endswith(EXTENSION))
    for path in paths[:MOST_MOUNTS]:
        try:
            folder = _mounted_folder(files, path)
        except FormatError as problem:
            files.unreadable[path] = str(problem)
            continue
        if folder is not None:
            files.mount(path[: -len(EXTENSION)], folder)


def _mounted_folder(files: RootedFiles, path: str) -> Path | None:
    """Return the folder that a ``.umount`` file mounts, or None if it does not mount a folder.

    Raises
    ------
    FormatError
        The file cannot be read, or the folder must not or cannot be mounted.
    """
    stated = parse_json(files.read(path, UMOUNT_LIMIT)).get("data_path")
    if not isinstance(stated, str) or not stated.strip():
        return None
    text = stated.strip()
    named = os.path.join(files.location(path).parent, text.replace("\\", "/"))
    try:
        folder = "" if is_network_path(text) or leads_to_network(named) else os.path.realpath(named)
    except (OSError, ValueError) as problem:
        raise FormatError("The mounted folder cannot be used: {}: {}", refusal(problem), text, file=path) from None
    if not folder:
        raise FormatError("The mounted folder is a network path, which is not opened: {}", text, file=path)
    if any(is_inside(folder, system) for system in _SYSTEM_FOLDERS):
        raise FormatError("The mounted folder belongs to the operating system: {}", text, file=path)
    root = str(files.root)
    if is_inside(folder, root) or is_inside(root, folder):
        raise FormatError("The mounted folder and the project contain each other: {}", text, file=path)
    if not os.path.isdir(folder):
        raise FormatError("The mounted folder does not exist: {}", text, file=path)
    return Path(folder)

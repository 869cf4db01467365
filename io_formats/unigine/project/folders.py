"""Find the project that a file belongs to (section 1)."""

from __future__ import annotations

import os
from pathlib import Path

from ...disk.rooted_files import MOST_FILES, RootedFiles
from ...projects import Projects
from .project import Project

_MARKS = (".runtimes", "guids.db", "root_mount.umount")
_USUAL_NAME = "data"
MOST_LONE_FILES = 20_000
"""Maximum number of files that are listed around a file outside of any project."""
_META_HEAD = 400
_MOST_FOLDERS_LOOKED_AT = 64
_CONTENT = (".world", ".node", ".umount", ".mat")


def open_project(path: Path, projects: Projects, chosen: str = "", *, is_scene: bool = False) -> Project | None:
    """Return the project that a file belongs to, or None outside of any project.

    Parameters
    ----------
    path:
        A file.
    projects:
        The projects that are open.
    chosen:
        Folder of the project for files outside of any project, or empty.
    is_scene:
        Whether the file itself shows that its folder is part of a project, as ``.node`` and ``.world`` do.

    Raises
    ------
    TooManyFilesError
        The project has more files than the limit.
    """
    folder = Path(os.path.abspath(path)).parent
    root = projects.root_of(folder, lambda: project_folder(Path(os.path.realpath(folder))))
    if root is None and chosen:
        root = chosen_folder(Path(chosen))
    if root is None and not is_scene and not _has_asset_meta(path):
        return None
    is_partial = root is None
    real = Path(os.path.realpath(folder))
    place = root or data_folder(real) or real
    return projects.open(place, lambda: _open(place, projects, is_partial=is_partial))


def _open(root: Path, projects: Projects, *, is_partial: bool) -> Project:
    """Return the project in a folder. The list of its files may come from another process."""
    most = MOST_LONE_FILES if is_partial else MOST_FILES
    listed: list[RootedFiles] = []

    def list_files() -> list[str]:
        listed.append(RootedFiles(root, most=most, is_partial=is_partial, check=projects.check))
        return list(listed[0].paths.values())

    paths = projects.shared(root, f"files {most}", list_files)
    return Project(listed[0] if listed else RootedFiles(root, known=paths), projects)


def open_folder(folder: Path, projects: Projects) -> Project:
    """Return the project of a folder; outside of any project, a project of the files below the folder.

    Raises
    ------
    TooManyFilesError
        The folder has more files than the limit.
    """
    place = project_folder(folder) or chosen_folder(folder) or folder
    return projects.open(place, lambda: _open(place, projects, is_partial=False))


def _has_asset_meta(path: Path) -> bool:
    """Return whether a file has the ``.meta`` file of a UNIGINE asset; other engines use the same extension."""
    meta = f"{path}.meta"
    try:
        with open(meta, "rb") as stream:
            return b"<asset" in stream.read(_META_HEAD)
    except OSError:
        return False


def project_folder(folder: Path) -> Path | None:
    """Return the nearest project folder among a folder and its ancestors, or None."""
    for candidate in (folder, *folder.parents):
        if any(os.path.exists(os.path.join(candidate, mark)) for mark in _MARKS):
            return candidate
    data = data_folder(folder)
    return data if data is not None and _has_project_files(data) else None


def data_folder(folder: Path) -> Path | None:
    """Return the nearest folder with the usual name of project folders among a folder and its ancestors, or None."""
    return next((found for found in (folder, *folder.parents) if found.name.lower() == _USUAL_NAME), None)


def chosen_folder(folder: Path) -> Path | None:
    """Return the data folder of the project that the user chose, or None if there is no such folder."""
    folder = Path(os.path.realpath(folder))
    for candidate in (folder, folder / _USUAL_NAME):
        if any(os.path.exists(candidate / mark) for mark in _MARKS):
            return candidate
    usual = folder / _USUAL_NAME
    return usual if usual.is_dir() else folder if folder.is_dir() else None


def _has_project_files(folder: Path) -> bool:
    """Return whether a folder or one of its subfolders has scenes or materials, as in projects of SDK 2.0."""
    folders = [str(folder)]
    looked_at = 0
    while folders and looked_at < _MOST_FOLDERS_LOOKED_AT:
        looked_at += 1
        current = folders.pop(0)
        try:
            with os.scandir(current) as entries:
                for entry in entries:
                    if entry.name.lower().endswith(_CONTENT):
                        return True
                    if current == str(folder) and entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
        except OSError:
            continue
    return False


__all__ = ["chosen_folder", "open_folder", "open_project", "project_folder"]

"""Find the blueprints and models that a blueprint refers to (docs/formats/timberborn_blueprints.md, section 4).

Paths are compared without case. Folders above a file are looked at one by one; the files of a whole mod are listed once
for all files that are open.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import islice, takewhile
from pathlib import Path, PurePath, PurePosixPath

from ...core.errors import ExportError, FormatError
from ...core.messages import Unresolved
from ...core.placement import ModelUse, PlacedModel, Placement
from ...core.scene import Scene
from ...disk import rooted_files
from ...disk.special_files import read_bytes
from ...projects import Projects
from ..game_files import GameArchive, find_archive, mod_folder
from ..model.format import TIMBERMESH
from . import codec
from .codec import BlueprintSource
from .tree import PLACES_OF_GAME, Level, Problem

_MOST_FILES = 200_000
"""Largest number of files of a mod that are listed."""
_MOST_FILES_AROUND = 20_000
"""Largest number of files below a folder that is not known to be a mod's."""
_LEVELS_AROUND = 8
"""Number of folders above a file that are searched if the mod's folder is not known."""
_OTHER_MODS = ("Documents", "Timberborn", "Mods")
_MOST_BYTES = 1 << 29


def usable_path(text: str) -> str:
    """Return a path of a blueprint with slashes, or an empty text if it leads anywhere else than below a folder."""
    path = text.replace("\\", "/")
    parts = path.split("/")
    is_refused = ".." in parts or path.startswith("/") or ":" in path or "\0" in path
    return "" if is_refused else "/".join(part for part in parts if part not in {"", "."})


def read_file(path: Path) -> bytes:
    """Return the content of a model or blueprint.

    Raises
    ------
    FormatError
        The file cannot be read, is too large, or Git LFS has not downloaded it.
    """
    try:
        size = path.stat().st_size
    except OSError:
        size = 0  # reading it reports the error
    if size > _MOST_BYTES:
        raise FormatError("The file has more than {:,} bytes", _MOST_BYTES, file=str(path))
    data = read_bytes(path)
    if rooted_files.has_lfs_pointer(data):
        raise rooted_files.LfsPointerError(str(path))
    return data


class _ModFolder:
    """Files below a folder, found by the last parts of their paths. Empty if the folder has too many files."""

    def __init__(self, root: Path, most: int, projects: Projects) -> None:
        self._listed: rooted_files.RootedFiles | None = None

        def list_files() -> list[str] | None:
            try:
                self._listed = rooted_files.RootedFiles(root, most=most, check=projects.check)
            except rooted_files.TooManyFilesError:
                return None
            return [path for path in self._listed.paths.values() if path.lower().endswith((".timbermesh", ".json"))]

        paths = projects.shared(root, f"timberborn files {most}", list_files)
        self.root = Path(os.path.realpath(root))
        self.is_too_large = paths is None
        self._by_name: dict[str, list[tuple[str, str]]] = {}
        """Key and path of the files, by the last part of their key."""
        for path in paths or ():
            key = rooted_files.path_key(path)
            self._by_name.setdefault(key.rpartition("/")[2], []).append((key, path))

    def is_current(self) -> bool:
        return self._listed is None or self._listed.is_current()

    def find(self, relative: str, near: Path) -> Path | None:
        """Return the file whose path ends with ``relative``; of several, the one nearest to the folder ``near``."""
        wanted = "/" + rooted_files.path_key(relative)
        found = [path for key, path in self._by_name.get(wanted.rpartition("/")[2], ()) if f"/{key}".endswith(wanted)]
        try:
            here = near.relative_to(self.root).parts
        except ValueError:
            here = ()

        def distance(path: str) -> tuple[int, str]:
            parts = path.split("/")
            shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(here, parts[:-1], strict=False)))
            return len(parts) - 2 * shared, path

        return self.root / min(found, key=distance) if found else None


class ModFiles:
    """Finds the files that blueprints name, for one opened blueprint.

    Parameters
    ----------
    projects:
        The open projects, which cache the lists of files.
    mod:
        Folder of the mod for files without a manifest, or empty.
    game:
        Folder of the game, or empty.
    """

    def __init__(self, projects: Projects, mod: str = "", game: str = "") -> None:
        self._projects = projects
        self._game = game
        self._mod = Path(os.path.abspath(os.path.expanduser(mod))) if mod else None
        self._entries: dict[str, dict[str, str]] = {}
        """Names by their keys in each folder that was looked at."""

    def find(self, relative: str, near: Path) -> Path | None:
        """Return a file by its path below the mod's root, or None.

        Parameters
        ----------
        relative:
            A path of :func:`usable_path`.
        near:
            Path of the blueprint that names it.
        """
        folder = Path(os.path.realpath(os.path.abspath(near))).parent
        # Also above the mod, since paths in projects of Unity begin with the mod's own folder: Mods/Bridge/Plank.
        for above in (folder, *folder.parents):
            found = self._below(str(above), relative)
            if found is not None and self._may_read(found, folder):
                return found
        return next((found for mod in self._folders(folder) if (found := mod.find(relative, folder)) is not None), None)

    def _may_read(self, path: Path, folder: Path) -> bool:
        """Return whether files in a folder may refer to a path: one of their mod, or else within their reach."""
        root = self._root(folder)
        if root is not None:
            return rooted_files.is_inside(os.path.realpath(path), str(root))
        reach_of = self._projects.reach_of
        return reach_of is None or reach_of(folder / "any").allows(path)

    def archive(self) -> GameArchive | None:
        """Return the game's blueprints, or None without a folder of the game.

        Raises
        ------
        FormatError
            The folder is not the game's, or the archive is damaged.
        """
        if not self._game:
            return None
        path = find_archive(self._game)
        return self._projects.open(path, lambda: GameArchive(path))

    def _below(self, folder: str, relative: str) -> Path | None:
        """Return the file at a path below a folder, or None."""
        place = folder
        for part in relative.split("/"):
            name = self._names(place).get(rooted_files.path_key(part))
            if name is None:
                return None
            place = os.path.join(place, name)
        try:
            return Path(place) if not rooted_files.leads_to_network(place) and os.path.isfile(place) else None
        except OSError:
            return None

    def _names(self, folder: str) -> dict[str, str]:
        if folder not in self._entries:
            try:
                self._entries[folder] = {rooted_files.path_key(name): name for name in os.listdir(folder)}
            except (OSError, ValueError):
                self._entries[folder] = {}
        return self._entries[folder]

    def _root(self, folder: Path) -> Path | None:
        """Return the folder of the manifest above files in a folder, or None."""
        return self._projects.root_of(folder, lambda: mod_folder(folder / "any"))

    def _folders(self, folder: Path) -> Iterator[_ModFolder]:
        """Yield the folders that are searched to the bottom, in their order."""
        root = self._root(folder)
        for known in (root, self._mod):
            if known is not None:
                yield self._opened(known, _MOST_FILES)
        if root is None and self._mod is None:
            for around in islice((folder, *folder.parents), _LEVELS_AROUND + 1):
                if _is_private(around) or not self._may_read(around, folder):
                    break
                found = self._opened(around, _MOST_FILES_AROUND)
                yield found
                if found.is_too_large:
                    break
        others = Path.home().joinpath(*_OTHER_MODS)
        if others.is_dir():
            yield self._opened(others, _MOST_FILES)

    def _opened(self, folder: Path, most: int) -> _ModFolder:
        # Projects of other formats are opened by their folder.
        key = folder / f".timberborn {most}"
        make: Callable[[], _ModFolder] = lambda: _ModFolder(folder, most, self._projects)  # noqa: E731
        return self._projects.open(key, make)


def _is_private(folder: Path) -> bool:
    """Return whether a folder is the root of a disk, the user's home, or above it."""
    home = Path(os.path.realpath(Path.home()))
    return folder in {folder.parent, home, *home.parents}


_MODEL = ".timbermesh"


class Links:
    """Finds the files that one opened blueprint refers to, and records the missing ones."""

    def __init__(self, files: ModFiles, unresolved: Unresolved) -> None:
        self._files = files
        self._unresolved = unresolved
        self._sources: dict[Path, BlueprintSource | FormatError | None] = {}
        self._found: dict[tuple[str, Path], Path | None] = {}

    def blueprint(self, path: str, level: Level) -> BlueprintSource | None:
        """Return the blueprint of a path that a file names, or None.

        Raises
        ------
        FormatError
            The blueprint is damaged.
        """
        found = self._find(path, ".json", level)
        key = found or Path(usable_path(path))
        if key not in self._sources:
            try:
                self._sources[key] = self._of_game(path) if found is None else _source(read_file(found), found)
            except FormatError as problem:
                self._sources[key] = problem
        source = self._sources[key]
        if isinstance(source, FormatError):
            raise source
        if source is None:
            self._note(path, Problem.BLUEPRINT, Problem.GAME_BLUEPRINT)
        return source

    def _of_game(self, path: str) -> BlueprintSource | None:
        relative = usable_path(path) + ".json"
        data = self._archive.read(relative) if self._archive is not None else None
        return None if data is None else _source(data, None, relative)

    @cached_property
    def _archive(self) -> GameArchive | None:
        try:
            return self._files.archive()
        except FormatError as problem:
            self._unresolved.add(Problem.BROKEN_BLUEPRINT, problem.sentence())
            return None

    def model(self, path: str, level: Level) -> Path | None:
        """Return the model file to which a path in a blueprint leads. If it is missing, record this and return None."""
        found = self._find(path, _MODEL, level)
        if found is None:
            self._note(path, Problem.MODEL, Problem.GAME_MODEL)
        return found

    def _find(self, path: str, ending: str, level: Level) -> Path | None:
        """Return the file to which a path in a blueprint leads, or None.

        The search starts near the blueprint with the path, and continues near the blueprints that nest it.
        """
        relative = usable_path(path)
        if relative:
            for near in dict.fromkeys(source.path for source in level.sources() if source.path is not None):
                key = (relative + ending, near)
                if key not in self._found:
                    self._found[key] = self._files.find(*key)
                if self._found[key] is not None:
                    return self._found[key]
        return None

    def _note(self, path: str, problem: Problem, of_game: Problem) -> None:
        relative = usable_path(path)
        if not relative:
            self._unresolved.add(Problem.PATH, path)
        else:
            is_of_game = relative.partition("/")[0].lower() in PLACES_OF_GAME or (
                self._archive is not None and self._archive.has_folder(relative)
            )
            self._unresolved.add(of_game if is_of_game else problem, path)


def _source(data: bytes, path: Path | None, name: str = "") -> BlueprintSource:
    shown = path.name if path is not None else name.rpartition("/")[2]
    return BlueprintSource(shown, codec.read(data).root, path, str(path) if path is not None else name.lower())


def placed_model(path: Path) -> PlacedModel:
    """Return a placed model whose file is read when its scene is first needed."""

    def read() -> Scene:
        try:
            return TIMBERMESH.to_scene(TIMBERMESH.read(read_file(path)), _model_name(path))
        except FormatError as problem:
            raise problem.in_file(str(path)) from None

    return PlacedModel(_model_name(path), read, str(path), file=str(path), is_tree=True)


def _model_name(path: Path) -> str:
    """Return the name of a model: its file name without the extension."""
    return path.name[: -len(_MODEL)] if path.name.lower().endswith(_MODEL) else PurePosixPath(path.name).stem


def model_path(file: Path, blueprint: Path, placement: Placement | None = None, mod: str = "") -> str:
    """Return the path below the mod's root, without the ending, by which a blueprint can name a model.

    Parameters
    ----------
    file:
        The model. It need not exist.
    placement:
        Placement that the blueprint has now. Its model paths determine the root of the mod. Without models, the root is
        the folder of the manifest above the blueprint, or else ``mod``.

    Raises
    ------
    ExportError
        The file is not below the mod's root, its ending is not ``.timbermesh`` in lower case, or the root is unknown.
    """
    whole = PurePath(os.path.realpath(file))
    if not whole.name.endswith(_MODEL):
        raise ExportError("The game only loads models whose names end in {}", _MODEL)
    roots = [*_roots_of(placement)] if placement is not None else []
    above = mod_folder(blueprint)
    roots += [Path(os.path.realpath(folder)) for folder in (above, mod) if folder]
    if not roots:
        raise ExportError("The folder of the mod is not known: no manifest.json above '{}'", blueprint.name)
    root = next((root for root in roots if whole.is_relative_to(root)), None)
    if root is None:
        raise ExportError("'{}' is not in the folder of the mod, '{}'", file.name, roots[0])
    path = whole.relative_to(root).as_posix().removesuffix(_MODEL)
    if whole.parent != root and os.path.isfile(whole):
        found = ModFiles(Projects(), mod).find(path + _MODEL, blueprint)
        if found is not None and not os.path.samefile(found, whole):
            raise ExportError("'{}' names another file: '{}'", path, found)
    return path


def _roots_of(placement: Placement) -> Iterator[Path]:
    """Yield the root folders of the models that a blueprint places, the most frequent root first."""
    found: Counter[str] = Counter()
    for node in placement.parts[0].nodes:
        if isinstance(node.content, ModelUse) and node.properties.get("Model"):
            file = PurePath(os.path.realpath(placement.models[node.content.model].file)).as_posix()
            ending = "/" + node.properties["Model"].replace("\\", "/") + _MODEL
            if file.lower().endswith(ending.lower()):
                found[file[: -len(ending)]] += 1
    return (Path(root) for root, _count in found.most_common())

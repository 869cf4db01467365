"""Find the nested blueprints and models that a blueprint refers to."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path, PurePosixPath

from ...core.errors import FormatError
from ...core.messages import Unresolved
from ...core.placement import PlacedModel
from ...core.scene import Scene
from ..game_files import GameArchive
from ..model import codec as model_codec
from ..model import mapping as model_mapping
from . import reader
from .document import BlueprintSource
from .mod_files import ModFiles, read_file, usable_path
from .problems import PLACES_OF_GAME, Problem
from .tree import Level

_MODEL = ".timbermesh"
_FORMAT = "timbermesh"


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
    return BlueprintSource(shown, reader.read(data).root, path, str(path) if path is not None else name.lower())


def placed_model(path: Path) -> PlacedModel:
    """Return a placed model whose file is read when its scene is first needed."""

    def read() -> Scene:
        try:
            scene = model_mapping.to_scene(model_codec.read(read_file(path)), _model_name(path))
        except FormatError as problem:
            raise problem.in_file(str(path)) from None
        scene.format = _FORMAT
        return scene

    return PlacedModel(_model_name(path), read, str(path), file=str(path), is_tree=True)


def _model_name(path: Path) -> str:
    """Return the name of a model: its file name without the extension."""
    return path.name[: -len(_MODEL)] if path.name.lower().endswith(_MODEL) else PurePosixPath(path.name).stem

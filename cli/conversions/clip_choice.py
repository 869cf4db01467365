"""``--clip-names`` and ``--rename-clip``: selection and new names of animations."""

from __future__ import annotations

import argparse
import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...io_formats.core.errors import MeshferryError

if TYPE_CHECKING:
    from ...io_formats.core.scene import Scene


@dataclass
class ClipChoice:
    """The user's choices about animations, applied to every scene of a run."""

    patterns: Sequence[str] = ()
    """Names of the animations to export, with wildcards; empty for all."""
    new_names: Mapping[str, str] = field(default_factory=dict)
    """New names of animations by their names in the files."""
    one_scene: bool = False
    """Whether the run has only one scene, so that a name without a match is an error at once."""
    _renamed: set[str] = field(default_factory=set)
    _seen: dict[str, None] = field(default_factory=dict)
    """Names of all animations found so far, in order."""

    def apply(self, scene: Scene, *, filtered: bool = False) -> None:
        """Select and rename the clips of a scene.

        Parameters
        ----------
        filtered:
            Whether the clips are already selected.

        Raises
        ------
        MeshferryError
            A new name equals that of another clip.
        """
        if self.patterns and not filtered:
            scene.clips = [
                clip for clip in scene.clips if any(fnmatch.fnmatchcase(clip.name, wanted) for wanted in self.patterns)
            ]
        self._seen.update(dict.fromkeys(clip.name for clip in scene.clips))
        names = [self.new_names.get(clip.name, clip.name) for clip in scene.clips]
        for clip, name in zip(scene.clips, names, strict=True):
            if name != clip.name and names.count(name) > 1:
                raise MeshferryError("--rename-clip '{}={}': there is another animation '{}'", clip.name, name, name)
        for clip, name in zip(scene.clips, names, strict=True):
            if clip.name in self.new_names:
                self._renamed.add(clip.name)
            clip.name = name

    def state(self) -> dict[str, Any]:
        """Return the state collected so far, for :meth:`add_state` in another process."""
        seen = list(self._seen) if self.new_names else []  # only errors about renamings list them
        return {"one_scene": self.one_scene, "renamed": list(self._renamed), "seen": seen}

    def add_state(self, state: Mapping[str, Any]) -> None:
        """Add the state of another process."""
        self.one_scene = state["one_scene"]
        self._renamed.update(state["renamed"])
        self._seen.update(dict.fromkeys(state["seen"]))

    def is_renamed(self, name: str) -> bool:
        """Return whether this is the new name of a renamed animation."""
        return any(self.new_names[old] == name for old in self._renamed)

    def require_now(self) -> None:
        """Raise an error for a renaming without a matching clip, if the run has only one scene."""
        if self.one_scene:
            self.require_all()

    def require_all(self) -> None:
        """Raise an error for the first renaming that has not matched a clip so far."""
        for old in self.new_names:
            if old not in self._renamed:
                known = ", ".join(f"'{name}'" for name in self._seen) or "none"
                raise MeshferryError("--rename-clip: there is no animation '{}'; there are {}", old, known)


def parse_renaming(text: str) -> tuple[str, str]:
    """Return the old and the new name of ``OLD=NEW``, split at the last ``=``, since old names may contain others."""
    old, equals, new = text.rpartition("=")
    if not equals or not old or not new:
        raise argparse.ArgumentTypeError(f"'{text}' is not OLD=NEW, the name of an animation and its new one")
    return old, new


def wanted_names(text: str) -> tuple[str, ...]:
    """Split a comma-separated list of name patterns."""
    return tuple(name.strip() for name in text.split(",") if name.strip())

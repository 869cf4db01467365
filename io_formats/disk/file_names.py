"""File names: valid names for any text, and names that a folder treats as equal.

Systems differ, and so do folders of one system: case may be ignored, ``ß`` may equal ``ss``, and an accented letter may
be one character or two. A folder is only probed if two names could be equal, because that writes a temporary file.
"""

import functools
import itertools
import os
import re
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

_Value = TypeVar("_Value")

_PROBE = "meshferry-probe-"
_COMPOSED = "\N{LATIN SMALL LETTER E WITH ACUTE}"


_LONGEST_NAME = 200
"""Maximum length of a file name in UTF-8 bytes. Systems allow 255, of which extension, number and armature name need
some."""

_DEVICES = r"(?i)\A(con|conin\$|conout\$|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(?=\s*(\.|$))"
"""Names that Windows reserves for devices, with any extension."""


def file_name(name: str) -> str:
    """Convert a name without extension to a file name that is valid on all systems."""
    plain = re.sub(r'[<>:"/\\|?*\x00-\x1f]', "_", name).encode("utf-8", "replace")[:_LONGEST_NAME]
    return re.sub(_DEVICES, r"\1_", plain.decode("utf-8", "ignore").rstrip(" .")) or "_"


def is_device(path: str | os.PathLike[str]) -> bool:
    """Return whether the system is Windows and treats a path as a device, whatever its folder and extension are."""
    return sys.platform == "win32" and re.match(_DEVICES, os.path.basename(path)) is not None


def distinct_file_names(names: Iterable[str]) -> list[str]:
    """Return :func:`file_name` of each name, with numbers for names that some system would treat as equal."""
    taken: set[str] = set()
    return [free_name(name, "", taken) for name in names]


def free_name(stem: str, ending: str, taken: set[str]) -> str:
    """Return a file name that is valid and unused in the folder on all systems, and add its key to ``taken``."""
    name = next(one for one in numbered(file_name(stem), ending) if cautious_key(one) not in taken)
    taken.add(cautious_key(name))
    return name


def numbered(name: str, ending: str = "", between: str = "_") -> Iterator[str]:
    """Yield a name without a number, and then with the numbers from 2 on, each before the ending."""
    yield name + ending
    yield from (f"{name}{between}{number}{ending}" for number in itertools.count(2))


@dataclass(frozen=True)
class NameRules:
    """How a folder compares names."""

    ignores_case: bool = True
    folds_sharp_s: bool = True
    """Case is ignored by the full rules of Unicode, under which ``ß`` equals ``ss``."""
    ignores_composition: bool = True
    """An accented letter as one character equals the same letter as two characters."""

    def key(self, name: str) -> str:
        """Return a key that is equal for names that the folder treats as equal."""
        if name.isascii():
            return name.lower() if self.ignores_case else name
        if self.ignores_composition:
            name = unicodedata.normalize("NFC", name)
        if self.ignores_case:
            name = name.casefold() if self.folds_sharp_s else "".join(map(_fold_one, name))
        return unicodedata.normalize("NFC", name) if self.ignores_composition else name


CAUTIOUS = NameRules()
"""Rules under which names are equal if any known system treats them as equal."""


def _fold_one(character: str) -> str:
    folded = character.casefold()
    return folded if len(folded) == 1 else character


def cautious_key(name: str) -> str:
    """Return a key that is equal for names that any known system treats as equal."""
    return CAUTIOUS.key(name)


@functools.lru_cache(1024)
def rules_of(folder: str) -> NameRules:
    """Return how a folder compares names.

    For a folder that does not exist, the rules are those of its nearest existing parent. Results are cached for the
    life of the process. Folders without write permission get the cautious rules.
    """
    while not os.path.isdir(folder):
        parent = os.path.dirname(folder)
        if parent == folder:
            return CAUTIOUS
        folder = parent
    import tempfile  # slow to import, and readers do not need it

    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=f".{_PROBE}", suffix=f"-ß-{_COMPOSED}") as probe:
            return _rules_by(os.path.basename(probe.name), lambda name: os.path.lexists(os.path.join(folder, name)))
    except (OSError, UnicodeError):
        return CAUTIOUS


def _rules_by(name: str, finds: Callable[[str], bool]) -> NameRules:
    """Return the rules of a folder from the other spellings under which it finds a file.

    Parameters
    ----------
    name:
        Name of a file in the folder, with ``ß`` and a composed accent.
    finds:
        Returns whether the folder has a file with a given name.
    """
    return NameRules(
        ignores_case=finds(name.replace(_PROBE, _PROBE.upper())),
        folds_sharp_s=finds(name.replace("ß", "ss")),
        ignores_composition=finds(name.replace(_COMPOSED, unicodedata.normalize("NFD", _COMPOSED))),
    )


class PathTable(Generic[_Value]):
    """Values by file path, found under every spelling that the folder treats as equal."""

    def __init__(self) -> None:
        self._entries: dict[str, list[tuple[str, _Value]]] = {}

    def find(self, path: str | os.PathLike[str]) -> _Value | None:
        """Return the value of the first file that the path can refer to, or None."""
        text = os.path.realpath(path)
        for known, value in self._entries.get(cautious_key(text), ()):
            if known == text:
                return value
            rules = rules_of(os.path.dirname(text))
            if rules.key(known) == rules.key(text):
                return value
        return None

    def add(self, path: str | os.PathLike[str], value: _Value) -> None:
        """Add a file; if it already exists, its value is kept."""
        text = os.path.realpath(path)
        self._entries.setdefault(cautious_key(text), []).append((text, value))

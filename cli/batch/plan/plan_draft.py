"""A plan in the making: its lines in a file, and in memory no more than what tells whether any two of them clash.

A million sources are gone through once, and of each two hashes of 64 bits stay: what it is and what it becomes. Those
that lie in the output folder have a third, since what is written there must not replace them. Sorting finds the clashes
at the end, and only where there are any the lines are read once more. That two of a million names have one hash by
chance happens once in thirty million batches, and then one of the two gets a number or a refusal it does not need.
"""

from __future__ import annotations

import functools
import os
import sys
from array import array
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from ....io_formats.core.errors import MeshferryError
from ....io_formats.disk.file_names import NameRules, rules_of
from ... import inputs
from ...conversions.convert_plan import renamed
from ..tasks import Source, Task
from .plan_file import line_of, task_of
from .target_index import target_hash, text_hash

_NAMED = 3
"""Clashes that a refusal names before it says how many more there are."""
_CHECKED = 1000
"""Sources that seem to be overwritten, up to which each is compared with the file on disk."""
_Lines = NDArray[np.int64]
_Hashes = NDArray[np.uint64]


class Draft:
    """The lines of a plan, added one by one.

    Parameters
    ----------
    stream:
        An empty file for the lines, to write and to read.
    folder:
        The output folder.
    extension:
        Of the files to write, with its dot.
    rules:
        Which names are those of one file; None to probe the folder.
    """

    def __init__(self, stream: BinaryIO, folder: Path, extension: str, rules: NameRules | None = None) -> None:
        self._stream = stream
        self._output = _Output(folder, rules)
        self._extension = extension
        self.roots: dict[str, int] = {}
        """The folders that sources lie below, with their numbers."""
        self._sources = array("q")
        self._targets = array("Q")
        self._inside: tuple[array[int], array[int]] = (array("Q"), array("q"))
        """Of sources in the output folder: what they would be as targets, and their lines."""
        self._through: list[tuple[int, int]] = []
        """Lines whose target is a link already, and the file that it leads to."""
        self._dropped: _Lines = np.zeros(0, np.int64)
        self._numbered: _Lines = np.zeros(0, np.int64)

    def add(self, source: Source) -> None:
        """Add the line of a source."""
        number = len(self._targets)
        target = renamed(Path(source.place), self._extension).as_posix()
        full = os.path.join(source.root, source.path)
        key = self._output.key(full)
        self._sources.append(hash(f"{key}\0{source.member}" if source.member else key))
        self._targets.append(target_hash(target))
        for one in (key, inputs.file_key(Path(full))) if source.is_link else (key,):
            if (below := self._output.below(one)) is not None:
                self._inside[0].append(target_hash(below))
                self._inside[1].append(number)
        if link := self._output.link(target):
            self._through.append((number, hash(link)))
        root = self.roots.setdefault(source.root, len(self.roots))
        task = Task(number, root, source.path, source.member, target, source.size, source.modified)
        self._stream.write(line_of(task))

    @property
    def targets(self) -> Collection[int]:
        """Hashes of the targets of the lines that stay."""
        hashes = np.frombuffer(self._targets, np.uint64)
        return hashes if not len(self._dropped) else np.delete(hashes, self._dropped)  # type: ignore[return-value]

    @property
    def sources_inside(self) -> Sequence[int]:
        """Hashes of the sources that lie in the output folder, as if they were targets."""
        return self._inside[0]

    @property
    def is_to_be_changed(self) -> bool:
        """Whether some lines go, or get another target, as :meth:`copy` does."""
        return bool(len(self._dropped) or len(self._numbered))

    def resolve(self, *, numbers: bool) -> None:
        """Find what comes twice, and what clashes.

        Raises
        ------
        MeshferryError
            A source would be overwritten; or two sources would become one file, and there are to be no ``numbers``.
        """
        self._dropped = _later(np.frombuffer(self._sources, np.int64), np.arange(len(self._sources)))
        kept = np.delete(np.arange(len(self._sources)), self._dropped)
        targets = np.frombuffer(self._targets, np.uint64)
        self._refuse_overwriting(kept, targets)
        names = self._told_apart(kept, targets)
        self._numbered = np.sort(_later(names[kept], kept))
        if len(self._numbered) and not numbers:
            self._refuse_clashes(kept, names)

    def _told_apart(self, kept: _Lines, targets: _Hashes) -> _Hashes:
        """Return hashes of the targets that are equal where the output folder takes two names for one file.

        ``targets`` are those of the cautious rules. Only where they are equal for different names is the folder probed.
        """
        if not len(_later(targets[kept], kept)):
            return targets
        _, group, counts = np.unique(targets[kept], return_inverse=True, return_counts=True)
        alike = kept[counts[group] > 1]
        exact = self._name_hashes(alike, NameRules(ignores_case=False, ignores_composition=False))
        pairs = np.unique(np.stack([targets[alike], exact]), axis=1)
        if len(np.unique(pairs[0])) == pairs.shape[1]:  # each group has one name
            return targets
        names = targets.copy()
        names[alike] = self._name_hashes(alike, self._output.rules)
        return names

    def _name_hashes(self, lines: _Lines, rules: NameRules) -> _Hashes:
        """Return a hash of the target of each of these lines, which are in order."""
        wanted = np.zeros(len(self._targets), bool)
        wanted[lines] = True
        keys = [text_hash(rules.key(task_of(number, line).target)) for number, line in self._lines() if wanted[number]]
        return np.array(keys, np.uint64)

    def _refuse_overwriting(self, kept: _Lines, targets: _Hashes) -> None:
        inside, lines = np.frombuffer(self._inside[0], np.uint64), np.frombuffer(self._inside[1], np.int64)
        victims: dict[int, int] = {}
        if len(inside):
            order = np.argsort(inside, kind="stable")
            places = np.searchsorted(inside, targets[kept], sorter=order)
            found = np.take(order, np.minimum(places, len(order) - 1))
            hits = inside[found] == targets[kept]
            victims.update(zip(kept[hits].tolist(), lines[found[hits]].tolist(), strict=True))
            if len(victims) <= _CHECKED:
                tasks = self._read_tasks({*victims, *victims.values()})
                victims = {a: b for a, b in victims.items() if self._is_overwritten(tasks[a].target, tasks[b])}
        if self._through:
            known = np.frombuffer(self._sources, np.int64)
            for line, file in self._through:
                if len(read := np.flatnonzero(known == file)):
                    victims[line] = int(read[0])
        if victims:
            lines_of = self._read_tasks({*list(victims)[:_NAMED], *list(victims.values())[:_NAMED]})
            said = [
                f"{self._shown(lines_of[line])} would overwrite "
                + ("itself" if line == victim else f"the input {self._shown(lines_of[victim])}")
                for line, victim in list(victims.items())[:_NAMED]
            ]
            raise MeshferryError(f"{_and_more(said, len(victims))}; nothing was written")

    def _is_overwritten(self, target: str, source: Task) -> bool:
        """Return whether a target is a source, and not only a file whose name other systems would take for the same."""
        full = os.path.join(list(self.roots)[source.root], source.path)
        try:
            return os.path.samefile(self._output.path(target), full)
        except (OSError, ValueError):  # one of them is not there
            below = self._output.below(self._output.key(full))
            return below is None or self._output.rules.key(below) == self._output.rules.key(target)

    def _refuse_clashes(self, kept: _Lines, names: _Hashes) -> None:
        """Say which sources would become one file; ``names`` are hashes of the targets."""
        named = self._numbered[:_NAMED]
        firsts = [int(kept[np.argmax(names[kept] == names[line])]) for line in named]
        tasks = self._read_tasks({*firsts, *named.tolist()})
        said = [
            f"{self._shown(tasks[first])} and {self._shown(tasks[line])} would both become {tasks[first].target}"
            for first, line in zip(firsts, named.tolist(), strict=True)
        ]
        raise MeshferryError(
            f"{_and_more(said, len(self._numbered))}; use --clashes number to number them; nothing was written"
        )

    def _read_tasks(self, numbers: Collection[int]) -> dict[int, Task]:
        """Return the works of some lines."""
        return {number: task_of(number, line) for number, line in self._lines() if number in numbers}

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        self._stream.seek(0)
        yield from enumerate(self._stream)

    def _shown(self, task: Task) -> str:
        return os.path.join(list(self.roots)[task.root], task.source)

    def copy(self, to: BinaryIO) -> None:
        """Write the lines that stay, with the numbers that their targets get."""
        taken = _Taken(self._targets, self._inside[0])
        dropped, numbered = (np.zeros(len(self._targets), bool) for _ in range(2))
        dropped[self._dropped] = True
        numbered[self._numbered] = True
        for number, line in self._lines():
            if dropped[number]:
                continue
            if not numbered[number]:
                to.write(line)
                continue
            task = task_of(number, line)
            target = self._free(task.target, self._targets[number], taken)
            self._targets[number] = target_hash(target)
            to.write(line_of(Task(number, task.root, task.path, task.member, target, task.size, task.modified)))

    def _free(self, target: str, hashed: int, taken: _Taken) -> str:
        """Return a target with the first number that makes it one of its own."""
        stem = target[: -len(self._extension)]
        number = taken.last.get(hashed, 1)
        while True:
            number += 1
            free = f"{stem}_{number}{self._extension}"
            if not taken.has(target_hash(free)) and not self._output.link(free):
                taken.last[hashed] = number
                return free


class _Taken:
    """The targets that are not free; those with a number need not be among them, as no two names give the same."""

    def __init__(self, *hashes: Sequence[int]) -> None:
        self._hashes: _Hashes = np.unique(np.concatenate([np.array(some, np.uint64) for some in hashes]))
        self.last: dict[int, int] = {}
        """The last number that each clashing target got."""

    def has(self, hashed: int) -> bool:
        wanted = np.uint64(hashed)
        place = int(np.searchsorted(self._hashes, wanted))
        return place < len(self._hashes) and bool(self._hashes[place] == wanted)


class _Output:
    """Where files lie, seen from the output folder, whose links are known."""

    def __init__(self, folder: Path, rules: NameRules | None) -> None:
        self._rules = rules
        self._folder = os.path.abspath(folder)
        self._key = inputs.file_key(folder).rstrip(os.sep) + os.sep
        self._folders = functools.lru_cache(256)(lambda path: os.path.realpath(path).rstrip(os.sep) + os.sep)
        self._links = functools.lru_cache(64)(_links)

    @property
    def rules(self) -> NameRules:
        """How the folder compares names."""
        return self._rules or rules_of(self._folder)

    def key(self, path: str) -> str:
        """Return the same text for all spellings of one file's path; a link is a file of its own."""
        folder, name = os.path.split(path)
        key: str = self._folders(folder) + name
        return key.casefold() if sys.platform in {"win32", "darwin"} else key

    def below(self, key: str) -> str | None:
        """Return the path of a file below the output folder; None: it lies elsewhere."""
        return key[len(self._key) :].replace(os.sep, "/") if key.startswith(self._key) else None

    def path(self, target: str) -> str:
        """Return where a target is on this machine."""
        return os.path.join(self._folder, target)

    def link(self, target: str) -> str:
        """Return which file a target is replaced in where it is a link to one; otherwise nothing."""
        path = self.path(target)
        folder, name = os.path.split(path)
        return inputs.file_key(Path(path)) if name in self._links(folder) else ""


def _links(folder: str) -> frozenset[str]:
    """Return the names of the links in a folder, which need not be there."""
    try:
        with os.scandir(folder) as entries:
            return frozenset(entry.name for entry in entries if entry.is_symlink())
    except OSError:
        return frozenset()


def _later(hashes: NDArray[np.int64] | _Hashes, lines: _Lines) -> _Lines:
    """Return the lines whose hash an earlier one has."""
    order = np.argsort(hashes, kind="stable")
    ordered = hashes[order]
    return np.sort(lines[order[1:][ordered[1:] == ordered[:-1]]])


def _and_more(said: Sequence[str], count: int) -> str:
    return "; ".join(said) + (f"; and {count - len(said):,} more" if count > len(said) else "")

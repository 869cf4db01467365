"""Replace several files together.

All files are written to a staging folder beside their targets, flushed, and renamed one after the other, the chosen
file last: if the chosen file is new, the set is complete. Each file is, at any moment, the old one or the new one.
Obsolete files of earlier exports are removed just before the chosen file is renamed, and restored like the others. The
folder holds a plan of the renaming while that is in progress. If the next export finds a plan whose process has ended,
the last export was interrupted; files that are still in the folder were not renamed.

A plan may have been planted by someone else, or the folder may be of another program. Therefore only files with names
that this module gives are removed, in folders with a plan and beside them.
"""

import contextlib
import filecmp
import json
import os
import re
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..core.errors import ExportError, refusal
from ..core.format import OutputFile
from ..core.messages import Message, Named, Report, Text, joined
from . import atomic_write
from .file_names import cautious_key
from .locks import lock
from .special_files import is_link, open_regular

_PLAN = f"{atomic_write.OWN_MARK}plan.json"
"""Name of the plan, by which staging folders are recognised; other programs write ``plan.json``, too."""
_LONGEST_PLAN = 2**22
"""Maximum number of characters of a plan that are read; a set has at most a few hundred files."""
_STAGED = re.compile(r"\d+(\.old)?")
"""Names of the other files in a staging folder."""
_TEMPORARY = re.compile(atomic_write.OWN_TEMPORARY)
_DAMAGE = (OSError, ValueError, TypeError, LookupError, RecursionError)
"""Exceptions that reading a damaged or invalid plan can raise."""
_HEAD = 4096
"""Bytes at the start of an obsolete file that are searched for its writer's mark."""
_UNPLANNED_AGE = 60.0
"""Age after which a staging folder without a plan counts as abandoned, in seconds. The folder and its plan are created
immediately after each other."""


def write_outputs(path: str | Path, outputs: Sequence[OutputFile], within: Path | None = None) -> list[Message]:
    """Replace the files of a set, the last one as ``path``, the others beside it; return the messages.

    Parameters
    ----------
    within:
        Folder that links must not lead out of; see :func:`.atomic_write.real_place`.

    Raises
    ------
    ExportError
        The operating system reports an error, a link leads out of ``within``, or a file of the user has the name of a
        companion. The old files are restored, or the text names those that are not.
    """
    path = Path(path)
    try:
        interrupted = _interrupted_sets(path)
        removed, unknown = obsolete_files(path, outputs)
        if len(outputs) == 1 and outputs[0].copy_of is None and not removed:
            atomic_write.replace_file(path, outputs[0].data, within=within)
        else:
            _write_set(path, outputs, removed, within)
    except (OSError, ValueError) as problem:
        if isinstance(problem, ExportError):
            raise
        raise ExportError(atomic_write.why_not_written(path, problem), file=path) from None
    written = {output.name for output in outputs} | {path.name}
    report = Report()
    for found in interrupted:
        found.report(written, report)
        found.remove()
    for place in removed:
        text = "removed; an earlier export wrote it, and this one has no such file"
        report.change("obsolete-file-removed", text, item=Named("file", place.name))
    for place in unknown:
        text = "not of this export, but its name makes it a part; remove or rename it"
        report.change("unknown-file-in-set", text, item=Named("file", place.name))
    return report.messages


def obsolete_files(path: Path, outputs: Sequence[OutputFile]) -> tuple[list[Path], list[Path]]:
    """Return the existing obsolete files beside a set: those of the same writer, and the others."""
    chosen = outputs[-1]
    own: list[Path] = []
    unknown: list[Path] = []
    for name in chosen.obsolete:
        place = beside(path, chosen, Path(name))
        if not place.is_file():
            continue
        try:
            with place.open("rb") as stream:
                is_own = not place.is_symlink() and chosen.own_mark in stream.read(_HEAD)
        except OSError:
            is_own = False
        (own if is_own else unknown).append(place)
    return own, unknown


def remove_abandoned(folder: Path) -> bool:
    """Remove the staging folder of a killed export; return whether it no longer exists.

    A folder that a running process uses is kept, and so is a folder of another program with a similar name.
    """
    try:
        if (found := _interrupted(folder)) is not None:
            found.remove()
    except _DAMAGE:
        return False
    return not folder.exists()


@dataclass
class _Member:
    """A file of a set while the set is being written."""

    name: str
    place: Path
    """Path of the target, with links resolved."""
    staged: Path | None
    """Path of the new content; None if the file is removed."""
    kept: Path | None = None
    """Path of the preserved old content, which is restored if a later member cannot be renamed."""


def _write_set(path: Path, outputs: Sequence[OutputFile], removed: Sequence[Path], within: Path | None) -> None:
    """Write all files into a staging folder with a plan of the renames, then rename them, the chosen file last."""
    places = _places(path, outputs, within)
    inner = {place.parent for place in places if place.parent.parent == path.parent and not place.parent.exists()}
    for made in inner:
        made.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=atomic_write.temporary_prefix(path), suffix=".part", dir=path.parent))
    members: list[_Member] = []
    try:
        with (folder / _PLAN).open("w", encoding="utf-8") as plan:
            lock(plan)
            newest = time.time()
            longest = max(output.delay for output in outputs)
            for number, (output, place) in enumerate(zip(outputs, places, strict=True)):
                if output.copy_of is not None and _are_same(output.copy_of, place):
                    continue
                staged = _staged_path(folder, number, place)
                members.append(_Member(place.name, place, staged))
                _stage(output, place, staged, newest - longest + output.delay if longest else None)
            members[-1:-1] = [_Member(place.name, place, None) for place in removed]
            for number, member in enumerate(members):
                _keep(member, folder / f"{number}.old")
            written = [[member.name, os.path.abspath(member.staged)] for member in members if member.staged]
            plan.write(json.dumps({"chosen": path.name, "members": written}))
            plan.flush()
            os.fsync(plan.fileno())
            _flush_folder(folder)
            try:
                _rename(members)
            finally:
                plan.seek(0)
                plan.truncate()  # an empty plan tells the next export that nothing was interrupted
        _flush_folder(path.parent)
    finally:
        for member in members:
            if member.staged is not None:
                with contextlib.suppress(OSError):
                    atomic_write.remove_file(member.staged)
        atomic_write.remove_folder(folder)
        for made in inner:
            with contextlib.suppress(OSError):
                made.rmdir()  # empty if nothing was written


def _places(path: Path, outputs: Sequence[OutputFile], within: Path | None) -> list[Path]:
    """Return the target of each output; extensions follow the case of the chosen file's, as programs expect.

    Raises
    ------
    ExportError
        A folder or a file of the user has the name, two targets are the same file, or a link leads out of ``within``.
    """
    places = [atomic_write.real_place(place, within) for place, _output in companions_of(path, outputs)]
    places.append(atomic_write.real_place(path, within))
    taken: set[str] = set()
    for place in places:
        if place.is_dir():
            raise ExportError("the file cannot be written: a folder has this name", file=place)
        key = cautious_key(str(place))
        if key in taken:
            raise ExportError("the files cannot be written: two of them have this name", file=place)
        taken.add(key)
    for place, output in zip(places, outputs[:-1], strict=False):
        if not _has_own_name(output, outputs[-1]) and would_change(place, output):
            template = "{} exists with other content, and its name does not begin with '{}'; rename or remove it first"
            raise ExportError(template, place, Path(outputs[-1].name).stem)
    return places


def companions_of(path: Path, outputs: Sequence[OutputFile]) -> list[tuple[Path, OutputFile]]:
    """Return the files of a set beside the chosen one, which is the last, with their paths."""
    *others, chosen = outputs
    return [(beside(path, chosen, Path(output.name)), output) for output in others]


def _has_own_name(output: OutputFile, chosen: OutputFile) -> bool:
    """Return whether the name of a companion, or of its folder, begins with that of the chosen file."""
    starts = tuple(start for start in (Path(chosen.name).stem, chosen.own_prefix) if start)
    first, last = output.name.lstrip(".").partition("/")[0], output.name.rpartition("/")[2]
    return first.startswith(starts) or last.startswith(starts)


def would_change(place: Path, output: OutputFile) -> bool:
    """Return whether writing a file would change an existing one."""
    try:
        if not place.is_file():
            return place.exists()
        if output.copy_of is not None:
            return not filecmp.cmp(output.copy_of, place, shallow=False)
        return place.read_bytes() != output.data
    except OSError:
        return True


def beside(path: Path, chosen: OutputFile, name: Path) -> Path:
    """Return the path of a file beside the chosen one, ``path``; its extension follows the case of that file's."""
    if path.suffix.lower() == Path(chosen.name).suffix.lower() == name.suffix.lower():
        name = name.with_suffix(path.suffix)
    return path.parent.joinpath(*(part for part in name.parts if part not in {name.anchor, ".."}))


def _are_same(source: Path, place: Path) -> bool:
    """Return whether a file would be copied onto itself."""
    try:
        return os.path.samefile(source, place)
    except OSError:
        return False


def _staged_path(folder: Path, number: int, place: Path) -> Path:
    """Return the path at which a member is written: in the staging folder, or for a link beside its target."""
    if place.parent == folder.parent:
        return folder / str(number)
    handle, name = atomic_write.temporary_file(place)
    os.close(handle)
    return Path(name)


def _stage(output: OutputFile, place: Path, staged: Path, modified: float | None) -> None:
    """Write the new content of a file to ``staged``; ``place`` is its target."""
    with staged.open("wb") as stream:
        if output.copy_of is None:
            stream.write(output.data)
        else:
            try:
                with output.copy_of.open("rb") as source:
                    shutil.copyfileobj(source, stream, 1 << 20)
            except OSError as problem:
                raise ExportError(
                    "{}: the file cannot be copied to {}: {}", output.copy_of, place.name, refusal(problem)
                ) from None
        stream.flush()
        os.fsync(stream.fileno())
    atomic_write.copy_mode(place, staged)
    if modified is not None:
        os.utime(staged, (modified, modified))


def _keep(member: _Member, kept: Path) -> None:
    """Preserve the old file: by a hard link if the disk supports it, otherwise as a copy.

    On Windows a read-only file is copied: its hard link could only be removed by making both writable.
    """
    if not member.place.exists():
        return
    try:
        if sys.platform == "win32" and not member.place.stat().st_mode & stat.S_IWRITE:
            raise PermissionError
        os.link(member.place, kept)
    except OSError:
        shutil.copy2(member.place, kept)
    member.kept = kept


def _rename(members: Sequence[_Member]) -> None:
    """Rename or remove all members; if one fails, restore those before it."""
    done: list[_Member] = []
    try:
        for member in members:
            if member.staged is None:
                atomic_write.remove_file(member.place)
            else:
                atomic_write.rename_over(member.staged, member.place)
            done.append(member)
    except BaseException as problem:
        stuck = [member.name for member in reversed(done) if not _take_back(member)]
        if not isinstance(problem, OSError):
            raise
        text = Text("{}: the file cannot be written: {}", members[len(done)].place, refusal(problem))
        if stuck:
            text = Text("{}; files of the set that are already replaced: {}", text, joined(stuck))
        raise ExportError(text) from None


def _take_back(member: _Member) -> bool:
    """Restore the old file, or remove the new one if there was none; return whether that succeeded."""
    try:
        if member.kept is None:
            atomic_write.remove_file(member.place)
        elif member.place.parent == member.kept.parent.parent:
            atomic_write.rename_over(member.kept, member.place)
        else:  # the target of a link may be on another disk: copy instead of renaming
            atomic_write.replace_file(member.place, member.kept.read_bytes())
    except (OSError, ExportError):
        return False
    return True


@dataclass
class _Interrupted:
    """The remains of a killed export."""

    folder: Path
    chosen: str
    done: list[str]
    """Members that were renamed."""
    older: list[str]
    """Members that were not renamed; old files with their names exist."""
    absent: list[str]
    """Members that were not renamed and do not exist."""
    staged: list[Path]
    """Written files of these members."""

    def report(self, written: set[str], report: Report) -> None:
        """Report which files an interrupted export replaced, and which of the set this export has not written."""
        if not self.done or not self.staged:  # the set is consistent: none or all of its files were replaced
            return
        states = ((self.done, "from it"), (self.older, "older"), (self.absent, "missing"))
        what = joined((Text("{}: {}", Text(word), joined(names)) for names, word in states if names), "; ")
        left = [name for name in (*self.done, *self.older) if name not in written]
        now = Text("not replaced now: {}", joined(left)) if left else Text("all are replaced now")
        template = "The last export of '{}' was interrupted: its files did not fit together ({}); {}"
        report.change("interrupted-export", template, self.chosen, what, now)

    def remove(self) -> None:
        """Remove the staged files and the folder; keep all other files, even if the plan lists them."""
        found = [path for path in self.staged if _is_temporary(path, self.folder.parent)]
        with contextlib.suppress(OSError):
            names = sorted(os.listdir(self.folder), key=_PLAN.__eq__)  # the plan last
            found += [self.folder / name for name in names if name == _PLAN or _STAGED.fullmatch(name)]
        for path in found:
            with contextlib.suppress(OSError):
                atomic_write.remove_file(path)
        with contextlib.suppress(OSError):
            self.folder.rmdir()


def _interrupted_sets(path: Path) -> list[_Interrupted]:
    """Find the remains of killed exports of this chosen file; folders that a running process uses are ignored."""
    pattern = re.compile(rf"{re.escape(atomic_write.temporary_prefix(path))}\w{{8}}\.part")
    found: list[_Interrupted] = []
    try:
        folders = sorted(entry.path for entry in os.scandir(path.parent) if pattern.fullmatch(entry.name))
    except OSError:
        return []  # writing to the folder may be permitted nevertheless
    for folder in map(Path, folders):
        with contextlib.suppress(*_DAMAGE):
            if folder.is_dir() and not is_link(folder) and (interrupted := _interrupted(folder, path.name)) is not None:
                found.append(interrupted)
    return found


def _interrupted(folder: Path, chosen: str = "") -> _Interrupted | None:
    """Return the state of an interrupted export from its staging folder; None if it is in use or of another file."""
    plan = folder / _PLAN
    if not plan.exists():
        if time.time() - folder.stat().st_mtime > _UNPLANNED_AGE:
            folder.rmdir()  # fails unless empty: a folder with files but no plan is of another program
        return None
    with os.fdopen(open_regular(plan, os.O_RDWR), "r+", encoding="utf-8") as stream:
        if not lock(stream):
            return None
        text = stream.read(_LONGEST_PLAN)
    content = json.loads(text) if text.strip() else {"chosen": chosen, "members": []}
    if chosen and content["chosen"] != chosen:
        return None
    result = _Interrupted(folder, chosen, [], [], [], [])
    for member in content["members"]:
        name, staged = Path(member[0]).name, Path(os.path.abspath(member[1]))
        if staged.drive != Path(os.path.abspath(folder)).drive:
            raise ValueError  # the path is not opened: for a network path Windows would log in to the server
        if not staged.exists():
            result.done.append(name)
            continue
        result.staged.append(staged)
        (result.older if (folder.parent / name).exists() else result.absent).append(name)
    return result


def _is_temporary(path: Path, folder: Path) -> bool:
    """Return whether a path is a regular file with the name of a temporary file, in a folder or its subfolders."""
    real, own = os.path.realpath(folder), os.path.realpath(path.parent)
    is_own = real in {own, os.path.dirname(own)} and bool(_TEMPORARY.fullmatch(path.name))
    return is_own and path.is_file() and not path.is_symlink()


def _flush_folder(folder: Path) -> None:
    """Flush the entries of a folder to disk, if the system supports it."""
    if sys.platform == "win32":
        return
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

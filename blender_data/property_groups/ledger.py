"""Ledger of exports: what a file has held of data blocks since the last export wrote it.

*Undo* and *Redo* change data blocks, but not files. So the ledger of a file keeps what its last export stored on data
blocks, by ``session_uid``, which is the same after undo and redo; after each of these, :func:`settle` stores it on them
again. It also keeps what exports removed from the file, so that an object that comes back gets its node back.

``session_uid`` is not the same after the .blend file is opened again. Before a save, the data blocks are settled, too,
and the rest is stored with their names beside the record of the target (``MeshferryFile.ledger``). A ledger from a
.blend file does not permit to write: it is not in :func:`.file_records.session_files`, and counts only while the file
has ``Ledger.digest``, or the digest of an export on save after it.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import bpy

from ..file_records import written_digest

MARKS: Mapping[str, tuple[str, ...]] = {
    "OBJECT": (
        "import_id",
        "node_key",
        "given_parent_key",
        "given_transform",
        "given_space",
        "node_path",
        "given_hidden",
        "given_materials",
        "given_properties",
        "node_slots",
        "model_parts",
    ),
    "COLLECTION": ("unshown_nodes",),
}
"""Properties of ``.meshferry`` that exports store and that outlast *Undo*, by ``ID.id_type``. Names are not among them:
``source_name`` belongs to ``given_name``, which *Undo* changes together with the name of the object."""

_SESSION = "meshferry_ledgers"


@dataclass
class Ledger:
    """What the exports of one import, or of one object, wrote into one file."""

    digest: str = ""
    """Digest of the file as the last export wrote it, also one on save."""
    agreed: str = ""
    """Digest of the file as it was when ``marks`` were recorded. An export on save changes no data blocks."""
    marks: dict[int, dict[str, Any]] = field(default_factory=dict)
    """Values of :data:`MARKS` that the last export stored, by ``session_uid``. Data blocks that were deleted stay."""
    removed: dict[str, str] = field(default_factory=dict)
    """Text of each node that exports removed, by its key, as in ``Patched.removed``. It is empty for a node that was
    removed as a part of another one."""
    made: dict[str, str] = field(default_factory=dict)
    """Digest of each file that exports made beside this one, by name relative to its folder. Such a file is replaced
    only if :func:`.file_records.is_own`, too, since this may come from a .blend file."""

    def applies_to(self, owner: Any, digest: str) -> bool:
        """Return whether the target of an object or a collection, which has this digest, is as the exports left it."""
        return digest in {self.digest, written_digest(Path(owner.meshferry.file.path))}

    def keep_for(self, owner: Any, stored: Iterable[Any] = ()) -> None:
        """Make this the ledger of the target of an object or a collection.

        ``stored`` are the data blocks on which the export stored marks. They count no longer for exports of other
        imports; the marks of all other data blocks stay.
        """
        key = key_of(owner)
        for block in (owner, *stored):
            for other, ledger in ledgers().items():
                if other[1] != key[1]:
                    ledger.marks.pop(block.session_uid, None)
            self.marks[block.session_uid] = marks_of(block)
        ledgers()[key] = self

    def settle(self, owner: Any) -> None:
        """Store on all data blocks what the last export stored on them, and on the owner the digest of its target."""
        if owner.is_editable and owner.meshferry.file.digest != self.agreed:
            owner.meshferry.file.digest = self.agreed
        for block in _blocks():
            marks = self.marks.get(block.session_uid)
            if marks is not None and block.is_editable and marks != marks_of(block):
                for name, value in marks.items():
                    setattr(block.meshferry, name, value)


Key = tuple[str, str]
"""Path of a file, and the identifier of the import that is exported to it."""


def ledgers() -> dict[Key, Ledger]:
    """Return the ledgers of all files; they are stored like :func:`.file_records.session_files`."""
    found: dict[Key, Ledger] = bpy.app.driver_namespace.setdefault(_SESSION, {})
    return found


def key_of(owner: Any) -> Key:
    """Return the key of the ledger of the target of an object or a collection."""
    return owner.meshferry.file.path, owner.meshferry.import_id


def ledger_of(owner: Any) -> Ledger | None:
    """Return the ledger of the target of an object or a collection, or None if no export wrote it."""
    return ledgers().get(key_of(owner))


def is_of_other_import(owner: Any, digest: str) -> bool:
    """Return whether the target of an owner, which has this digest, was last written by an export of another import."""
    own = ledger_of(owner) or Ledger()
    others = (noted.digest for key, noted in ledgers().items() if key[0] == owner.meshferry.file.path)
    return digest not in {own.digest, owner.meshferry.file.digest} and digest in others


def move(key: Key, owner: Any, unchanged: Iterable[Any]) -> None:
    """Give the file as a reload read it a ledger with only the marks of objects that the reload left alone.

    The earlier ledger stays for *Undo* of the reload, after which the import has its earlier identifier.
    """
    before, digest = ledgers().pop(key), owner.meshferry.file.digest
    kept = [obj for obj in unchanged if obj.session_uid in before.marks]
    Ledger(digest, digest).keep_for(owner, kept)
    ledgers().setdefault(key, before)


def follow_reload(owner: Any, digest: str, objects: Iterable[Any]) -> None:
    """Keep the ledger of a target that was reloaded if it is as the exports left it, otherwise forget it."""
    ledger = ledger_of(owner)
    if ledger is not None and ledger.digest == digest:
        ledger.keep_for(owner, objects)
    elif ledger is not None:
        ledgers()[key_of(owner)] = Ledger(made=ledger.made)


def _blocks() -> Iterator[Any]:
    yield from bpy.data.collections
    yield from bpy.data.objects


def marks_of(block: Any) -> dict[str, Any]:
    """Return the values of the marks of a data block."""
    group = block.meshferry
    values = {name: getattr(group, name) for name in MARKS[block.id_type]}
    return {name: value if isinstance(value, str | int) else tuple(value) for name, value in values.items()}


def settle() -> dict[Any, Ledger]:
    """Settle the data blocks of all targets; return their ledgers by the owners of the targets."""
    waiting = dict(ledgers()) if _SESSION in bpy.app.driver_namespace else {}
    found = {}
    for owner in _blocks() if waiting else ():
        ledger = waiting.pop(key_of(owner), None)
        if ledger is not None and owner.is_editable:
            ledger.settle(owner)
            found[owner] = ledger
    return found


def store_in_blend() -> None:
    """Settle the data blocks of all targets, and store their ledgers in the .blend file that is being saved."""
    for owner, ledger in settle().items():
        names = [obj.name for obj in bpy.data.objects if obj.session_uid in ledger.marks and obj.library is None]
        parts = ("digest", "agreed", "removed", "made")
        rest = {**{part: getattr(ledger, part) for part in parts}, "marks": names}
        owner.meshferry.file.ledger = json.dumps(rest)


def take_from_blend() -> None:
    """Remove the ledgers from the properties of the open .blend file; keep those that the session does not have."""
    for owner in _blocks():
        text = owner.meshferry.file.ledger
        if text and owner.is_editable:
            owner.meshferry.file.ledger = ""
            found = _parsed(text, owner)
            if found is not None:
                ledgers().setdefault(key_of(owner), found)


def _parsed(text: str, owner: Any) -> Ledger | None:
    """Return the ledger in a text, in which the marks are names of the owner's settled objects; None if damaged."""
    try:
        found = Ledger(**json.loads(text))
        texts = [found.digest, found.agreed, *found.marks]
        texts += [text for table in (found.removed, found.made) for pair in table.items() for text in pair]
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None
    if not all(isinstance(text, str) for text in texts):
        return None
    names: set[Any] = set(found.marks)
    own = [obj for obj in bpy.data.objects if obj.meshferry.import_id == owner.meshferry.import_id]
    found.marks = {obj.session_uid: marks_of(obj) for obj in own if obj.name in names}
    return found

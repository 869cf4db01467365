"""Paths in the properties of data blocks: absolute while a .blend file is open, relative to it in the saved file."""

import json
import os
from collections.abc import Callable, Iterator
from typing import Any

import bpy

from .. import file_records
from ..file_records import absolute_path
from . import ledger


def register() -> None:
    """Add the handlers."""
    for handlers, handler in _handlers():
        handlers.append(handler)


def unregister() -> None:
    """Remove the handlers."""
    for handlers, handler in _handlers():
        handlers.remove(handler)


def _handlers() -> list[tuple[Any, Callable[..., None]]]:
    known = bpy.app.handlers
    after = [(handlers, make_absolute) for handlers in (known.load_post, known.save_post, known.save_post_fail)]
    undone = [(handlers, after_undo) for handlers in (known.undo_post, known.redo_post)]
    return [(known.save_pre, make_relative), (known.blend_import_post, after_append), *after, *undone]


@bpy.app.handlers.persistent
def after_undo(*_others: Any) -> None:
    """Store again what exports stored on data blocks, since *Undo* and *Redo* do not change files."""
    file_records.restore_exports()
    ledger.settle()


@bpy.app.handlers.persistent
def make_relative(blend: str, *_others: Any) -> None:
    """Store paths relative to the .blend file that is being saved, as far as they are on its drive."""
    ledger.store_in_blend()
    folder = os.path.dirname(blend)

    def relative(path: str, _owner: bpy.types.ID) -> str:
        if not os.path.isabs(path) or path.startswith(("//", "\\\\")):
            return path
        try:
            return "//" + os.path.relpath(path, folder).replace(os.sep, "/")
        except ValueError:  # another drive
            return path

    if folder:
        _change(relative)


@bpy.app.handlers.persistent
def make_absolute(blend: str, *_others: Any) -> None:
    """Make the paths absolute again after the .blend file was saved or opened."""
    folder = os.path.dirname(blend)
    _change(lambda path, _owner: absolute_path(path, folder))
    ledger.take_from_blend()


@bpy.app.handlers.persistent
def after_append(appending: Any, *_others: Any) -> None:
    """Make the paths of appended data blocks absolute, which are relative to the .blend file that they come from."""
    items = [item for item in appending.import_items if item.id is not None and item.source_library is not None]
    folders = {item.id: os.path.dirname(bpy.path.abspath(item.source_library.filepath)) for item in items}
    _change(lambda path, owner: absolute_path(path, folders.get(owner, "")))
    ledger.take_from_blend()


def _change(change: Callable[[str, bpy.types.ID], str]) -> None:
    """Replace the stored paths of all data blocks of the open file by the results of a function."""
    for group, name in _stored_paths():
        before, owner = getattr(group, name), group.id_data
        if name == "clip_files":
            try:
                after = json.dumps([change(path, owner) for path in json.loads(before or "null")])
            except (ValueError, TypeError, AttributeError, RecursionError):
                continue  # not known, or damaged
        else:
            after = change(before, owner)
        if after != before:
            setattr(group, name, after)


def _stored_paths() -> Iterator[tuple[Any, str]]:
    """Yield the properties with paths: each group and the name of the property."""
    collections = [*bpy.data.collections, *(scene.collection for scene in bpy.data.scenes)]
    for owner in (*bpy.data.objects, *collections):
        if owner.library is None:
            for stored in (owner.meshferry.file, *owner.meshferry.exports):
                if stored.path:
                    yield stored, "path"
                    yield stored, "clip_files"
    for source in (*collections, *bpy.data.actions):
        if source.library is None and source.meshferry.source_path:
            yield source.meshferry, "source_path"

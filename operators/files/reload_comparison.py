"""Compare a file with what Re-export would write into it, since a reload leaves the objects of equal nodes alone."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Any

import bpy

from ...blender_data import file_records
from ...blender_data.animation.action_ranges import same_path
from ...blender_data.exporting.object_selection import candidates_of
from ...blender_data.file_records import digest_of
from ...blender_data.reloading.matching import is_unchanged
from ...blender_data.steps import Steps, scaled, without_bpy
from ...io_formats.core.errors import MeshferryError
from ...io_formats.passes.compare_scenes import equal_nodes
from .export_on_save import files_in
from .patched_export import is_patched
from .reexport import EncodedAgain, FoundFile, decoded, encode_again


@dataclass
class Comparison:
    """The nodes of a file that Re-export would write as they are in the file."""

    unchanged: Collection[str] | None = ()
    """Their names, see :func:`equal_nodes`; None if this holds for the whole file."""
    again: EncodedAgain | None = None
    """What Re-export would write; None if that is not clear."""

    def is_whole(self) -> bool:
        """Return whether the file is what Re-export would write."""
        return self.unchanged is None

    def changed(self, objects: Iterable[Any]) -> list[Any]:
        """Return the objects whose nodes are not among the unchanged ones."""
        if self.unchanged is None:
            return []
        return [obj for obj in objects if not is_unchanged(obj, self.unchanged)]

    def agree(self, objects: Iterable[Any]) -> None:
        """Note that the file, which was read as it is now, has these objects as Re-export would write them."""
        if self.again is not None:
            record = replace(self.again.record, digest=digest_of(self.again.record.path))
            file_records.write(self.again.found.owners, record)
            chosen = {*objects}
            self.again.note([obj for obj in self.again.objects if self.is_whole() or obj in chosen])


def compare_steps(context: bpy.types.Context, path: str, objects: Collection[Any]) -> Steps[Comparison]:
    """Compare a file with what Re-export of some of the objects would write into it, if they can be exported."""
    found = _export_to(context, path, objects)
    if found is None or is_patched(found.record):
        return Comparison()
    try:
        again = yield from scaled(encode_again(context, found), 0.0, 0.9)
    except MeshferryError:
        return Comparison()
    if not again.is_changed():
        return Comparison(None, again)
    comparing = without_bpy("Comparing", decoded, found.record.path, again.target, again.encoded.outputs)
    scenes = yield from scaled(comparing, 0.9, 1.0)
    if scenes is None:
        return Comparison((), again)
    same = equal_nodes(*scenes)
    is_whole = all({"", *(node.name for node in scene.nodes)} == same for scene in scenes)
    return Comparison(None if is_whole else same, again)


def _export_to(context: bpy.types.Context, path: str, objects: Collection[Any]) -> FoundFile | None:
    """Return what Re-export writes into a file, if it concerns some of these objects; None if that is not clear."""
    found = [
        one for place, several in files_in(context.scene).items() if same_path(str(place), path) for one in several
    ]
    found = [one for one in found if not {*candidates_of(context, one.source)}.isdisjoint(objects)]
    return found[0] if len(found) == 1 else None

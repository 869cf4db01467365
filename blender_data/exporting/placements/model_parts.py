"""Parts of models that an imported placement shows: their changes, which no file of the placement holds."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import bpy

from ....io_formats.core.messages import Report, counted, listed
from ....io_formats.core.placement import ModelUse, PlacedNode, Placement
from ... import import_marks
from ...mesh_data.checksums import edits_of, has_other_mesh

_NUMBER = re.compile(r"\.\d{3,}$")
_MOST_NAMES = 5


def node_object(part: bpy.types.Object) -> bpy.types.Object | None:
    """Return the node object above a part of a model, or None if the part is not below a node object."""
    above = part.parent
    while above is not None and above.meshferry.is_model_part:
        above = above.parent
    return above


def report_parts(
    parts: Sequence[bpy.types.Object], nodes: Mapping[str, PlacedNode], placement: Placement, report: Report
) -> None:
    """Report moved, copied and edited parts, with the files of their models.

    A mesh with edits is reported once, even if several nodes show it.
    """
    changed: dict[str, list[str]] = {}
    seen: set[bpy.types.ID] = set()
    given = {(part.parent, part.meshferry.given_name) for part in parts if part.name == part.meshferry.given_name}
    for part in parts:
        above = node_object(part)
        node = nodes.get(above.meshferry.node_key) if above is not None else None
        if node is None or not isinstance(node.content, ModelUse):
            continue
        name = part.meshferry.given_name
        is_copy = part.name != name and bool(_NUMBER.search(part.name)) and (part.parent, name) in given
        is_edited = is_copy or import_marks.is_moved(part) or not import_marks.has_given_parent(part)
        if part.type == "MESH" and part.data not in seen:
            seen.add(part.data)
            is_edited = is_edited or has_other_mesh(part) or bool(edits_of(part))
        if is_edited:
            model = placement.models[node.content.model]
            changed.setdefault(model.file or model.path or model.name, []).append(part.name)
    for file, names in changed.items():
        report.warning(
            "model-part-not-written",
            "{} changed here, which the file that places the model does not hold: {}. To change the model itself, "
            "export its objects to {}",
            counted(len(names), "object"),
            listed(names, _MOST_NAMES),
            file,
        )


def report_missing_parts(
    objects: Iterable[bpy.types.Object], parts: Iterable[bpy.types.Object], report: Report
) -> None:
    """Report node objects below which parts of the model are missing.

    A copied object without any part is not reported.
    """
    count = Counter(node_object(part) for part in parts)
    by_key: dict[str, list[bpy.types.Object]] = {}
    for obj in objects:
        by_key.setdefault(obj.meshferry.node_key, []).append(obj)
    missing = [
        same[0].name
        for key, same in by_key.items()
        if key and all(count[obj] < obj.meshferry.model_parts for obj in same)
    ]
    if missing:
        template = (
            "{} without all parts of the model here, which the file still places whole: {}. To remove a model, delete "
            "its empty"
        )
        report.warning("model-parts-missing", template, counted(len(missing), "object"), listed(missing, _MOST_NAMES))

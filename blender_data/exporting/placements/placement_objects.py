"""Objects of an imported placement: those of its nodes, of models at nodes, and those that the user added."""

import json
import os
import re
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from types import MappingProxyType
from typing import Any

import bpy
import numpy as np

from ....io_formats.core.errors import ExportError
from ....io_formats.core.messages import Report, counted, listed, of_kind
from ....io_formats.core.placement import (
    Channels,
    ModelUse,
    PartUse,
    PlacedNode,
    PlacedObject,
    Placement,
    PlacementPart,
    SlotMaterial,
)
from ... import import_marks
from ... import names as blender_data_names
from ...armature_modifiers import armature_of
from ...import_marks import objects_in, objects_of
from ...mesh_data.checksums import edited_actions, edits_of, has_other_mesh, is_changed
from ...property_groups.ledger import Ledger
from .model_parts import report_missing_parts, report_parts
from .object_transforms import applied_transforms, is_driven, local_matrix, read_channels

_NUMBER = re.compile(r"\.\d{3,}$")
_MOST_NAMES = 5


_NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
"""Characters that XML files cannot contain."""
_GEOMETRY = {"vertices", "faces"}
"""Edits after which a copy has another mesh than its node."""


class PlacedObjects:
    """Objects of an imported collection: an object for each node of its file, and objects that the user added.

    Parameters
    ----------
    collection:
        The collection of the import.
    placement:
        The files and models that nodes refer to.
    report:
        Receives messages about changes that are not written.
    ledger:
        What earlier exports wrote. Objects of nodes that exports removed are not reported if the node above was
        removed, too: for example, colliders that remain of a child that the user deleted.
    made_files:
        Names of the files that earlier exports made for objects, by path; None if the format adds no models.
    added:
        Keys of nodes that this export adds for objects that were made in Blender.
    surfaces:
        Names and ``Material.identity`` of the surfaces of objects whose meshes this export writes.
    part:
        The nodes of the file; by default, those of the first file of the placement.

    Raises
    ------
    ExportError
        The collection was imported by a version that stored no keys, or the file has none.
    """

    def __init__(
        self,
        collection: bpy.types.Collection,
        placement: Placement,
        report: Report,
        ledger: Ledger | None = None,
        *,
        made_files: Mapping[str, str] | None = None,
        added: Mapping[bpy.types.Object, str] = MappingProxyType({}),
        surfaces: Mapping[bpy.types.Object, Sequence[tuple[str, str]]] = MappingProxyType({}),
        part: PlacementPart | None = None,
    ) -> None:
        self.collection = collection
        self.part = part = part or placement.parts[0]
        self.report = report
        self.files = [other.file for other in placement.parts]
        self.nodes = {node.key: node for node in part.nodes if node.key}
        self._adds_models = made_files is not None
        self._added_keys = added
        self._surfaces = surfaces
        self._find_model_files(placement, made_files or {})
        there = {obj for scene in bpy.data.scenes for obj in objects_in(scene.collection)}
        own = self._own_objects(there)
        own += [obj for obj in added if obj not in own]
        self._ledger = ledger or Ledger()
        removed = self._ledger.removed.keys() - self.nodes.keys()
        lost = [obj for obj in own if self.key(obj) in removed]
        self._gone = {obj for obj in lost if obj.meshferry.given_parent_key not in self.nodes}
        self.own = [obj for obj in own if not (obj.meshferry.is_model_part or obj in self._gone)]
        made = {obj.data for obj in self.own if self.key(obj) in self._made_files}
        self.edits = {obj.data: [] if obj.data in made else edits_of(obj) or [] for obj in self._first_of_meshes()}
        self._applied = applied_transforms(self.own, self.edits, self.nodes, placement)
        self.edits.update({mesh: [] for mesh in self._applied})
        self._left_out = self._other_copies()
        self.new_meshes: list[bpy.types.Object] = []
        """Objects with a mesh that no node has, by name."""
        self.own = [obj for obj in self.own if obj not in self._left_out]
        self.made = {obj: file for obj in self.own if (file := self._made_files.get(self.key(obj)))}
        """Objects whose mesh is in a file that an earlier export made for it, and that file."""
        self._report_meshes()
        self.objects = [obj for obj in self.own if self.key(obj)]
        if not self.nodes and part.nodes:
            raise ExportError("The file cannot be changed: its nodes have no ids, or only the editor may write it")
        if not self.objects and any(not obj.meshferry.node_slots for obj in self.own):
            raise ExportError("Its objects do not know their nodes; import the file again")
        self._slots_of: dict[bpy.types.Object, str] = {}
        """Value of the property ``node_slots`` for each new object."""
        self.sources = self._added(there)
        self.objects += self.sources
        self._index = {obj: number for number, obj in enumerate(self.objects)}
        self._report_parts()
        self._slots = self._slot_materials()
        self.placed = [self._placed(obj) for obj in self.objects]
        self._report_kept()
        self._report_instances()
        if "materials" not in part.not_held:
            self._report_materials()
        parts = [obj for obj in own if obj.meshferry.is_model_part]
        report_parts(parts, self.nodes, placement, report)
        report_missing_parts([obj for obj in self.objects if obj not in self.sources], parts, report)

    def _find_model_files(self, placement: Placement, made_files: Mapping[str, str]) -> None:
        """Find the files of the models that nodes show, and those among them that exports made."""
        shown = {obj.meshferry.node_key for obj in bpy.data.objects}
        shown |= {*json.loads(self.collection.meshferry.unshown_nodes or "[]")}
        files = [os.path.realpath(model.file) if model.file else "" for model in placement.models]
        uses = {key: node.content.model for key, node in self.nodes.items() if isinstance(node.content, ModelUse)}
        others = (node for part in placement.parts for node in part.nodes if not (part is self.part and node.key))
        used = {node.content.model for node in others if isinstance(node.content, ModelUse)}
        self.model_files = {files[number] for number in used | {uses[key] for key in uses.keys() & shown}} - {""}
        """Paths of the models that nodes show, except nodes without objects, which the export removes."""
        names = {key: made_files.get(files[number], "") for key, number in uses.items()}
        self._made_files = {key: name for key, name in names.items() if name}
        """File that an export made for the mesh of a node, by key; empty for nodes that this export adds."""
        self._made_files |= dict.fromkeys(self._added_keys.values(), "")

    def key(self, obj: bpy.types.Object) -> str:
        """Return the key of the node that an object represents, or is a copy of."""
        return self._added_keys.get(obj) or obj.meshferry.node_key

    def frame(self, obj: bpy.types.Object) -> bpy.types.Object:
        """Return the object in whose space the node of an object is.

        This is the armature, if the mesh is in a file that an export makes.
        """
        is_made = (self.sources.get(obj) or self.key(obj)) in self._made_files
        return (armature_of(obj) if is_made else None) or obj

    def _own_objects(self, there: set[bpy.types.Object]) -> list[bpy.types.Object]:
        """Return the objects of the import that are in a scene.

        Copies of objects of a referenced file that are outside of its collection are ignored; *Make Instances Real*
        makes such copies.
        """
        own = [obj for obj in objects_of(self.collection) if obj in there]
        if self.collection.meshferry.from_file:
            return own
        inside = objects_in(self.collection)
        keys = {obj.meshferry.node_key for obj in own if obj in inside}
        return [obj for obj in own if obj in inside or obj.meshferry.node_key not in keys]

    def agree(self, keys: Mapping[str, str], removed: Container[str] = ()) -> set[bpy.types.Object]:
        """Store on objects that the file has their current state; return the objects.

        Objects whose node was removed stay as they are: for example, colliders that remain of a child that the user
        deleted.

        Parameters
        ----------
        keys:
            Keys of added nodes as in ``Patched``.
        removed:
            Keys of nodes that the file no longer has.
        """
        self.update(self.placed, keys)
        added = {*keys.values()}
        stored = set(self.own)
        for obj, placed in zip(self.objects, self.placed, strict=True):
            if placed.key in removed:
                stored.discard(obj)
                continue
            for one in (obj, *(below for below in obj.children_recursive if below.meshferry.is_model_part)):
                one.meshferry.import_id = self.collection.meshferry.import_id
                stored.add(one)
            import_marks.mark_node(obj, placed.key, placed.name)
            obj.meshferry.node_slots = self._slots_of.get(obj, obj.meshferry.node_slots)
            if placed.key in added:
                import_marks.mark_model(obj)
            rig = self.frame(obj)
            for one in (obj,) if rig in self._index or rig.meshferry.import_id else (obj, rig):
                one.meshferry.node_path = one.meshferry.node_path or f"/{placed.name}"  # marks the place as known
                import_marks.mark_place(one)
                stored.add(one)
            obj.meshferry.given_parent_key = placed.given_parent
            obj.meshferry.given_hidden = obj.hide_viewport
            if placed.properties:
                given = json.loads(obj.meshferry.given_properties or "{}")
                obj.meshferry.given_properties = json.dumps({**given, **placed.properties})
        for obj in self.own:
            if obj.type == "MESH":
                obj.meshferry.given_materials = "\n".join(import_marks.material_identities(obj))
        return stored

    def of_nodes(self, keys: Container[str]) -> dict[bpy.types.Object, bool]:
        """Return the objects of nodes, each with whether the file's place contains a transform applied to a mesh."""
        objects = zip(self.objects, self.placed, strict=True)
        found = {
            obj: self.objects[placed.parent] if placed.parent >= 0 else obj
            for obj, placed in objects
            if placed.key in keys
        }
        return {obj: not self._applied.keys().isdisjoint((obj.data, above.data)) for obj, above in found.items()}

    @staticmethod
    def update(placed: Sequence[PlacedObject], keys: Mapping[str, str]) -> None:
        """Change the keys of objects to those of the patched file."""
        for number, one in enumerate(placed):
            one.key, one.source = keys.get(f"+{number}", one.key), ""
        for one in placed:
            one.given_parent = placed[one.parent].key if one.parent >= 0 else ""

    def _first_of_meshes(self) -> list[bpy.types.Object]:
        """Return one object for each mesh."""
        first: dict[Any, bpy.types.Object] = {}
        for obj in self.own:
            if obj.type == "MESH":
                first.setdefault(obj.data, obj)
        return list(first.values())

    def _other_copies(self) -> set[bpy.types.Object]:
        """Return copies of objects with another mesh than their node, such as results of *Separate* in edit mode."""
        by_key: dict[str, list[bpy.types.Object]] = {}
        for obj in self.own:
            if key := self.key(obj):
                by_key.setdefault(key, []).append(obj)
        found: set[bpy.types.Object] = set()
        for same in by_key.values():
            original = min(same, key=_strangeness)
            found.update(obj for obj in same if obj != original and self._is_other_copy(obj, original))
        return found

    def _is_other_copy(self, obj: bpy.types.Object, original: bpy.types.Object) -> bool:
        if self.key(original) in self._made_files:
            return _shows_other_shape(obj, original)
        is_own_mesh = obj.type == "MESH" and obj.data != original.data
        return self._shows_other(obj) or (is_own_mesh and not _GEOMETRY.isdisjoint(self.edits[obj.data]))

    def _shows_other(self, obj: bpy.types.Object) -> bool:
        """Return whether an object shows another mesh or collection than its node does."""
        if obj.type == "MESH":
            return has_other_mesh(obj)
        node = self.nodes.get(obj.meshferry.node_key)
        if node is None:
            return False
        shown = obj.instance_collection if obj.instance_type == "COLLECTION" else None
        file = self.files[node.content.part] if isinstance(node.content, PartUse) else None
        return (shown is None) != (file is None) or (shown is not None and not _is_same_path(shown, file or ""))

    def _report_meshes(self) -> None:
        """Report edited meshes, bones and animations, other meshes, and copies not written because of their mesh."""
        edited = [obj.name for obj in self._first_of_meshes() if self.edits[obj.data]]
        text = "{} edited here, which the file does not hold: {}"
        self.report.loss_of("edited-mesh-not-written", text, edited, "mesh", "meshes", most=_MOST_NAMES)
        applied = [obj.name for obj in self._first_of_meshes() if obj.data in self._applied]
        if applied:
            text, number = "{} with an applied transform, which stays in the file instead: {}", len(applied)
            names = listed(applied, _MOST_NAMES)
            self.report.note("applied-transform-kept", text, counted(number, "mesh", "meshes"), names)
        known = [obj for obj in self.own if self.key(obj) not in self._made_files]
        other = [obj.name for obj in known if obj.type == "MESH" and has_other_mesh(obj)]
        text = "{} with another mesh than in the file, which is not written: {}"
        self.report.loss_of("other-mesh-not-written", text, other, most=_MOST_NAMES)
        modified = [obj.name for obj in known if any(_changes_mesh(modifier) for modifier in obj.modifiers)]
        text = "{} with modifiers, which the file does not hold: {}"
        self.report.loss_of("modifier-not-written", text, modified, most=_MOST_NAMES)
        rigs = [obj for obj in known if obj.type == "ARMATURE"]
        moved = [rig.name for rig in rigs if edits_of(rig) or _has_new_bones(rig)]
        text = "{} with edited bones, which the file does not hold: {}"
        self.report.loss_of("edited-bones-not-written", text, moved, "armature", most=_MOST_NAMES)
        actions = list(dict.fromkeys(action.name for rig in rigs for action in edited_actions(rig)))
        text = "{} edited here, which the file does not hold; export it to an animation file: {}"
        self.report.loss_of("edited-animation-not-written", text, actions, "animation", most=_MOST_NAMES)

    def _added(self, there: set[bpy.types.Object]) -> dict[bpy.types.Object, str]:
        """Return new objects that show the mesh or collection of a node, each with the key of that node.

        Report other new ones.
        """
        own = set(self.own)
        shown: dict[Any, bpy.types.Object] = {}
        for obj in self.objects:
            if (what := _content_of(obj)) is not None and not self._shows_other(obj):
                shown.setdefault(what, obj)
        near = objects_in(self.collection) | self._left_out
        new = [obj for obj in there - own - self._gone if obj in near or obj.parent in own]
        new = [obj for obj in new if obj not in self._left_out or obj.type != "MESH"]
        new = [obj for obj in new if not obj.meshferry.is_model_part]
        new.sort(key=lambda obj: obj.name)
        found: dict[bpy.types.Object, str] = {}
        for obj in new:
            source = shown.get(_content_of(obj))
            if self.part.model_property and isinstance(obj.get(self.part.model_property), str):
                found[obj] = ""
            elif source is not None and self.key(source) in self.nodes and not self._is_reshaped(obj, source):
                found[obj] = self.key(source)
                self._slots_of[obj] = source.meshferry.node_slots
        copies = [obj for obj in self._left_out if obj.type == "MESH"]
        text = "{} with a new mesh, not written into the scene: {}"
        if self._adds_models:
            copies += [obj for obj in new if obj not in found and obj.type == "MESH" and obj.instance_type == "NONE"]
            text = "{} with a new mesh, which only Re-export writes, of enabled objects with faces: {}"
        self.new_meshes = sorted({*copies}, key=lambda obj: obj.name)
        names = [obj.name for obj in self.new_meshes]
        self.report.loss_of("new-mesh-not-written", text, names, most=_MOST_NAMES)
        meshes = {*self.new_meshes, *found, *(obj for obj in self.own if self.key(obj) in self._made_files)}
        rigs = {armature_of(obj) for obj in meshes} if self._adds_models else set()
        left = [obj.name for obj in new if obj not in found and obj not in self.new_meshes and obj not in rigs]
        text = (
            "{} made here not written, since the file has no node of the kind: {}; duplicate an object of the file "
            "instead, or export these to a new file with File > Export"
        )
        self.report.loss_of("new-object-not-written", text, left, most=_MOST_NAMES)
        return found

    def _is_reshaped(self, obj: bpy.types.Object, source: bpy.types.Object) -> bool:
        return self.key(source) in self._made_files and _shows_other_shape(obj, source)

    def _placed(self, obj: bpy.types.Object) -> PlacedObject:
        """Return an object as it is now, relative to its nearest ancestor that is a node."""
        kept = obj.meshferry
        key = "" if obj in self.sources else self.key(obj)
        node = self.nodes.get(key or self.sources.get(obj, ""))
        name = _name_for(obj, node)
        frame = self.frame(obj)
        matrix, above = local_matrix(frame), frame.parent
        if frame != obj and frame in self._index:
            matrix, above = np.identity(4), frame
        while above is not None and above not in self._index:
            matrix, above = local_matrix(above) @ matrix, above.parent
        if obj.data in self._applied:
            matrix = matrix @ self._applied[obj.data]
        if above is not None and above.data in self._applied:
            matrix = np.linalg.solve(self._applied[above.data], matrix)
        return PlacedObject(
            name,
            obj.name,
            key,
            channels=self._channels(obj, node),
            properties=self._properties(obj, node),
            source=self.sources.get(obj, ""),
            parent=self._index[above] if above is not None else -1,
            given_parent=None if obj in self._added_keys else kept.given_parent_key,
            matrix=matrix,
            shear=np.array(kept.shear).reshape(4, 4) if key and kept.is_property_set("shear") else None,
            is_place_kept=is_driven(frame) and obj not in self._added_keys,
            is_hidden=None if kept.has_hidden_surfaces else obj.hide_viewport,
            is_known=bool(key) and self._ledger.marks.get(obj.session_uid, {}).get("node_key") == key,
            is_likely_copy=bool(_NUMBER.search(obj.name)) and blender_data_names.name_in_file(obj) != name,
            materials=self._slots.get(obj, ()),
        )

    def _channels(self, obj: bpy.types.Object, node: PlacedNode | None) -> Channels | None:
        """Return the transform channels of an object if its file has them; report what the channels cannot store."""
        given = node.channels if node is not None else Channels()
        if given is None or (node is not None and node.is_unplaced):
            return None
        frame = obj.parent
        while frame is not None and frame not in self._index:
            frame = frame.parent
        is_own_parent = obj.parent == frame
        if node is not None and node.parent >= 0 and not self.part.nodes[node.parent].key:
            is_own_parent = obj.parent is not None and not obj.parent.meshferry.is_model_part
            frame = obj.parent if is_own_parent else frame
        channels, is_exact = read_channels(obj, given, frame, is_own_parent=is_own_parent)
        if not is_exact:
            template = "sheared, which the file cannot hold; the nearest transform is written"
            self.report.warning("sheared-object", template, item=obj.name)
        return channels

    def _properties(self, obj: bpy.types.Object, node: PlacedNode | None) -> dict[str, str]:
        """Return the current values of the properties that the file gives a node, or that make a new object a node.

        If the format stores models in properties, a deleted property counts as empty.
        """
        known = node.properties if node is not None else (self.part.model_property,)
        values = {name: obj.get(name, "" if self.part.model_property else None) for name in known}
        return {name: str(value) for name, value in values.items() if value is not None}

    def _slot_materials(self) -> dict[bpy.types.Object, tuple[SlotMaterial, ...]]:
        """Return the materials of the surfaces of each object.

        The materials of a skinned mesh are returned for its armature object.
        """
        found: dict[bpy.types.Object, tuple[SlotMaterial, ...]] = {}
        left: list[str] = []
        for obj, surfaces in self._surfaces.items():
            content = self.nodes[self.key(obj)].content
            slots = content.slots if isinstance(content, ModelUse) else ()
            by_name = sorted(range(len(slots)), key=lambda place: slots[place].name)
            pairs = zip(by_name, sorted(surfaces, key=itemgetter(0)), strict=False)
            found[obj] = tuple(SlotMaterial(place, "", identity) for place, (_, identity) in pairs if identity)
        for obj in (*self.own, *self.sources):
            if obj in self._surfaces or obj in self._added_keys:
                continue
            owner = obj if obj in self._index else obj.parent
            if owner not in self._index or obj.type != "MESH":
                continue
            if obj is not owner and owner.type != "ARMATURE":
                continue  # the object is one of several instances of a cluster
            if has_other_mesh(obj):
                continue
            places = json.loads(self._slots_of.get(obj, obj.meshferry.node_slots) or "[]")
            edits = self.edits.get(obj.data, ())
            is_other = "material assignment" in edits or len(places) != len(obj.material_slots)
            if (is_other and _has_other_materials(obj)) or _has_emptied_slot(obj):
                left.append(obj.name)
            if is_other:
                continue
            materials = [slot.material for slot in obj.material_slots]
            found[owner] = tuple(
                SlotMaterial(place, blender_data_names.name_in_file(material), material.meshferry.identity)
                for place, material in zip(places, materials, strict=True)
                if place >= 0 and material is not None
            )
        text = "{} with other material slots than the file, or empty ones, not written: {}"
        self.report.loss_of("material-slots-not-written", text, left, most=_MOST_NAMES)
        return found

    def _report_parts(self) -> None:
        """Report changes of objects that are only part of a node: an instance of a cluster, or a coarser level."""
        parts = [obj for obj in self.own if obj not in self._index and obj.parent_type != "BONE"]
        moved = [obj.name for obj in parts if obj.type != "ARMATURE" and import_marks.is_moved(obj)]
        text = "{} not written, being a part of a node or without an id in the file: {}"
        self.report.loss_of("part-not-written", text, moved, most=_MOST_NAMES)
        self._report_keyless(Counter(map(blender_data_names.name_in_file, parts)))
        below = Counter(obj.parent.meshferry.node_key for obj in parts if obj.parent in self._index)
        wrong = [
            node.name
            for node in self.part.nodes
            if node.key and node.instances is not None and below[node.key] not in (0, len(node.instances))
        ]
        text = "{} with instances that were added or removed, which is not written: {}"
        self.report.loss_of("part-not-written", text, wrong, "cluster", most=_MOST_NAMES)

    def _report_keyless(self, shown: Counter[str]) -> None:
        """Report nodes without ids that were renamed or removed, or that a removed node takes along."""
        present = {obj.meshferry.node_key for obj in self.objects}
        names: Counter[str] = Counter()
        lost: list[str] = []
        for node in self.part.nodes:
            if node.kind and not node.key and not node.owner:
                names[node.name] += 1
                above = node
                while not above.key and above.parent >= 0:
                    above = self.part.nodes[above.parent]
                if above.key and above.key not in present and names[node.name] <= shown[node.name]:
                    lost.append(node.name)
        text = "{} without an id in the file, renamed or removed here, which is not written: {}"
        self.report.loss_of("part-not-written", text, list((names - shown).elements()), "node", most=_MOST_NAMES)
        text = "{} without an id removed from the file with the node above: {}"
        self.report.loss_of("part-not-written", text, lost, "node", most=_MOST_NAMES)

    def _report_kept(self) -> None:
        """Report objects whose transforms are not written, since they are animated, constrained or on a bone."""
        has_channels = {placed.title for placed in self.placed if placed.channels is not None}
        bound = [obj.name for obj in self.objects if obj.name in has_channels and _is_bound(obj)]
        text = "{} constrained, or on bones or vertices, which the file cannot hold: {}"
        self.report.loss_of("constraint-not-written", text, bound, most=_MOST_NAMES)
        kept = [placed.title for placed in self.placed if placed.is_place_kept and placed.title not in bound]
        if kept:
            template = "{} animated, constrained or on a bone, so the place in the file stays: {}"
            self.report.note("animated-place-kept", template, counted(len(kept), "object"), listed(kept, _MOST_NAMES))

    def _report_instances(self) -> None:
        known = [obj for obj in self.objects if obj.type != "MESH" and obj not in self.sources]
        changed = [obj.name for obj in known if self._shows_other(obj)]
        text = "{} showing another collection than the file's, which is not written: {}"
        self.report.loss_of("instance-not-written", text, changed, most=_MOST_NAMES)

    def _report_materials(self) -> None:
        used = dict.fromkeys(slot.material for obj in self.own for slot in obj.material_slots if slot.material)
        report_changed_materials(used, self.report)


def report_changed_materials(materials: Iterable[bpy.types.Material], report: Report) -> None:
    """Report materials of a project that were changed in Blender."""
    changed = [material.name for material in materials if is_changed(material)]
    text = "{} of the project changed here, which is not written: {}"
    report.loss_of("project-material-not-written", text, of_kind("material", changed), "material", most=_MOST_NAMES)


def _is_bound(obj: bpy.types.Object) -> bool:
    """Return whether a constraint, or a parent bone, vertex or deformer determines an object's transform."""
    is_on_part = obj.parent is not None and obj.parent_type != "OBJECT"
    return is_on_part or any(not constraint.mute for constraint in obj.constraints)


def _content_of(obj: bpy.types.Object) -> bpy.types.ID | None:
    """Return the collection or the mesh that an object shows."""
    if obj.instance_type == "COLLECTION" and obj.instance_collection is not None:
        return obj.instance_collection
    return obj.data if obj.type == "MESH" else None


def _has_new_bones(rig: bpy.types.Object) -> bool:
    """Return whether an armature has bones that its import did not make, beside others."""
    joints = [bool(bone.meshferry.joint_name) for bone in rig.data.bones]
    return any(joints) and not all(joints)


def _strangeness(obj: bpy.types.Object) -> tuple[bool, bool]:
    """Return a sort key that puts the imported object before its copies, as far as their names show which it is."""
    return obj.name != obj.meshferry.given_name, bool(_NUMBER.search(obj.name))


def _is_same_path(collection: bpy.types.Collection, file: str) -> bool:
    path = collection.meshferry.source_path
    return bool(path == file or (path and file and Path(path).absolute() == Path(file).absolute()))


def _changes_mesh(modifier: bpy.types.Modifier) -> bool:
    """Return whether a modifier, other than the armature that an import adds, changes the displayed mesh."""
    return modifier.show_viewport and modifier.type not in {"ARMATURE", "MESH_CACHE"}


def _shows_other_shape(obj: bpy.types.Object, original: bpy.types.Object) -> bool:
    """Return whether the evaluated mesh or the materials of an object may differ from those of its original."""
    modifiers = (*obj.modifiers, *original.modifiers)
    is_other = obj.data != original.data or any(_changes_mesh(modifier) for modifier in modifiers)
    return is_other or import_marks.material_identities(obj) != import_marks.material_identities(original)


def _has_other_materials(obj: bpy.types.Object) -> bool:
    """Return whether an object has other materials than its node, if those of the node are known."""
    if not obj.meshferry.node_slots:
        return any(slot.link == "OBJECT" for slot in obj.material_slots)
    return "\n".join(import_marks.material_identities(obj)) != obj.meshferry.given_materials


def _has_emptied_slot(obj: bpy.types.Object) -> bool:
    """Return whether the user removed the material of a slot."""
    given = obj.meshferry.given_materials.split("\n")
    now = import_marks.material_identities(obj)
    return len(given) == len(now) and any(before and not after for before, after in zip(given, now, strict=True))


def _name_for(obj: bpy.types.Object, node: PlacedNode | None) -> str:
    """Return the name to write: that of the node, even for copies, unless the user renamed the object."""
    name = _NOT_IN_XML.sub("?", blender_data_names.name_in_file(obj))
    plain = _NUMBER.sub("", name)
    is_numbered = node is not None and name != plain and plain in {node.name, _NUMBER.sub("", node.name)}
    return node.name if is_numbered else name

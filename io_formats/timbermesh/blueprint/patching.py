"""Change children, colliders and attachments in the text of a blueprint; all other bytes stay.

The rules are in section 10 of the format page.

The key of a node is a JSON pointer into the blueprint with all nested blueprints expanded. The file itself overrides
values of nodes inside a nested child in the ``Modification`` of that child.
"""

import copy
import json
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ...core.errors import ExportError
from ...core.messages import Report, Text
from ...core.placement import NodeEdit, Patched
from .codec import NESTED
from .components import changed_numbers, shortest_decimal
from .format import ReadOptions
from .json_text import JsonValue, New, TextEdits, names_of, parse, pointer_of
from .tree import STATE_FIELDS, State

ROOT = "/"
"""Key of the root, which is not the pointer of any child."""
MODEL = "Model"
"""Property of a node with the path of its model."""
_SLOT = "#Slot#"
_COUNTED = re.compile(r" \(\d+\)$")
_NUMBER = re.compile(r"\.\d{3,}$")
"""Number that Blender adds to a name that another object has."""
_RADIUS = "Radius"


class _Refusal(Exception):
    """Raised for an edit that cannot be written."""

    def __init__(self, template: str, *values: object) -> None:
        super().__init__(template, *values)
        self.text = Text(template, *values)


@dataclass
class _Place:
    """Location of the values of a node in the file."""

    children: list[str]
    """Names of the child and those above it."""
    path: list[str]
    """Keys on the way from the root of the file to the child, including ``Modification`` members."""
    rest: list[str]
    """Keys below the child, if the node is not the child itself."""
    inside: int = 0
    """Number of nested blueprints among the children above."""

    @property
    def is_nested(self) -> bool:
        """Whether the child is a nested blueprint."""
        return bool(self.children) and NESTED in self.children[-1]


def patch(data: bytes, edits: Sequence[NodeEdit], reserved: Collection[str] = ()) -> Patched:
    """Return the file with edits of its nodes. Without any, the text is put together from the parts that were read.

    No added child gets a key of ``reserved``.

    Raises
    ------
    ExportError
        Some edits are not possible; all of these are named. Or the result is not the file with these edits alone.
    FormatError
        The file is damaged.
    """
    if not edits:
        return Patched(_rebuilt(data, parse(data)), {})
    patcher = _Patcher(data, edits, reserved)
    result = patcher.run()
    refused = [message for message in patcher.report.messages if message.is_loss]
    if refused:
        raise ExportError.of(*refused)
    if _content(parse(result).plain()) != _content(patcher.expected):
        raise ExportError("The changed file would not have the numbers that it should; nothing was written")
    return Patched(result, patcher.keys, patcher.report.messages, patcher.removed_texts)


def refusal(path: Path, options: ReadOptions) -> Text | None:
    """Return the reason why a file is never changed, or None.

    Files of the game, and of mods that Steam manages, are never changed.
    """
    place = path.absolute()
    parts = [part.casefold() for part in place.parts]
    if "timberborn_data" in parts or _is_below(place, options.game):
        return Text("The file belongs to the game; choose another path for a copy with the changes")
    if "workshop" in parts and "steamapps" in parts:
        return Text("The file belongs to a mod of the Steam Workshop; choose another path for a copy with the changes")
    return None


def _is_below(path: Path, folder: str) -> bool:
    return bool(folder) and path.is_relative_to(Path(folder).absolute())


class _Patcher:
    """One patch. Added children come first; the result is parsed again, and the other edits also change them."""

    def __init__(self, data: bytes, edits: Sequence[NodeEdit], reserved: Collection[str]) -> None:
        self.reserved = reserved
        self.report = Report()
        self.added = {edit.key: edit for edit in edits if edit.is_added}
        self.restored = sorted((edit for edit in edits if edit.content), key=lambda edit: len(edit.key))
        self.edits = [edit for edit in edits if not (edit.is_added or edit.content)]
        self.removed = {edit.key for edit in self.edits if edit.is_removed}
        self.original = self.root = parse(data)
        self.first = TextEdits(data)
        self.text = self.first
        self.expected = self.root.plain()
        self.keys: dict[str, str] = {}
        self.removed_texts: dict[str, str] = {}
        self.states = self._states()
        self.named = {
            text for key, member in self.root.members.items() if key != "Children" for text in _texts(member.value)
        }

    def run(self) -> bytes:
        """Return the new bytes, and report edits that are refused."""
        for edit in self.restored:
            self._attempt(edit, self._restore, edit)
        waiting = dict(self.added)
        while waiting:
            ready = [edit for edit in waiting.values() if edit.parent not in waiting]
            if not ready:
                break
            self._add(ready)
            for edit in ready:
                del waiting[edit.key]
        for edit in self.edits:
            self._attempt(edit, self._change, edit, edit.key)
        for added, key in self.keys.items():
            self._attempt(self.added[added], self._change, self.added[added], key)
        self._remove()
        return self.text.result()

    def _attempt(self, edit: NodeEdit, action: Any, *arguments: Any) -> Any:
        """Call an action and return its result. If it refuses the edit, report that and return None."""
        try:
            return action(*arguments)
        except _Refusal as refusal:
            self.report.loss("edit-refused", refusal.text.template, *refusal.text.values, item=edit.title)
            return None

    # -- locations ----------------------------------------------------------------------------

    def _states(self) -> dict[str, State]:
        """Return the building state of each child that the root names as a model, preferably the unfinished one."""
        found = {}
        for spec, member, state in sorted(STATE_FIELDS, key=lambda row: row[2] is State.UNFINISHED):
            value = self.root.find(spec, member)
            if value is not None and isinstance(value.value, str) and value.value:
                found[value.value] = state
        return found

    @staticmethod
    def _place(key: str) -> _Place:
        """Split a node's key into the names of children, its path in the file, and the rest below these."""
        names = names_of(key)
        place = _Place([], [], names)
        while len(place.rest) > 1 and place.rest[0] == "Children":
            if place.is_nested:
                place.path.append("Modification")
                place.inside += 1
            place.children.append(place.rest[1])
            place.path += place.rest[:2]
            place.rest = place.rest[2:]
        return place

    def _value(self, path: Sequence[str]) -> JsonValue:
        found = self.root.find(*path)
        if found is None:
            raise _Refusal("the file does not have it any more; reload it first")
        return found

    def _refuse_inside(self, place: _Place) -> None:
        """Refuse nodes inside a nested blueprint."""
        if place.inside or (place.is_nested and place.rest):
            names = place.path
            outer = next(number for number, name in enumerate(names) if NESTED in name and number % 2) + 1
            value = self.root.find(*names[:outer], "BlueprintPath")
            raise _Refusal("belongs to {}; open that file", value.value if value is not None else names[outer - 1])

    def _state_of(self, children: Sequence[str]) -> State | None:
        """Return the state that a child with these names above it is shown in; None for all."""
        for name in children:
            state = self.states.get(name) or self.states.get(name.replace(NESTED, ""))
            if state:
                return state
        return None

    def _refuse_outside(self, children: Sequence[str]) -> None:
        """Refuse to add or remove children below one that is not of a finished, uncovered or underground model."""
        state = self._state_of(children)
        if state is State.UNFINISHED:
            raise _Refusal("the unfinished model has as many stages as the building; nothing can be added or removed")
        if not state:
            raise _Refusal("only parts of the finished, uncovered or underground model can be added or removed")

    # -- added children -----------------------------------------------------------------------

    def _add(self, edits: Sequence[NodeEdit]) -> None:
        """Insert children whose parents are in the file."""
        new: dict[tuple[str, ...], dict[str, New]] = {}
        for edit in edits:
            if not self._is_part_of_copy(edit):
                self._attempt(edit, self._add_child, edit, new)
        for path, members in new.items():
            self._insert_children(self._value(path), members)
        if new:
            self._parse_again()

    def _parse_again(self) -> None:
        data = self.text.result()
        self.root, self.text = parse(data), TextEdits(data)

    def _restore(self, edit: NodeEdit) -> None:
        """Put a removed child back below its parent, unless it is there as a part of another one."""
        *path, name = self._place(edit.key).path
        if self.root.find(*path, name) is None:
            holder, content = self._value(path[:-1]), edit.content.encode()
            text = re.sub(rb"(?<=\n)", self.text.child_indent(holder), content)
            self._insert_children(holder, {name: text})
            _at(self.expected, path[:-1]).setdefault("Children", {})[name] = parse(content).plain()
            self._parse_again()

    def _is_part_of_copy(self, edit: NodeEdit) -> bool:
        """Return whether a node was copied with the child above it, and note its key."""
        above = self.added.get(edit.parent or "")
        if above is None or above.key not in self.keys or not above.source:
            return False
        if not edit.source.startswith(above.source + "/"):
            return False
        key = self.keys[above.key] + edit.source[len(above.source) :]
        if key in self.keys.values():
            return False
        self.keys[edit.key] = key
        return True

    def _add_child(self, edit: NodeEdit, new: dict[tuple[str, ...], dict[str, New]]) -> None:
        """Put the JSON of a new child into ``new``, by its parent's path: a copy, or a child with only a model."""
        parent = self.keys.get(edit.parent or "", edit.parent or "")
        if edit.parent in self.added and edit.parent not in self.keys:
            raise _Refusal("its parent is refused")
        place = self._place(parent)
        if place.rest:
            raise _Refusal("a part can only be added below a child of the blueprint")
        self._refuse_inside(place)
        if place.is_nested:
            raise _Refusal("its parent is another blueprint; open that file")
        self._refuse_outside(place.children)
        holder = self._value(place.path)
        if (children := holder.find("Children")) is not None and not isinstance(children.value, dict):
            raise _Refusal("the children of its parent are not an object in the file")
        members = new.setdefault(tuple(place.path), {})
        taken = {names_of(key)[-1] for key in self.reserved if key.startswith(parent + "/Children/")}
        name = self._free_name(edit, holder, {*members, *taken})
        expected = _at(self.expected, place.path).setdefault("Children", {})
        if edit.source:
            source = self._place(edit.source)
            if source.rest or not source.children:
                raise _Refusal("only children can be added, no colliders and no points")
            self._refuse_inside(source)
            value = self.original.find(*source.path)
            if value is None:
                raise _Refusal("the file does not have it any more; reload it first")
            members[name] = self.first.moved(value, self.text.child_indent(holder))
            expected[name] = value.plain()
        else:
            model = edit.properties.get(MODEL, "")
            if not model:
                raise _Refusal("the path of its model is empty")
            members[name] = {"TimbermeshSpec": {MODEL: model}}
            expected[name] = {"TimbermeshSpec": {MODEL: model}}
        self.keys[edit.key] = parent + pointer_of(["Children", name])

    def _free_name(self, edit: NodeEdit, holder: JsonValue, members: Collection[str]) -> str:
        """Return the wanted name for a new child, numbered if another child, ``members`` or the root has that name."""
        children = holder.find("Children")
        taken = {*(children.members if children is not None else ()), *members, *self.named}
        taken |= {name.replace(NESTED, "") for name in taken}
        wanted = _NUMBER.sub("", (edit.name or "").replace(NESTED, "")) or "Part"
        name, number = wanted, 0
        while name in taken:
            number += 1
            name = f"{_COUNTED.sub('', wanted)} ({number})"
        return name + NESTED if NESTED in edit.source.rpartition("/")[2] else name

    def _insert_children(self, holder: JsonValue, new: Mapping[str, New]) -> None:
        children = holder.find("Children")
        if children is None:
            self.text.insert(holder, {"Children": new}, _last(holder))
        else:
            self.text.insert(children, new, _last(children))

    # -- changed nodes ------------------------------------------------------------------------

    def _change(self, edit: NodeEdit, key: str) -> None:
        """Write the changes of one node, which has this key in the file."""
        place = self._place(key) if key != ROOT else _Place([], [], [])
        if edit.is_removed or (place.rest and self._is_below_removed(key)):
            return
        if edit.parent is not None and not edit.is_added:
            raise _Refusal("has another parent now; the file keeps parents")
        if edit.channels is None and edit.matrix is None and not edit.properties:
            return
        self._refuse_inside_unless_placed(place)
        if not place.rest:
            self._merge(place.path, self._child(place, edit))
        elif place.rest[0] == "CollidersSpec" and len(place.rest) == 3:
            self._merge([*place.path, *place.rest], self._collider(place, edit))
        elif place.rest[0] == "TemplateAttachmentsSpec" and not place.children and not edit.properties:
            self._merge(place.rest, self._numbers(edit))
        else:
            raise _Refusal("the footprint, the entrance and other points cannot be changed here")

    def _is_below_removed(self, key: str) -> bool:
        return any(key.startswith(removed + "/") for removed in self.removed)

    def _refuse_inside_unless_placed(self, place: _Place) -> None:
        """Refuse edits of nodes inside a nested blueprint, unless the file itself sets their transforms."""
        if place.inside and not place.rest:
            spec = [*place.path, *(["Modification"] if place.is_nested else []), "TransformSpec"]
            if self.root.find(*spec) is not None:
                return
        self._refuse_inside(place)

    def _child(self, place: _Place, edit: NodeEdit) -> dict[str, Any]:
        """Return the members that an edit sets in a child."""
        found: dict[str, Any] = {}
        if not place.children and edit.channels is not None:
            raise _Refusal("the transform of the root belongs to the file that nests the blueprint")
        if edit.properties:
            if [*edit.properties] != [MODEL] or not edit.properties[MODEL]:
                raise _Refusal("only the path of the model can be changed, and not to nothing")
            if place.is_nested or place.inside:
                self._refuse_inside(replace(place, rest=[MODEL]))
            found["TimbermeshSpec"] = {MODEL: edit.properties[MODEL]}
        if edit.channels is None:
            return found
        value = self._value(place.path)
        changed = self._numbers(edit)
        if (
            "Y" in changed.get("Position", {})
            and self.states.get(place.children[-1].replace(NESTED, "")) is State.UNDERGROUND
        ):
            template = "the game sets the height of the underground model itself, so the new one has no effect"
            self.report.warning("underground-height", template, item=edit.title)
        if not changed:
            return found
        if place.is_nested:
            value = value.find("Modification") or value
        if any(key.casefold() == "transformspec#delete" for key in value.members):
            raise _Refusal("the file deletes its TransformSpec, so that its place cannot be changed")
        if place.is_nested:
            return {**found, "Modification": {"TransformSpec": changed}}
        is_placed = "TransformSpec" in value.members
        return {**found, "TransformSpec": changed if is_placed else changed_numbers(edit.channels)}

    def _numbers(self, edit: NodeEdit) -> dict[str, Any]:
        """Return the changed numbers of a transform, by field and axis; report a mirrored one."""
        if edit.channels is None:
            return {}
        numbers = changed_numbers(edit.channels, edit.before)
        if not all(map(math.isfinite, [*edit.channels.location, *edit.channels.rotation, *edit.channels.scale])):
            raise _Refusal("has NaN or infinite numbers in the transform")
        if any(number < 0.0 for number in numbers.get("Scale", {}).values()):
            template = "has a negative scale, which no blueprint of the game has; faces may be inside out"
            self.report.warning("negative-scale", template, item=edit.title)
        return numbers

    def _collider(self, place: _Place, edit: NodeEdit) -> dict[str, Any]:
        """Return the members that an edit sets in a collider."""
        numbers = self._numbers(edit)
        if edit.channels is None:
            raise _Refusal("only the place and the size of a collider can be changed")
        if any(edit.channels.rotation) or "Rotation" in numbers:
            raise _Refusal("a collider cannot be turned; turn the child that it is on")
        found: dict[str, Any] = {"Center": numbers["Position"]} if "Position" in numbers else {}
        if "Scale" not in numbers:
            return found
        if place.rest[1] == "BoxColliders":
            return {**found, "Size": numbers["Scale"]}
        radius = edit.channels.scale[0]
        if {*edit.channels.scale} != {radius} or radius <= 0.0:
            raise _Refusal("a sphere or capsule can only be scaled by the same positive factor in all directions")
        found[_RADIUS] = shortest_decimal(radius)
        value = self._value([*place.path, *place.rest])
        old, height = value.find(_RADIUS), value.find("Height")
        if place.rest[1] == "CapsuleColliders" and old is not None and height is not None:
            found["Height"] = shortest_decimal(_number(height) * (radius / _number(old) if _number(old) else 1.0))
        return found

    # -- text ---------------------------------------------------------------------------------

    def _merge(self, path: Sequence[str], new: Mapping[str, Any]) -> None:
        """Write numbers and texts into the value at a path; members that are missing are inserted."""
        self._merge_into(self._value(path), _at(self.expected, path), new)

    def _merge_into(self, value: JsonValue, expected: Any, new: Mapping[str, Any]) -> None:
        """Set the values ``new`` in an object of the file; ``expected`` gets the result for verification."""
        if not isinstance(value.value, dict):
            raise _Refusal("its values in the file are not an object")
        missing = {key: inner for key, inner in new.items() if key not in value.members and inner != {}}
        for key, inner in new.items():
            if key in missing:
                expected[key] = copy.deepcopy(inner)
            elif isinstance(inner, dict):
                if inner:
                    self._merge_into(value.members[key].value, expected[key], inner)
            elif not _is_equal(value.members[key].value, inner):
                if isinstance(value.members[key].value.value, dict | list):
                    raise _Refusal("its values in the file are not numbers")
                self.text.replace(value.members[key].value, inner)
                expected[key] = inner
        if missing:
            is_first = "TransformSpec" in missing
            after = "BlueprintPath" if "BlueprintPath" in value.members else _last(value)
            self.text.insert(value, missing, None if is_first else after)

    def _remove(self) -> None:
        """Remove children with all below them."""
        found: dict[tuple[str, ...], list[str]] = {}
        for edit in self.edits:
            if edit.is_removed and not self._is_below_removed(edit.key):
                self._attempt(edit, self._remove_child, edit, found)
        for path, names in found.items():
            self.text.remove(self._value(path), names)

    def _remove_child(self, edit: NodeEdit, found: dict[tuple[str, ...], list[str]]) -> None:
        """Collect the name of a removed child in ``found``, by the path of its parent."""
        place = self._place(edit.key)
        if place.rest or not place.children:
            raise _Refusal("only children can be removed, no colliders and no points")
        self._refuse_inside(place)
        self._refuse_outside(place.children[:-1])
        value = self._value(place.path)
        names = [place.children[-1], *_names_below(value)]
        named = [name for name in names if self._is_named(name)]
        if named:
            raise _Refusal("cannot be removed, since the root of the blueprint names '{}'", named[0])
        *path, name = place.path
        self.removed_texts[edit.key] = self.text.moved(value, b"").decode()
        found.setdefault(tuple(path), []).append(name)
        del _at(self.expected, path)[name]

    def _is_named(self, name: str) -> bool:
        """Return whether a member of the root other than the children has this name, or keyword of a slot."""
        plain = name.replace(NESTED, "")
        is_slot = name.startswith(_SLOT) and any(text and name.startswith(_SLOT + text) for text in self.named)
        return is_slot or name in self.named or plain in self.named


def _last(value: JsonValue) -> str | None:
    """Return the key of the last member of an object; None if it is empty."""
    members = value.members
    return max(members, key=lambda key: members[key].start) if members else None


def _at(plain: Any, path: Sequence[str]) -> Any:
    """Return the value at a path of keys and indices."""
    for name in path:
        plain = plain[int(name)] if isinstance(plain, list) else plain[name]
    return plain


def _texts(value: JsonValue) -> Iterator[str]:
    """Yield all texts in a value."""
    if isinstance(value.value, str):
        yield value.value
    for inner in (*value.items, *(member.value for member in value.members.values())):
        yield from _texts(inner)


def _names_below(value: JsonValue) -> Iterator[str]:
    """Yield the names of all children below a child."""
    children = value.find("Children")
    for name, member in (children.members if children is not None else {}).items():
        yield name
        yield from _names_below(member.value)


def _number(value: JsonValue) -> float:
    return value.value if isinstance(value.value, float) else 0.0


def _is_equal(value: JsonValue, new: float | str) -> bool:
    """Return whether a value is read as this text or, in single precision, this number."""
    if isinstance(value.value, float) and isinstance(new, float):
        with np.errstate(over="ignore"):
            return bool(np.float32(value.value) == np.float32(new))
    return value.value == new


def _content(plain: Any) -> str:
    """Return a text that is equal for equal content, NaN included."""
    return json.dumps(plain, sort_keys=True)


def _rebuilt(data: bytes, value: JsonValue) -> bytes:
    """Return the text of a file, joined from the texts of its values and the text between them.

    It differs from the file if the parser took a wrong position, which would also misplace edits.
    """
    parts: list[bytes] = []
    position = 0

    def add(value: JsonValue) -> None:
        nonlocal position
        inner = sorted((*value.items, *(member.value for member in value.members.values())), key=lambda one: one.start)
        for one in inner:
            add(one)
        if not inner:
            parts.extend((data[position : value.start], data[value.start : value.end]))
            position = value.end

    add(value)
    return b"".join([*parts, data[position:]])

"""The # before the names of objects that become nodes of their own."""

from __future__ import annotations

from typing import Any

MARK = "#"
"""Start of the name of an object that becomes a node of its own; others may be merged into their parents."""


def set_own_node(obj: Any, is_own: bool) -> None:
    """Add # before an object's name or remove it, both in its Blender name and in its file name."""
    kept = obj.meshferry.given_name == obj.name and obj.meshferry.source_name
    obj.name = _marked(obj.name, is_own)
    if kept:
        obj.meshferry.source_name = _marked(kept, is_own)
        obj.meshferry.given_name = obj.name


def _marked(name: str, is_own: bool) -> str:
    plain = name.lstrip(MARK)
    return MARK + plain if is_own else plain or name

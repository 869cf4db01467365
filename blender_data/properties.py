"""Registered properties of data blocks in which imported data is stored, visible to the user.

Available as ``.meshferry`` of objects, collections, actions, materials, images, meshes, armatures and bones. Sliders
are properties of objects themselves.
"""

from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any

import bpy
from bpy.props import PointerProperty

from ..io_formats.core.scene import Clip, Node, Scene, Skeleton, Skin, Surface
from . import names
from .property_groups import data_properties, object_properties, slider_properties, stored_paths
from .property_groups.translation_context import add_context


@dataclass(frozen=True)
class StoredField:
    """How a property group stores one field of a scene's dataclass."""

    prop: str
    """Name of the property."""
    flag: str = ""
    """Name of the boolean property that tells whether there is a value. If empty, the value exists if the property is
    set."""
    none: object = None
    """Value of the property that represents None."""


def _alike(*names: str) -> dict[str, StoredField]:
    """Return a mapping of fields to properties with the same names."""
    return {name: StoredField(name) for name in names}


FIELDS: Mapping[type, Mapping[str, StoredField]] = {
    Scene: {"format": StoredField("file_format"), **_alike("source_name")},
    Node: _alike("is_root", "lod"),
    Skeleton: {
        "guid": StoredField("skeleton_guid"),
        "path": StoredField("skeleton_path"),
        "file_data": StoredField("skeleton_data"),
    },
    Skin: {
        "pelvis_offset": StoredField("pelvis_offset", flag="has_pelvis_offset"),
        **_alike("lock_scale", "is_aligned"),
    },
    Surface: {
        "order": StoredField("order", none=-1),
        "has_weights": StoredField("has_weights", none=False),
        "position_domain": StoredField("position_domain", flag="has_domains"),
        "uv_domain": StoredField("uv_domain", flag="has_domains"),
        **_alike("has_colors", "base_name", "lightmap_channel", "lightmap_resolution"),
    },
    Clip: {"name": StoredField("clip_name"), **_alike("fps", "frame_count", "root_motion")},
}
"""For each dataclass of a scene: how properties store its fields, by the names of the fields."""


def store_fields(group: bpy.types.PropertyGroup, value: Any) -> None:
    """Store the fields of a dataclass in its property group.

    None, and enum values that the property does not have, are skipped.
    """
    for field, stored in FIELDS[type(value)].items():
        content = getattr(value, field)
        if content is None:
            continue
        description = group.bl_rna.properties[stored.prop]
        if description.type == "ENUM":
            content = str(content)
            if content not in description.enum_items:
                continue
        setattr(group, stored.prop, names.readable(content) if isinstance(content, str) else content)
        if stored.flag:
            setattr(group, stored.flag, True)


def stored_fields(group: bpy.types.PropertyGroup, cls: type) -> dict[str, Any]:
    """Return the fields of a dataclass that its property group stores, by name; enum values as integers."""
    found: dict[str, Any] = {}
    for field, stored in FIELDS[cls].items():
        has_value = getattr(group, stored.flag) if stored.flag else group.is_property_set(stored.prop)
        value = getattr(group, stored.prop)
        if not has_value or value == stored.none:
            continue
        description = group.bl_rna.properties[stored.prop]
        if description.type == "ENUM":
            value = int(value)
        found[field] = tuple(value) if getattr(description, "is_array", False) else value
    return found


def copy_group(
    source: Any, target: Any, skipped: Container[str] = (), instead: Mapping[Any, Any] | None = None
) -> None:
    """Copy all properties of a property group, except the skipped ones, to another group of the same type.

    Pointers to the keys of ``instead`` are replaced by pointers to its values.
    """
    for prop in source.bl_rna.properties:
        name = prop.identifier
        if name == "rna_type" or name in skipped:
            continue
        value = getattr(source, name)
        if prop.type == "COLLECTION":
            entries = getattr(target, name)
            entries.clear()
            for entry in value:
                copy_group(entry, entries.add(), (), instead)
        elif isinstance(value, bpy.types.PropertyGroup):
            copy_group(value, getattr(target, name), (), instead)
        elif isinstance(value, bpy.types.ID):
            setattr(target, name, (instead or {}).get(value, value))
        elif source.is_property_set(name):
            setattr(target, name, value)
        else:
            target.property_unset(name)


CLASSES = tuple(
    dict.fromkeys(
        cls
        for module in (object_properties, data_properties)
        for cls in vars(module).values()
        if isinstance(cls, type) and issubclass(cls, bpy.types.PropertyGroup)
    )
)
"""All property groups. A group that others contain comes before these, since it must be registered first."""

OWNERS = (
    (bpy.types.Object, object_properties.MeshferryObject),
    (bpy.types.Material, data_properties.MeshferryMaterial),
    (bpy.types.Image, data_properties.MeshferryImage),
    (bpy.types.Action, data_properties.MeshferryAction),
    (bpy.types.Collection, data_properties.MeshferryCollection),
    (bpy.types.Mesh, data_properties.MeshferryMesh),
    (bpy.types.Bone, object_properties.MeshferryBone),
    (bpy.types.Armature, object_properties.MeshferryArmature),
)


def register():
    """Register the groups and add them to the data blocks as ``.meshferry``."""
    for cls in CLASSES:
        add_context(cls)
        bpy.utils.register_class(cls)
    for owner, group in OWNERS:
        owner.meshferry = PointerProperty(
            type=group, name="Meshferry", description="What Meshferry keeps about this data block"
        )
    slider_properties.register()
    stored_paths.register()


def unregister():
    """Remove the properties and unregister the groups, in reverse order."""
    stored_paths.unregister()
    slider_properties.unregister()
    for owner, _group in reversed(OWNERS):
        del owner.meshferry
    for cls in reversed(CLASSES):
        bpy.utils.unregister_class(cls)

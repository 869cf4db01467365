"""The one table of fields of a scene and the registered properties that store them."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

pytestmark = pytest.mark.needs_bpy


def groups() -> dict[str, Any]:
    from meshferry.blender_data.property_groups import data_properties, object_properties

    return {
        "Scene": data_properties.MeshferryCollection,
        "Node": object_properties.MeshferryObject,
        "Skeleton": object_properties.MeshferryObject,
        "Skin": object_properties.MeshferrySkin,
        "Surface": object_properties.MeshferrySurface,
        "Clip": data_properties.MeshferryAction,
    }


def test_the_table_names_fields_and_registered_properties() -> None:
    from meshferry.blender_data.properties import FIELDS

    assert {cls.__name__ for cls in FIELDS} == set(groups())
    for cls, table in FIELDS.items():
        fields = {field.name for field in dataclasses.fields(cls)}
        registered = groups()[cls.__name__].bl_rna.properties.keys()
        assert table.keys() <= fields, cls
        for stored in table.values():
            assert {stored.prop, stored.flag or stored.prop} <= set(registered), (cls, stored)


def test_a_surface_comes_back_field_by_field(clean_blender: Any) -> None:
    from meshferry.blender_data.properties import store_fields, stored_fields
    from meshferry.io_formats.core.scene import Surface

    entries = clean_blender.data.objects.new("thing", None).meshferry.surfaces
    domains: Any = {"position_domain": (0.0, 0.25, 0.5, 1.0, 2.0, 4.0), "uv_domain": (-1.0, 0.0, 1.0, 2.0)}
    whole: Any = {"order": 3, "has_colors": False, "has_weights": True, "base_name": "rest", **domains}
    whole |= {"lightmap_channel": 0, "lightmap_resolution": 5}
    entry = entries.add()
    store_fields(entry, Surface("all", **whole))
    assert (entry.lightmap_resolution, entry.has_domains) == ("5", True)
    assert stored_fields(entry, Surface) == whole
    entry.has_domains = False
    assert not stored_fields(entry, Surface).keys() & domains.keys(), "the user switched the ranges off"
    plain, odd = entries.add(), entries.add()
    store_fields(plain, Surface("none"))
    assert Surface("none", **stored_fields(plain, Surface)) == Surface("none")
    assert not plain.has_domains and plain.order == -1
    store_fields(odd, Surface("odd", lightmap_resolution=200, base_name="\udcff"))
    assert stored_fields(odd, Surface) == {"has_colors": True, "base_name": "?"}

"""The Second Life formats, which share models, skeleton, costs and rules."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..core.capabilities import ANY_NUMBER, Capabilities
from ..core.format import Family, FileFormat, Reading, Sniffer, Writing
from ..passes.lod_names import FILE_SUFFIXES
from .animation import options as animation_options
from .options import COLLADA_IMPORT_OPTIONS, EXPORT_OPTIONS, IMPORT_OPTIONS, UPLOAD_OPTIONS

if TYPE_CHECKING:
    from .animation.document import SecondLifeAnimation
    from .bundle.document import Bundle
    from .collada.document import Collada
    from .mesh.document import Asset
    from .motion_text.document import Bvh
    from .request.document import UploadRequest
    from .upload_set.document import UploadSet


def _knows_joint(name: str) -> bool:
    from .avatar import skeleton_table

    return skeleton_table.canonical(name) is not None


_CAPABILITIES = Capabilities(
    uv_layers=1,
    normals=True,
    splits_vertices=True,
    materials=True,
    skeletons=True,
    influences=4,
    levels_of_detail=True,
    surfaces=True,
    physics=True,
    lod_models=True,
    knows_joint=_knows_joint,
)


def _mesh_sniffing() -> Sniffer:
    from .mesh import sniffing

    return sniffing


def _mesh_reading() -> Reading[Asset]:
    from .mesh import facts, reader, scene_mapping

    return Reading(reader, scene_mapping, facts)


def _mesh_writing() -> Writing[Asset]:
    from .mesh import checks, scene_mapping, writer

    return Writing(writer, scene_mapping, checks, checks)


SECOND_LIFE_MESH = FileFormat(
    name="second_life_mesh",
    label="Second Life Mesh",
    extensions=(".llmesh", ".mesh"),
    capabilities=_CAPABILITIES,
    only_read=(".mesh",),
    writing=_mesh_writing,
    sniffing=_mesh_sniffing,
    reading=_mesh_reading,
    import_options=IMPORT_OPTIONS,
    export_options=EXPORT_OPTIONS,
)


def _bundle_sniffing() -> Sniffer:
    from .bundle import sniffing

    return sniffing


def _bundle_reading() -> Reading[Bundle]:
    from .bundle import facts, reader, scene_mapping

    return Reading(reader, scene_mapping, facts)


def _bundle_writing() -> Writing[Bundle]:
    from .bundle import checks, scene_mapping, writer

    return Writing(writer, scene_mapping, checks, checks, writer)


SECOND_LIFE_BUNDLE = FileFormat(
    name="second_life_bundle",
    label="Second Life Model Bundle",
    extensions=(".slm",),
    capabilities=_CAPABILITIES,
    is_set=True,
    writing=_bundle_writing,
    sniffing=_bundle_sniffing,
    reading=_bundle_reading,
    import_options=IMPORT_OPTIONS,
    export_options=EXPORT_OPTIONS,
)


def _collada_sniffing() -> Sniffer:
    from .collada import sniffing

    return sniffing


def _collada_reading() -> Reading[Collada]:
    from .collada import checks, facts, partners, reader, scene_mapping

    return Reading(reader, scene_mapping, facts, checks=checks, partners=partners)


SECOND_LIFE_COLLADA = FileFormat(
    name="second_life_collada",
    label="Collada",
    extensions=(".dae",),
    capabilities=replace(
        _CAPABILITIES, uv_layers=8, color_layers=8, splits_vertices=False, influences=ANY_NUMBER, node_hierarchy=True
    ),
    sniffing=_collada_sniffing,
    reading=_collada_reading,
    import_options=COLLADA_IMPORT_OPTIONS,
    rewritten_as="second_life_upload",
    partner_suffixes=FILE_SUFFIXES,
)


def _upload_writing() -> Writing[UploadSet]:
    from .upload_set import checks, scene_mapping, writer

    return Writing(writer, scene_mapping, checks, checks, writer)


SECOND_LIFE_UPLOAD = FileFormat(
    name="second_life_upload",
    label="Second Life Upload Set",
    extensions=(".dae",),
    capabilities=replace(_CAPABILITIES, gltf_materials=True),
    is_set=True,
    writing=_upload_writing,
    export_options=UPLOAD_OPTIONS,
)


def _request_writing() -> Writing[UploadRequest]:
    from .request import checks, scene_mapping, writer

    return Writing(writer, scene_mapping, checks, checks, writer)


SECOND_LIFE_REQUEST = FileFormat(
    name="second_life_request",
    label="Second Life Upload Request",
    extensions=(".llsd",),
    capabilities=_CAPABILITIES,
    is_set=True,
    writing=_request_writing,
    export_options=EXPORT_OPTIONS,
)


def _animation_sniffing() -> Sniffer:
    from .animation import sniffing

    return sniffing


def _animation_reading() -> Reading[SecondLifeAnimation]:
    from .animation import facts, reader, scene_mapping

    return Reading(reader, scene_mapping, facts)


def _animation_writing() -> Writing[SecondLifeAnimation]:
    from .animation import checks, scene_mapping, writer

    return Writing(writer, scene_mapping, checks)


_ANIMATION = Capabilities(
    meshes=False,
    skeletons=True,
    joint_clips=True,
    keyed_clips=True,
    longest_clip=animation_options.LONGEST,
    knows_joint=_knows_joint,
)
SECOND_LIFE_ANIMATION = FileFormat(
    name="second_life_animation",
    label="Second Life Animation",
    extensions=(".anim",),
    capabilities=_ANIMATION,
    writing=_animation_writing,
    sniffing=_animation_sniffing,
    reading=_animation_reading,
    export_options=animation_options.EXPORT_OPTIONS,
)


def _bvh_sniffing() -> Sniffer:
    from .motion_text import sniffing

    return sniffing


def _bvh_reading() -> Reading[Bvh]:
    from .motion_text import facts, reader, scene_mapping

    return Reading(reader, scene_mapping, facts)


def _bvh_writing() -> Writing[Bvh]:
    from .motion_text import checks, scene_mapping, writer

    return Writing(writer, scene_mapping, checks)


SECOND_LIFE_BVH = FileFormat(
    name="second_life_bvh",
    label="Second Life BVH",
    extensions=(".bvh",),
    capabilities=_ANIMATION,
    ambiguous=(".bvh",),
    is_dropped=False,
    writing=_bvh_writing,
    sniffing=_bvh_sniffing,
    reading=_bvh_reading,
)

FORMATS = (
    SECOND_LIFE_MESH,
    SECOND_LIFE_BUNDLE,
    SECOND_LIFE_UPLOAD,
    SECOND_LIFE_COLLADA,
    SECOND_LIFE_REQUEST,
    SECOND_LIFE_ANIMATION,
    SECOND_LIFE_BVH,
)
FAMILY = Family("second_life", "Second Life", FORMATS, "second_life.md")

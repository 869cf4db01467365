"""Second Life Upload Set: names, capabilities and options."""

from dataclasses import replace

from ...core.format import FileFormat, modules_of
from ...core.options import option
from ..options import _CAPABILITIES, ModelWriteOptions


class WriteOptions(ModelWriteOptions):
    """The options for writing upload sets."""

    use_textures: bool = option(
        "Copy Textures",
        "Copy the textures of the materials beside the files; packed ones are saved",
        default=True,
        section="File",
    )
    use_keep_level_size: bool = option(
        "Keep Size of Levels",
        "Lower levels that are smaller than the highest get small triangles where they end too early, "
        "because the viewer would stretch them to the size of the highest",
        default=True,
        section="Levels of Detail",
    )


SECOND_LIFE_UPLOAD = FileFormat(
    name="second_life_upload",
    label="Second Life Upload Set",
    extensions=(".dae",),
    capabilities=replace(_CAPABILITIES, gltf_materials=True, bakes_materials=True),
    modules=modules_of(__package__),
    is_read=False,
    is_set=True,
    export_options=WriteOptions,
)

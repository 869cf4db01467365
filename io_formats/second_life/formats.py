"""The Second Life formats, which share models, skeleton, costs and rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.capabilities import Capabilities
from ..core.format import Family, FileFormat, modules_of
from .animation.format import SECOND_LIFE_ANIMATION
from .archive import options as archive_options
from .asset.format import SECOND_LIFE_MESH
from .bundle.format import SECOND_LIFE_BUNDLE
from .bvh.format import SECOND_LIFE_BVH
from .collada.format import SECOND_LIFE_COLLADA
from .options import VIEWER_FOLDER
from .request.format import SECOND_LIFE_REQUEST
from .shape_file.format import SECOND_LIFE_SHAPE
from .upload_set.format import SECOND_LIFE_UPLOAD

if TYPE_CHECKING:
    from ..core.body_shapes import BodyShapes


OPENSIM_ARCHIVE = FileFormat(
    name="opensim_archive",
    label="OpenSim Archive",
    extensions=(".oar", ".iar"),
    capabilities=Capabilities(
        uv_layers=1,
        normals=True,
        splits_vertices=True,
        materials=True,
        project_textures=True,
        node_hierarchy=True,
        placement=True,
    ),
    modules=modules_of(f"{__package__}.archive"),
    reads_paths=True,
    is_written=False,
    import_options=archive_options.IMPORT_OPTIONS,
)

FORMATS = (
    SECOND_LIFE_MESH,
    SECOND_LIFE_BUNDLE,
    SECOND_LIFE_UPLOAD,
    SECOND_LIFE_COLLADA,
    SECOND_LIFE_REQUEST,
    SECOND_LIFE_ANIMATION,
    SECOND_LIFE_BVH,
    SECOND_LIFE_SHAPE,
    OPENSIM_ARCHIVE,
)


def _body_shapes() -> BodyShapes:
    from .avatar import armature_sliders

    return armature_sliders


FAMILY = Family(
    "second_life",
    "Second Life",
    FORMATS,
    "second_life.md",
    folders=(VIEWER_FOLDER,),
    body_shapes=_body_shapes,
)

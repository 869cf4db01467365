"""The family of the Second Life formats, which share models, skeleton, costs and rules."""

from typing import Any

from ..core.format import Family
from .animation.format import SECOND_LIFE_ANIMATION
from .asset.format import SECOND_LIFE_MESH
from .bundle.format import SECOND_LIFE_BUNDLE
from .bvh.format import SECOND_LIFE_BVH
from .collada.format import SECOND_LIFE_COLLADA
from .opensim.format import OPENSIM_ARCHIVE
from .options import VIEWER_FOLDER
from .request.format import SECOND_LIFE_REQUEST
from .shape_file.format import SECOND_LIFE_SHAPE
from .upload_set.format import SECOND_LIFE_UPLOAD

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


def _body_shapes() -> Any:
    from .avatar import armature_sliders

    return armature_sliders


FAMILY = Family(
    "second_life", "Second Life", FORMATS, "second_life.md", folders=(VIEWER_FOLDER,), body_shapes=_body_shapes
)

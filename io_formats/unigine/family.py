"""The family of the UNIGINE formats, which share bones and frames."""

from ..core.format import Family
from .animation.format import UNIGINE_ANIMATION
from .mesh.format import UNIGINE_MESH
from .scene.format import UNIGINE_SCENE
from .skeleton.format import UNIGINE_SKELETON

FAMILY = Family("unigine", "UNIGINE", (UNIGINE_MESH, UNIGINE_ANIMATION, UNIGINE_SKELETON, UNIGINE_SCENE), "unigine.md")

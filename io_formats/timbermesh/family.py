"""The family of Timberborn's formats: the Timbermesh format, and blueprints, which place such models."""

from ..core.format import Family
from .blueprint.format import TIMBERBORN_BLUEPRINT
from .model.format import TIMBERMESH

FAMILY = Family("timbermesh", "Timbermesh", (TIMBERMESH, TIMBERBORN_BLUEPRINT), "timbermesh.md", "Timberborn")

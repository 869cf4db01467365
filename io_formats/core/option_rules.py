"""Conditions for options that only have an effect with certain values of other options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Names of options, from several tables, on which the conditions below depend.
ARMATURE = "armature"
JOINT_ANIMATION = "use_joint_animation"
KEEP_IMPORTED = "use_as_imported"
EMBED_ANIMATION = "use_embedded_animation"

Values = Mapping[str, Any]


def imports_bones(values: Values) -> bool:
    """Return whether an import creates or changes an armature."""
    return bool(values.get(ARMATURE, "NONE") != "NONE")


def imports_new_bones(values: Values) -> bool:
    """Return whether an import may create an armature."""
    return values.get(ARMATURE, "NONE") not in {"NONE", "ACTIVE"}


def imports_joint_animation(values: Values) -> bool:
    """Return whether an import creates actions for armatures."""
    return bool(values.get(JOINT_ANIMATION)) and imports_bones(values)


def completes_models(values: Values) -> bool:
    """Return whether an export adds missing parts, such as levels of detail, to imported models."""
    return not values.get(KEEP_IMPORTED)


def embeds_animation(values: Values) -> bool:
    """Return whether an export may write animation: always, unless the format has this option and it is off."""
    return bool(values.get(EMBED_ANIMATION, True))

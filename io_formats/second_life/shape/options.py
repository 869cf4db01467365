"""Export options of shapes."""

from __future__ import annotations

from ...core.options import Option

AS_OTHERS_SEE = Option(
    name="use_as_others_see",
    default=False,
    label="As Others See It",
    description="Round the values down to the 256 steps in which viewers send them to others, so that the shape is as "
    "all but its owner see it. Joints move by up to 3 mm",
    section="Shape",
)

EXPORT_OPTIONS: tuple[Option, ...] = (AS_OTHERS_SEE,)

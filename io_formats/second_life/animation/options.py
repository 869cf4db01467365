"""Export options of Second Life animations."""

from __future__ import annotations

from ...core.options import Choice, Option

LONGEST = 60.0
"""Length in seconds above which the viewer refuses an animation."""

PRIORITY = Option(
    name="animation_priority",
    default="ACTION",
    label="Priority",
    description="Which animation moves a joint if several play: the one of the highest priority",
    section="Animation",
    choices=(
        Choice("ACTION", "As in the Action", "The priority stored with the action; 3 if it has none"),
        *(
            Choice(str(number), str(number), said)
            for number, said in enumerate(
                (
                    "Idle movements",
                    "Low",
                    "Walking and running in many sets",
                    "Gestures and dances",
                    "Most poses",
                    "Above what the upload window of the viewer offers for .bvh",
                    "The highest",
                )
            )
        ),
    ),
)
POSITIONS = Option(
    name="use_positions",
    default=False,
    label="Positions",
    description="Also store positions of joints other than the pelvis. They deform avatars whose bodies have joint "
    "positions of their own, even after the animation has stopped",
    section="Animation",
)
FIT = Option(
    name="use_avatar_proportions",
    default=True,
    label="Fit Pelvis",
    description="Scale the movement of the pelvis by the length of the legs, so that the feet of the standard avatar "
    "stay on the ground",
    section="Animation",
)
REDUCE = Option(
    name="use_key_reduction",
    default=True,
    label="Reduce Keys",
    description="Leave out keys that follow from others within 0.1° and 1 mm",
    section="Animation",
)

EXPORT_OPTIONS: tuple[Option, ...] = (PRIORITY, POSITIONS, FIT, REDUCE)

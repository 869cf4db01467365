"""Names of the hand poses and face expressions of the classic avatar (animation format page, section 3)."""

from __future__ import annotations

HAND_POSES = (
    "Spread",
    "Relaxed",
    "Point Both",
    "Fist",
    "Relaxed Left",
    "Point Left",
    "Fist Left",
    "Relaxed Right",
    "Point Right",
    "Fist Right",
    "Salute Right",
    "Typing",
    "Peace Right",
    "Palm Right",
)
"""Label of each hand pose; the index is the number in the file."""

EMOTES = {
    "": "None",
    "express_open_mouth": "Aaaaah",
    "express_afraid_emote": "Afraid",
    "express_anger_emote": "Angry",
    "express_toothsmile": "Big Smile",
    "express_bored_emote": "Bored",
    "express_cry_emote": "Cry",
    "express_disdain": "Disdain",
    "express_embarrassed_emote": "Embarrassed",
    "express_frown": "Frown",
    "express_kiss": "Kiss",
    "express_laugh_emote": "Laugh",
    "express_tongue_out": "Plllppt",
    "express_repulsed_emote": "Repulsed",
    "express_sad_emote": "Sad",
    "express_shrug_emote": "Shrug",
    "express_smile": "Smile",
    "express_surprise_emote": "Surprise",
    "express_wink_emote": "Wink",
    "express_worry_emote": "Worry",
}
"""Label of each face expression by its name in files; viewers ignore case."""
NO_EMOTE = "closed_mouth"
"""Name that has the same effect as an empty name: no expression."""


def emote_label(name: str) -> str:
    """Return the label of an expression, or its name if the table has no label."""
    return EMOTES.get("" if name.lower() == NO_EMOTE else name.lower(), name)


def is_emote(name: str) -> bool:
    """Return whether viewers know an expression."""
    return name.lower() in {*EMOTES, NO_EMOTE}


def hand_pose_label(number: int) -> str:
    """Return the label of a hand pose, or its number as text if the table has no label."""
    return HAND_POSES[number] if number < len(HAND_POSES) else str(number)

"""What ``meshferry inspect`` prints about a Second Life animation."""

from __future__ import annotations

from typing import Any

from .document import SecondLifeAnimation, decode_text
from .keys import curves


def facts(document: SecondLifeAnimation) -> dict[str, Any]:
    """Return counts of the stored data; ``warnings`` lists unusual content."""
    priorities = sorted({joint.priority for joint in document.joints})
    return {
        "version": ".".join(map(str, document.version)),
        "bones": len(document.joints),
        "clips": [
            {
                "name": "",
                "kind": "bone",
                "frames": 0,
                "fps": curves.frame_rate(document),
                "seconds": round(document.duration, 6),
                "rotation_keys": sum(len(joint.rotation) for joint in document.joints),
                "position_keys": sum(len(joint.position) for joint in document.joints),
            }
        ],
        "priority": document.base_priority,
        "joint_priorities": priorities,
        "loop": [round(document.loop_in, 6), round(document.loop_out, 6)] if document.loop else None,
        "ease": [round(document.ease_in, 6), round(document.ease_out, 6)],
        "hand_pose": document.hand_pose,
        "emote": decode_text(document.emote),
        "constraints": len(document.constraints),
        "warnings": list(document.warnings),
    }

"""Count what Python itself does in a call: on a busy machine a clock tells less."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def python_steps(call: Callable[[], Any]) -> int:
    """Return how many lines of Python a call runs; of a loop, each time round."""
    steps = 0

    def trace(_frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal steps
        steps += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return steps

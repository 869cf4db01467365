"""The command line as a process of its own. Signals are handled before anything slow is imported, ``typing`` too."""

from __future__ import annotations

try:
    from . import interruption
except KeyboardInterrupt:  # not handled yet
    raise SystemExit(130) from None


def run() -> None:
    """Run the command line and end the process."""
    with interruption.handled(is_process=True):
        from . import environment
        from .main import main

        status = main()
    environment.leave(status)

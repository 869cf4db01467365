"""Entry point of the command line as a process. Signals are handled before slow modules, such as ``typing``, load."""

from __future__ import annotations

try:
    from . import interruption
except KeyboardInterrupt:  # signals are not handled yet
    raise SystemExit(130) from None


def run() -> None:
    """Run the command line and end the process."""
    with interruption.handled(is_process=True):
        from . import environment
        from .main import main

        status = main()
    environment.leave(status)

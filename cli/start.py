"""The command line as a process of its own. Signals are handled before anything slow is imported, ``typing`` too."""

from __future__ import annotations

from . import interruption


def run() -> None:
    """Run the command line and end the process."""
    with interruption.handled(is_process=True):
        from . import environment
        from .main import main

        status = main()
    environment.leave(status)

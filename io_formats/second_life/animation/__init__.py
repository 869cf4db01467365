"""Second Life animations: ``.anim``."""

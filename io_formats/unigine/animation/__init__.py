"""UNIGINE animations: ``.anim`` (an10 to an13)."""

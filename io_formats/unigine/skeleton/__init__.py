"""UNIGINE skeletons: ``.skeleton`` (sn10)."""

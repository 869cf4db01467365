"""Second Life and OpenSim: mesh assets, model bundles, uploads; everything that only they know."""

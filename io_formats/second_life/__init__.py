"""Second Life and OpenSim: mesh assets, model bundles, uploads, and the rules of the uploader."""

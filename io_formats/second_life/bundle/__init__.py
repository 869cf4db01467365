"""The model bundle (.slm) that the uploader saves: several assets with their transforms and materials."""

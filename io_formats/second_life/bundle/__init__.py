"""The model bundle (.slm) that the uploader saves: several assets with their places and materials."""

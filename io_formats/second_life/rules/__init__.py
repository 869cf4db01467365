"""Rules of uploader and simulator for models."""

"""The Timbermesh format (docs/formats/timbermesh.md)."""

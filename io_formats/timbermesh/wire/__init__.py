"""Container and protobuf messages."""

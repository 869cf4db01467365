"""The library for programmers: what ``import meshferry`` offers."""

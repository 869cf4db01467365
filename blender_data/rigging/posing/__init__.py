"""Bones that pose other bones."""

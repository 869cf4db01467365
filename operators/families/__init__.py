"""Hooks of the families of formats, one module or package each; see :mod:`..hooks`."""

"""UNIGINE projects: what their references mean, their materials, and the materials of their meshes.

The facts are in docs/formats/unigine_projects.md, whose sections the docstrings name.
"""

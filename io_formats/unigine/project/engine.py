"""The engine's own materials and textures, which projects use without containing their files (section 5)."""

from __future__ import annotations

import hashlib

BASE_NAMES = (
    "mesh_base",
    "particles_base",
    "sky_base",
    "decal_base",
    "landscape_terrain_base",
    "landscape_terrain_detail_base",
    "water_global_base",
    "water_mesh_base",
    "gui_base",
    "text_base",
    "grass_base",
    "billboards_base",
    "clouds_base",
    "volume_fog_base",
    "volume_light_base",
    "volume_omni_base",
    "volume_proj_base",
    "volume_cloud_base",
    "volume_shaft_base",
    "terrain_global_base",
    "grass_impostor_base",
    "billboards_impostor_base",
    "billboards_cloud_base",
    "decal_terrain_hole_base",
    "mesh_pbr_base",
    "mesh",
    "mesh_transparent",
    "mesh_unlit",
    "decal",
)
"""Names of the built-in base materials; the last four are parents of material graphs."""


def name_hash(name: str) -> str:
    """Return the GUID of a built-in material, which is derived from its name."""
    return hashlib.sha1(name.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()


BASES = {name_hash(prefix + name): name for name in BASE_NAMES for prefix in ("", "Unigine::")}
"""Names of the base materials by GUID."""

_FILES = {
    "5219d6ddb5dbd1520e843a369ad2b64326bb24e2": "textures/common/white.texture",
    "d15782a509aae84ba85cebcb4e69571f60a7e33a": "textures/common/black.texture",
    "a8106e01d8743fe2b0601f5d30c9eaf6cee2a4ca": "textures/common/red.texture",
    "692dbb7d56d633e22551bd47f4d92cd2d498270d": "textures/common/normal.texture",
    "edf5dbe16c25c3185d9ce7b15e99469442484856": "textures/common/checker_d.texture",
    "49631a6048f399ed9843dc46f9fada157432821d": "meshes/box.mesh",
    "88c672af6ab1177c29a264c6cec93ce326e9e612": "meshes/plane.mesh",
    "d22434214be7bafb75001301cc320847fb3ee551": "meshes/sphere.mesh",
    "001dc611e2ca7385e50593ebc1c181e2e370240c": "materials/for_world_creation/grid_for_world_creation.mat",
    "ead31ab036c7eb329af97a68a8e83d6db943a873": "materials/for_world_creation/grid_for_world_creation.mat",
}
"""Paths below ``core/`` of files of the engine that projects refer to, by GUID."""


def engine_path(guid: str) -> str:
    """Return the path of one of the engine's own files, or an empty string."""
    return f"core/{_FILES[guid]}" if guid in _FILES else ""


def base_name(reference: str) -> str:
    """Return the name of the base material that a GUID or name refers to, or an empty string."""
    plain = reference.removeprefix("Unigine::")
    return BASES.get(reference, plain if plain in BASE_NAMES else "")

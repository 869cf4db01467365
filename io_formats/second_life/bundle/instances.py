"""The instances of a bundle <-> objects: mesh, transform and materials (formats page, section 8)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ...core.messages import Report
from ..models.llsd import as_integer, encoded, sorted_map
from ..models.llsd_arrays import as_reals, singles
from .document import INSTANCES, VERSION, Bundle

_MOST = 512
"""Maximum number of instances that are read, which is also the maximum number of objects in a linkset."""


@dataclass
class BundleMaterial:
    """A material of an instance."""

    binding: str
    """Name of the material in the ``material_list`` of the mesh."""
    color: tuple[float, float, float, float] = (1.0, 1.0, 1.0, 1.0)
    """RGBA as in the viewer, 0 to 1, sRGB-encoded."""
    filename: str = ""
    """Path of the texture that the uploader opens, or empty."""
    label: str = ""
    fullbright: bool = False


@dataclass
class Instance:
    """A mesh with its transform."""

    mesh: int
    """Index of the mesh."""
    label: str
    transform: npt.NDArray[np.float64]
    """(4, 4) for column vectors: from the unit cube to the world, in metres, Z up."""
    materials: list[BundleMaterial] = field(default_factory=list)


def instances_of(bundle: Bundle, report: Report) -> list[Instance]:
    """Decode the instances; invalid ones are left out and reported in ``report``."""
    found: list[Instance] = []
    values = bundle.values.get(INSTANCES)
    for number, value in enumerate(values if isinstance(values, list) else [], 1):
        if len(found) == _MOST:
            report.loss("too-many-objects", "Only the first {:,} objects are read", _MOST)
            break
        if not isinstance(value, dict):
            report.loss("object-left-out", "Object {} is left out: it is not a map", number)
            continue
        label = _text(value.get("label")) or f"object {number}"
        mesh = as_integer(value.get("mesh_id"))
        matrix = as_reals(value.get("transform"), 16)
        if mesh is None or not 0 <= mesh < len(bundle.meshes):
            report.loss("object-left-out", "'{}' is left out: it refers to a mesh that is not in the file", label)
            continue
        if matrix is None or not _is_place(matrix):
            report.loss("object-left-out", "'{}' is left out: its transform is not a matrix of numbers", label)
            continue
        found.append(Instance(mesh, label, matrix.reshape(4, 4).T, _materials(value.get("material"))))
    return found


def _materials(value: Any) -> list[BundleMaterial]:
    return [_bundle_material(inner) for inner in value if isinstance(inner, dict)] if isinstance(value, list) else []


def _is_place(matrix: npt.NDArray[np.float64]) -> bool:
    with np.errstate(over="ignore"):
        return bool(np.isfinite(matrix.astype(np.float32)).all())


def _bundle_material(value: dict[str, Any]) -> BundleMaterial:
    found = BundleMaterial(_text(value.get("binding")), fullbright=value.get("fullbright") is True)
    diffuse = value.get("diffuse")
    if isinstance(diffuse, dict):
        found.filename, found.label = _text(diffuse.get("filename")), _text(diffuse.get("label"))
        color = as_reals(diffuse.get("color"), 4)
        if color is not None:
            found.color = tuple(np.nan_to_num(np.clip(color, 0.0, 1.0), nan=1.0).tolist())
    return found


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if isinstance(value, str) else ""


def bundle_of(name: str, meshes: list[Any], instances: list[Instance]) -> Bundle:
    """Build a bundle of assets and instances as the viewer saves it: keys sorted, materials by their binding."""
    values: dict[str, Any] = {
        "instance": [_value(instance) for instance in instances],
        "mesh": None,
        "name": name,
        "version": VERSION,
    }
    if not name:
        del values["name"]
    return Bundle(values, meshes)


def _value(instance: Instance) -> dict[str, Any]:
    materials = [
        sorted_map(
            {
                "binding": material.binding,
                "fullbright": material.fullbright,
                "diffuse": sorted_map(
                    {
                        "filename": material.filename,
                        "label": material.label,
                        "color": singles(material.color),
                    }
                ),
            }
        )
        for material in sorted(instance.materials, key=lambda material: encoded(material.binding))
    ]
    transform = np.asarray(instance.transform, np.float64).reshape(4, 4).T.reshape(16)
    return sorted_map(
        {
            "label": instance.label,
            "material": materials,
            "mesh_id": int(instance.mesh),
            "transform": singles(transform),
        }
    )

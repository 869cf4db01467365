"""What ``meshferry inspect`` prints about a model bundle."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.messages import Report
from ..asset import mapping as asset_mapping
from ..asset.codec import of_mesh
from .document import VERSION, Bundle
from .instances import instances_of


def facts(bundle: Bundle) -> dict[str, Any]:
    """Return counts and weights as sums over all instances: a mesh with three instances counts three times."""
    warnings = list(bundle.warnings)
    instances = instances_of(bundle, Report(warnings))
    decoded = [asset_mapping.decode_blocks(asset) for asset in bundle.meshes]
    for number, mesh in enumerate(decoded, 1):
        # Skip the warnings of the asset's reader, which come first; the bundle's own warnings already include them.
        said = mesh.warnings[len(bundle.meshes[number - 1].warnings) :]
        warnings += [of_mesh(number, message) for message in said]
    total: dict[str, int] = {}
    lods: dict[str, dict[str, int]] = {}
    weight = 0.0
    for instance in instances:
        mesh = decoded[instance.mesh]
        for key, count in asset_mapping.common_counts(mesh).items():
            total[key] = max(total.get(key, 0), count) if key == "uv_layers" else total.get(key, 0) + count
        for level, counts in asset_mapping.level_facts(mesh).items():
            sums = lods.setdefault(level, dict.fromkeys(counts, 0))
            for key, count in counts.items():
                sums[key] += count
        axes = np.linalg.norm(instance.transform[:3, :3], axis=0)
        weight += mesh.download_weight((float(axes[0]), float(axes[1]), float(axes[2])))
    return {
        "version": str(VERSION),
        **total,
        "materials": len({material.binding for instance in instances for material in instance.materials}),
        "lods": lods,
        "hulls": sum(len(decoded[instance.mesh].hulls.hulls) for instance in instances),
        "download_weight": round(weight, 4),
        "warnings": warnings,
    }

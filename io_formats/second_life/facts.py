"""What ``meshferry inspect`` prints about mesh assets, alone or in a bundle."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..core.messages import Message, Report, Text
from .avatar.joint_positions import size_at_rest
from .mesh.document import Asset
from .mesh.reader import BLOCK_LABELS
from .mesh.writer import block_sizes
from .models.costs import download_weight
from .models.level_block import Face, faces_of
from .models.physics_block import Hulls, hulls_of
from .models.skin_block import SkinBlock, skin_of
from .options import LEVELS

Size = tuple[float, float, float]

PHYSICS_MESH = "physics_mesh"


@dataclass
class DecodedAsset:
    """The content of an asset as arrays."""

    levels: dict[str, list[Face]]
    """The faces of the existing levels, the finest first."""
    physics: list[Face]
    hulls: Hulls
    skin: SkinBlock | None
    sizes: dict[str, int]
    """Compressed size of each block in bytes."""
    warnings: list[Message] = field(default_factory=list)

    @property
    def faces(self) -> list[Face]:
        """The faces of the finest existing level."""
        return next(iter(self.levels.values()), [])

    @property
    def size(self) -> Size | None:
        """Lengths of the object along its axes in metres; for a rigged object estimated from its rig.

        None if the asset does not state them.
        """
        if self.skin is not None:
            return size_at_rest(self.skin)
        return next((face.normalized_scale for face in self.faces if face.normalized_scale is not None), None)

    def download_weight(self, size: Size | None = None) -> float:
        """Return the download weight at the given size, by default that of the asset or one metre."""
        return download_weight(self.sizes, size or self.size or (1.0, 1.0, 1.0))


def decode_blocks(asset: Asset) -> DecodedAsset:
    """Decode all blocks of an asset; ``warnings`` includes those of its reader."""
    warnings = list(asset.warnings)

    report = Report(warnings)

    def faces(block: str) -> list[Face]:
        label = Text(BLOCK_LABELS[block].capitalize())
        return faces_of(asset.blocks[block], report.about(label)) if block in asset.blocks else []

    levels = {level: faces(level) for level in LEVELS if level in asset.blocks}
    physics = faces(PHYSICS_MESH)
    found = hulls_of(asset.blocks.get("physics_convex"), report.about(Text("Physics hulls")))
    skin = skin_of(asset.blocks["skin"], report) if "skin" in asset.blocks else None
    sizes = asset.stored_sizes or block_sizes(asset)
    return DecodedAsset(levels, physics, found, skin, sizes, warnings)


def level_facts(decoded: DecodedAsset) -> dict[str, dict[str, int]]:
    """Return triangles, vertices and compressed bytes of each existing level, the finest first."""
    return {
        level: {
            "triangles": sum(len(face.triangles) for face in faces),
            "vertices": sum(len(face.positions) for face in faces),
            "bytes": decoded.sizes[level],
        }
        for level, faces in decoded.levels.items()
    }


def common_counts(decoded: DecodedAsset) -> dict[str, int]:
    """Return the counts common to all formats, for the finest level; nodes are the objects that an import creates."""
    faces = decoded.faces
    shapes = bool(decoded.physics) + len(decoded.hulls.hulls) + (decoded.hulls.base is not None)
    return {
        "nodes": len(decoded.levels) + shapes,
        "vertices": sum(len(face.positions) for face in faces),
        "triangles": sum(len(face.triangles) for face in faces),
        "surfaces": len(faces),
        "materials": len(faces),
        "uv_layers": int(any(face.uvs is not None for face in faces)),
        "bones": len(decoded.skin.joint_names) if decoded.skin else 0,
    }

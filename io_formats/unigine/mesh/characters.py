"""Meshes of SDK 2.21 and later with an armature or shape keys: their version, skeleton file and ``.meta``."""

from pathlib import Path

from ...core.errors import ExportError
from ...core.format import OutputFile
from ...core.scene import Skeleton
from ...disk.file_names import file_name
from ..project.guids import META
from ..project.new_assets import AS_IT_IS, AssetKind, NewAsset, Parameter, TargetFolder, meta_text, sdk_of
from ..skeleton.references import REST, SkeletonUse, for_mesh, missing_joints
from .document import MeshFile
from .format import SEPARATE_SKELETON_VERSION, SKINNED_EXTENSION

CHARACTER_SDK = "2.21.0.0"
"""The first SDK that loads sk10."""
OLDER_SDK = "2.20.0.0"
"""The last SDK whose characters are ms14 and an11 files, which the editor of the next one converts."""


def refuse_other_sdk(version: str, target: TargetFolder, name: str) -> None:
    """Raise ExportError if the SDK of a project does not load deformed meshes of a version."""
    is_new = target.sdk >= sdk_of(CHARACTER_SDK)
    if target.project is not None and is_new != (version == SEPARATE_SKELETON_VERSION):
        template = "'{}' has an armature or shape keys, and the project is of SDK {}, which does not load {}; choose {}"
        raise ExportError(template, name, target.version, version, "sk10" if is_new else "ms14")


def name_skeleton(document: MeshFile, skeleton: Skeleton, target: TargetFolder, folder: str = "") -> SkeletonUse:
    """Store in a mesh the reference to its skeleton file, and findings about that; see :func:`.for_mesh`."""
    use = for_mesh(skeleton, document.bones, document.transforms, target, folder)
    document.skeleton_guid, document.skeleton_path = use.guid, use.path
    document.findings = missing_joints(document.bones, use, REST)
    return use


def skinned_asset(name: str, document: MeshFile, data: bytes = b"") -> NewAsset:
    """Return a skinned mesh with its encoded content as an asset, whose ``.meta`` names its skeleton."""
    reference = Parameter("string", "skeleton_path", document.skeleton_path)
    return NewAsset(name, AssetKind.MESH_SKINNED, lambda _guids: data, (reference, *AS_IT_IS))


def add_companions(document: MeshFile, skeleton: Skeleton, target: TargetFolder, path: Path | None, name: str) -> None:
    """Add to a mesh the files beside it: its skeleton and the ``.meta`` files.

    Parameters
    ----------
    path:
        Path of the mesh, if it is known.
    name:
        Name of the mesh, used if the path is not known.
    """
    use = name_skeleton(document, skeleton, target)
    if use.asset is not None:
        document.companions += target.files(use.asset, {use.asset.name: use.asset.guid})
    own = path.name if path is not None else file_name(name) + SKINNED_EXTENSION
    if target.meta(own) is None:
        meta = meta_text(skinned_asset(own, document), target.guid(own, use.guid), target.version)
        document.companions.append(OutputFile(own + META, meta))

"""Characters of a new scene: skeletons, animations, and the nodes that play them (docs/formats/unigine_scenes.md)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ...core.messages import Report
from ...core.scene import Clip, Scene, Skeleton
from ...disk.file_names import free_name
from ..animation import codec as animation_codec
from ..animation import format as animation_format
from ..animation import mapping as animation_mapping
from ..mesh.characters import name_skeleton
from ..mesh.document import MeshFile
from ..project.new_assets import AssetKind, NewAsset, TargetFolder
from ..skeleton.references import EXTENSION, SkeletonUse

_UPDATES = {"fps_visible_camera": "-1", "fps_visible_shadow": "30", "fps_invisible": "0"}
"""Update rates of skinned meshes, which are the same in all known files."""


@dataclass(frozen=True)
class WrittenClip:
    """An animation file that nodes refer to."""

    reference: str
    """Name of the new asset."""
    rate: float
    """Frames per second."""
    is_cyclic: bool


class CharacterFiles:
    """Adds skeletons and animations to the files of a new scene, each once.

    Parameters
    ----------
    folder:
        Folder of the files relative to the scene, ending in ``/``.
    version:
        Version of the animation files.
    """

    def __init__(self, target: TargetFolder, folder: str, version: str, report: Report) -> None:
        self.assets: list[NewAsset] = []
        self._target = target
        self._folder = folder
        self._version = version
        self._report = report
        self._uses: dict[tuple[object, ...], SkeletonUse] = {}
        self._clips: dict[int, tuple[Clip, WrittenClip]] = {}
        """Written clips by ``id()``; the reference to the clip keeps its number from being used again."""
        self._taken: set[str] = set()

    def name_skeleton(self, document: MeshFile, skeleton: Skeleton) -> str:
        """Store in a mesh the reference to its skeleton, which meshes on one armature share; return the GUID."""
        joints = tuple((bone.name, bone.parent) for bone in document.bones)
        key = (skeleton.name, skeleton.guid, joints, document.transforms.tobytes())
        use = self._uses.get(key)
        if use is None:
            free = free_name(skeleton.name, EXTENSION, self._taken).removesuffix(EXTENSION)
            use = self._uses[key] = name_skeleton(document, replace(skeleton, name=free), self._target, self._folder)
            self.assets += [use.asset] if use.asset is not None else []
        document.skeleton_guid, document.skeleton_path = use.guid, use.path
        return use.guid

    def clips(self, scene: Scene, guid: str) -> dict[str, WrittenClip]:
        """Return the animations of a model by name, as files that refer to a skeleton by its GUID.

        Raises
        ------
        ExportError
            Data that no file can hold.
        """
        for clip in scene.clips:
            if id(clip) not in self._clips:
                self._clips[id(clip)] = clip, self._clip(scene, clip, guid)
        return {clip.name: self._clips[id(clip)][1] for clip in scene.clips}

    def _clip(self, scene: Scene, clip: Clip, guid: str) -> WrittenClip:
        part = scene.part(clip.name, skeletons=scene.skeletons, clips=[clip])
        options = animation_format.WriteOptions(animation_version=self._version, skeleton=guid)
        document = animation_mapping.from_scene(part, options)
        name = self._folder + free_name(f"{scene.skeletons[0].name}_{clip.name}", ".anim", self._taken)
        data = animation_codec.write(document)
        self.assets.append(NewAsset(name, AssetKind.ANIMATION, lambda _guids: data))
        self._report.add(*part.warnings)
        is_cyclic = clip.loop is not None or (clip.playback is not None and clip.playback.is_looped)
        return WrittenClip(name, float(document.fps) or clip.fps, is_cyclic)


def skinned_values(mesh: str) -> dict[str, str]:
    """Return the fields of a skinned mesh below a node that plays its animation."""
    return {"mesh_name": mesh, **_UPDATES}


def playing_values(mesh: str, clips: Mapping[str, WrittenClip], name: str) -> dict[str, str]:
    """Return the fields of a skinned mesh that plays the animation of a name itself, in the order of the file."""
    clip = clips.get(name)
    speed = f"{clip.rate if clip else next((one.rate for one in clips.values()), animation_mapping.DEFAULT_RATE):.9g}"
    if clip is None:
        return {**skinned_values(mesh), "speed": speed}
    playing = {"anim_name": clip.reference, "loop": str(int(clip.is_cyclic)), "speed": speed, "playing": "1"}
    return {**skinned_values(mesh), **playing}


def pose_values(guid: str) -> dict[str, str]:
    """Return the fields of a node that poses the skinned meshes below it, without an animation graph."""
    return {"skeleton": guid, "mode": "0", "control_type": "0"}

"""Scene -> upload request, and checks of one (formats page, sections 9 and 12). Requests are only written.

Versions 0.9.1.1 to 0.9.3.0 use the index of an object as the index of its mesh, which fails if there are more objects
than meshes. They give faces without a texture the first texture of the request. They store the last face as the
default of all others, so that white faces get its colour, and faces that are not full bright its brightness.
"""

from __future__ import annotations

import numpy as np

from ...core.errors import FormatError
from ...core.messages import Message, Named, Text, error, listed, warning
from ...core.scene import Material, Scene
from ...core.shading import Texture
from ...disk.special_files import read_bytes
from ...encodings import jpeg2000
from ...encodings.quantization import linear_to_srgb
from ...geometry.transforms import matrices_to_quaternions
from ..asset import rules
from ..asset.codec import Asset
from ..asset.document_builder import BuiltAsset
from ..asset.mapping import asset_findings, assets_of, submodel_suffix
from ..models.models import models_of
from ..models.physics_block import hulls_of
from .codec import CONVEX_SHAPE, NO_SHAPE, PRIM_SHAPE, RequestFace, RequestInstance, RequestTexture, UploadRequest
from .format import WriteOptions

check_scene = rules.check_scene

MOST_INSTANCES = 512
"""Maximum number of objects of a linkset, in OpenSim."""
_MOST_SCALE = 256.0
_LEAST_SCALE = 0.001


def check(document: UploadRequest) -> list[Message]:
    """Apply the rules that the grid checks before it accepts a request."""
    findings: list[Message] = []
    if not document.instances:
        findings.append(error("no-object", "there is no object to upload"))
    if len(document.instances) > MOST_INSTANCES:
        template = "{:,} objects; a linkset has {} at most: join some of them"
        findings.append(error("too-many-objects", template, len(document.instances), MOST_INSTANCES))
    tiny = 0
    for instance in document.instances:
        owner = Text("Object '{}'", instance.name)
        findings += asset_findings(document.meshes[instance.mesh], owner)
        if max(instance.scale) > _MOST_SCALE:
            findings.append(error("object-too-large", "it is longer than {:g} m", _MOST_SCALE, item=owner))
        if min(instance.scale) < _LEAST_SCALE:
            tiny += 1
            template = "it is thinner than {:g} mm; OpenSim leaves it out"
            findings.append(warning("object-too-thin", template, _LEAST_SCALE * 1000, item=owner))
    if tiny * 2 > len(document.instances):
        template = "more than half of the objects are thinner than 1 mm; OpenSim rejects all of them"
        findings.append(error("most-objects-too-thin", template))
    return list(dict.fromkeys(findings))


_WHITE_SIDE = 32
_WHITE = bytes.fromhex(
    "ff4fff51002f000000000020000000200000000000000000000000200000002000000000000000000003070101070101070101"
    "ff52000c00000001010504040001ff5c00134040484850484850484850484850484850"
    "ff90000a0000000000230001ff93cfb404008080808080808080808080808080808080ffd9"
)
"""JPEG 2000 codestream of 32 x 32 white RGB pixels. Written by Blender 4.5 (Image.save_render, codec J2K, quality 100,
thus lossless), without the comment of its encoder."""


def adapt_to_opensim(request: UploadRequest) -> None:
    """Change a request, which has a mesh for each object, so that all servers show every face as stated."""
    _add_white_texture(request)
    for instance in request.instances:
        if instance.faces and _last_face_spreads(instance):
            # A further face, of which the mesh has no triangles, becomes the default in place of the last one.
            instance.faces = [*instance.faces, RequestFace(texture=instance.faces[-1].texture)]


def _add_white_texture(request: UploadRequest) -> None:
    """Give faces without a texture a white one."""
    faces = [face for instance in request.instances for face in instance.faces if face.texture is None]
    if not faces:
        return
    for face in faces:
        face.texture = len(request.textures)
    request.textures.append(RequestTexture("white", _WHITE, _WHITE_SIDE, _WHITE_SIDE))


def _last_face_spreads(instance: RequestInstance) -> bool:
    """Return whether a released server gives other faces the colour or the brightness of the last face."""
    *others, last = instance.faces
    white = RequestFace().color
    takes_color = last.color != white and any(face.color == white for face in others)
    return takes_color or (last.fullbright and not all(face.fullbright for face in others))


FULL_BRIGHT = 0.25
"""Mean emission above which the viewer makes a face full bright (section 10.1)."""


def files_of(scene: Scene, options: WriteOptions) -> list[Scene]:
    """Return the whole scene: all its models are one upload."""
    return [scene] if models_of(scene) else []


def from_scene(scene: Scene, options: WriteOptions) -> UploadRequest:
    """Map a scene to an upload request.

    Models with the same content share a mesh, and the first model is the root. For OpenSim, each object has its own
    mesh, and the root is the model that the scene marks as root, if any. Further parts of models of more than 8 faces
    follow all models.
    ``scene.warnings`` reports what is left out or repaired, for example textures that are not JPEG 2000.

    Raises
    ------
    ExportError
        Data that no asset can hold; the message names the object and says what to do.
    """
    is_opensim = options.server == "OPENSIM"
    models = models_of(scene)
    if is_opensim:
        models.sort(key=lambda model: not model.finest.is_linkset_root)
    built = [
        (model.name, part)
        for model, parts in zip(models, assets_of(models, scene, options), strict=True)
        for part in parts
    ]
    built.sort(key=lambda named: named[1].submodel > 0)  # the sort is stable, so the models keep their order
    looks = _Looks(scene)
    request = UploadRequest(scene.name or (models[0].name if models else ""))
    number_of: dict[int, int] = {}
    for name, part in built:
        number = len(request.meshes)
        mesh = number if is_opensim else number_of.setdefault(id(part.asset), number)
        if mesh == number:
            request.meshes.append(part.asset)
        request.instances.append(_instance(name, part, mesh, looks))
    request.textures = looks.textures
    if is_opensim:
        adapt_to_opensim(request)
    looks.say_left_out()
    return request


def _instance(name: str, part: BuiltAsset, mesh: int, looks: _Looks) -> RequestInstance:
    unit_cube = part.unit_cube
    w, x, y, z = matrices_to_quaternions(unit_cube.rotation[None])[0].tolist()
    position, scale = tuple(unit_cube.position.tolist()), tuple(unit_cube.metres.tolist())
    label = f"{name}{submodel_suffix(part.submodel)}" if part.submodel else name
    faces = [looks.face(material) for material in part.materials]
    shape = NO_SHAPE if part.submodel else _shape(part.asset)
    return RequestInstance(label, mesh, position, (x, y, z, w), scale, shape, faces)


def _shape(asset: Asset) -> int:
    if "physics_mesh" in asset.blocks or hulls_of(asset.blocks.get("physics_convex")).hulls:
        return PRIM_SHAPE
    return CONVEX_SHAPE


class _Looks:
    """Appearance and textures of materials, without duplicates."""

    def __init__(self, scene: Scene) -> None:
        self.textures: list[RequestTexture] = []
        self._scene = scene
        self._known: dict[str, Material] = {material.name: material for material in scene.materials}
        self._faces: dict[str, RequestFace] = {}
        self._texture_of: dict[object, int | None] = {}
        self._other_kinds: list[str] = []

    def face(self, name: str) -> RequestFace:
        """Return the appearance of a material by its name; white if the material is unknown."""
        if name not in self._faces:
            material = self._known.get(name)
            self._faces[name] = RequestFace() if material is None else self._face(material)
        return self._faces[name]

    def _face(self, material: Material) -> RequestFace:
        """Return the look of a face with this material."""
        texture = None
        if material.texture is not None:
            key: object = material.texture.path if material.texture.data is None else material.texture.data
            if key not in self._texture_of:
                self._texture_of[key] = self._texture(material.texture)
            texture = self._texture_of[key]
        if texture is not None:  # with a texture the colour is white, since the viewer multiplies both
            return RequestFace((1.0, 1.0, 1.0, 1.0), material.emission > FULL_BRIGHT, texture)
        color = np.nan_to_num(np.array([material.color], np.float32))
        # OpenSim rounds colours down to bytes, so a value exactly at a step, or just below it, may become one less.
        steps = np.rint(255 * np.clip(linear_to_srgb(color)[0], 0.0, 1.0).astype(np.float64))
        return RequestFace(tuple(np.minimum((steps + 0.01) / 255, 1.0).tolist()), material.emission > FULL_BRIGHT)

    def _texture(self, texture: Texture) -> int | None:
        """Return the index of a texture in the request; None, with a message, if its image cannot be sent."""
        name = Named("image", texture.name or texture.path)
        data = texture.data
        if data is None:
            if not texture.path:
                template = "Texture '{}' was never saved, nor is it packed; left out"
                self._scene.report.loss("texture-never-saved", template, name)
                return None
            try:
                data = read_bytes(texture.path)
            except FormatError as problem:
                self._scene.report.loss("texture-left-out", "Texture '{}' is left out: {}", name, problem)
                return None
        stream = jpeg2000.codestream(data)
        if stream is None:
            self._other_kinds.append(name)
            return None
        width, height = jpeg2000.size_of(stream)
        self.textures.append(RequestTexture(name, stream, width or texture.width, height or texture.height))
        return len(self.textures) - 1

    def say_left_out(self) -> None:
        """Warn about textures that a request cannot hold."""
        if self._other_kinds:
            template = "Textures that are not JPEG 2000 files (.j2c, .jp2) are left out: {}; upload them by themselves"
            names = listed(list(dict.fromkeys(self._other_kinds)))
            self._scene.report.loss("texture-kind-not-read", template, names)

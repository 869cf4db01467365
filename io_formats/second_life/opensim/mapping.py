"""Archive -> Scene with a placement (docs/formats/opensim_archives.md, section In Blender); facts and checks."""

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from ...core.errors import FormatError
from ...core.messages import Message, Text, counted, joined, listed, warning
from ...core.placement import (
    Channels,
    Content,
    Light,
    LightKind,
    Marker,
    MarkerShape,
    ModelUse,
    PlacedCollection,
    PlacedModel,
    PlacedNode,
    Placement,
    PlacementPart,
    SlotUse,
)
from ...core.scene import Material, Mesh, Node, Scene
from ...geometry.transforms import Floats, rotation_matrices
from . import container
from .document import NEVER_STORED, NULL_ID, TRANSPARENT, Archive, Group, Linkset, Part, PartLight
from .face_materials import MESH, PICTURE, Looks, Pictures, asset_of, read_assets
from .format import ReadOptions
from .ground import Ground, water_material, water_mesh
from .part_models import FORMAT, PartModels

_ASSET_KINDS = {"mesh": MESH, "sculpt": PICTURE}


def check(document: Archive) -> list[Message]:
    """Return findings about parts that name assets that the archive does not have."""
    parts = document.parts
    shapes = [(part.name, (part.sculpt_asset, _ASSET_KINDS[part.kind])) for part in parts if part.kind in _ASSET_KINDS]
    pictures = [
        (part.name, (texture, PICTURE))
        for part in parts
        for texture in {look.texture for look in part.entry.looks} - NEVER_STORED
    ]
    wanted = {asset for _, asset in (*shapes, *pictures)}
    members = container.archive_members(document.open, lambda _name: 0, inflated_limit=document.inflated_limit)
    missing = wanted - {asset_of(name) for name, _ in members if asset_of(name) in wanted}
    findings = []
    if names := list(dict.fromkeys(name for name, asset in shapes if asset in missing)):
        count = counted(len(names), "part has", "parts have")
        template = "{} a mesh or sculpt map that is not in the archive: {}"
        findings.append(warning("shape-asset-missing", template, count, listed(names)))
    if names := list(dict.fromkeys(name for name, asset in pictures if asset in missing)):
        count = counted(len(names), "part has", "parts have")
        findings.append(
            warning("texture-asset-missing", "{} a texture that is not in the archive: {}", count, listed(names))
        )
    return findings


def facts(document: Archive) -> dict[str, Any]:
    """Return counts of what the archive places. Its assets are not read.

    ``nodes`` counts the parts, ``materials`` the different looks of faces, and ``surfaces`` the different looks in each
    part, since the number of faces is in the assets.
    """
    parts = document.parts
    entries = [part.entry for part in parts]
    looks = {look for entry in entries for look in entry.looks}
    kinds = Counter(part.kind for part in parts)
    left_out: Counter[str] = Counter()
    for group in document.groups:
        left_out.update(group.left_out)
    places = "items" if document.is_inventory else "regions"
    return {
        "version": document.version,
        "nodes": len(parts),
        "surfaces": sum(len(set(entry.looks)) for entry in entries),
        "materials": len(looks),
        places: sum(bool(group.linksets) or not document.is_inventory for group in document.groups),
        "objects": sum(len(group.linksets) for group in document.groups),
        "types": dict(kinds.most_common()),
        "meshes": len({part.sculpt_asset for part in parts if part.kind == "mesh"}),
        "textures": len({look.texture for look in looks} - NEVER_STORED),
        "parcels": left_out["parcel"],
        "scripts": left_out["script"],
        "warnings": document.warnings,
    }


_GAP = 0.5
"""Metres between two items and between two rows."""


def row_origins(items: Sequence[tuple[Group, Sequence[Linkset]]]) -> list[tuple[float, float, float]]:
    """Return the origin of each item, so that its bounding box is beside those of the others."""
    rows: dict[int, list[int]] = {}
    for index, (group, _) in enumerate(items):
        rows.setdefault(group.parent, []).append(index)
    found = [(0.0, 0.0, 0.0)] * len(items)
    y = 0.0
    for row in rows.values():
        boxes = {index: _box(items[index][1]) for index in row}
        x, back = 0.0, min(box[0, 1] for box in boxes.values())
        for index, box in boxes.items():
            found[index] = (x - float(box[0, 0]), y - float(back), 0.0)
            x += float(box[1, 0] - box[0, 0]) + _GAP
        y += float(max(box[1, 1] for box in boxes.values()) - back) + _GAP
    return found


def _box(linksets: Sequence[Linkset]) -> Floats:
    """Return the lower and the upper corner of the box around linksets, (2, 3)."""
    boxes = []
    for linkset in linksets:
        root = linkset.parts[0]
        turn = _matrix(root)
        for number, part in enumerate(linkset.parts):
            centre = np.array(root.position) + (turn @ part.position if number else 0.0)
            half = np.abs((turn @ _matrix(part) if number else turn) * part.size).sum(axis=1) / 2
            boxes.append((centre - half, centre + half))
    lower, upper = np.array(boxes).swapaxes(0, 1)
    return np.stack((lower.min(axis=0), upper.max(axis=0)))


def _matrix(part: Part) -> Floats:
    matrix: Floats = rotation_matrices(np.array([part.rotation]))[0]
    return matrix


_USUAL_RADIUS = 10.0
"""Metres within which the light of a new part shines."""
_LARGEST_RADIUS = 20.0
"""The viewer's limit."""
_SIZE = 0.05
"""Radius in metres of the light itself."""


def light_of(light: PartLight) -> Light:
    """Return a light, whose brightness is approximate: it grows with the square of the distance that it reaches."""
    intensity = light.intensity * (min(light.radius, _LARGEST_RADIUS) / _USUAL_RADIUS) ** 2
    if not light.projector:
        return Light(LightKind.POINT, light.color, intensity, _SIZE)
    return Light(LightKind.SPOT, light.color, intensity, _SIZE, cone=light.field_of_view, softness=0.15)


DEPTH = 0.1
"""Metres by which the viewer sinks the base of a tree below its position."""
_SPECIES = (
    ("Pine 1", 39.5),
    ("Oak", 10.25),
    ("Tropical Bush 1", 5.0),
    ("Palm 1", 13.25),
    ("Dogwood", 10.0),
    ("Tropical Bush 2", 4.5),
    ("Palm 2", 13.5),
    ("Cypress 1", 22.5),
    ("Cypress 2", 25.0),
    ("Pine 2", 33.0),
    ("Plumeria", 10.0),
    ("Winter Pine 1", 12.5),
    ("Winter Aspen", 12.0),
    ("Winter Pine 2", 7.5),
    ("Eucalyptus", 24.0),
    ("Fern", 3.5),
    ("Eelgrass", 3.0),
    ("Sea Sword", 2.0),
    ("Kelp 1", 4.9),
    ("Beach Grass 1", 2.5),
    ("Kelp 2", 4.9),
)
"""Name and height factor of each species, by ``Part.state``."""
_HEIGHT = 0.05


def species_of(part: Part) -> str:
    """Return the name of a tree's species; the viewer shows unknown ones as Pine 1."""
    return _of(part)[0]


def marker_of(part: Part) -> Marker:
    """Return an arrow as high as the tree."""
    return Marker(MarkerShape.ARROW, _of(part)[1] * math.hypot(*part.size) * _HEIGHT)


def _of(part: Part) -> tuple[str, float]:
    return _SPECIES[part.state if part.state < len(_SPECIES) else 0]


_MESH_KINDS = {"mesh", "sculpt", "prim"}
"""Kinds of parts that become meshes."""
_MISSING_SIZE = 0.5
Vector = tuple[float, float, float]
Quaternion = tuple[float, float, float, float]
_ORIGIN: Vector = (0.0, 0.0, 0.0)
_UNTURNED: Quaternion = (1.0, 0.0, 0.0, 0.0)


class PlacementBuilder:
    """Builds the placement of an archive. Assets are read in a second pass over the archive.

    Raises
    ------
    FormatError
        The archive cannot be read again, or has no region or object of a wanted name.
    """

    def __init__(self, document: Archive, name: str, options: ReadOptions) -> None:
        self._document = document
        self._options = options
        self._part = PlacementPart(name)
        self._placement = Placement([self._part])
        self.scene = Scene(name, placement=self._placement)
        self._groups = _chosen(document, options.region, options.only_names)
        self._ground = Ground([] if document.is_inventory else [group for group, _ in self._groups])
        wanted = _assets_of(part for _, linksets in self._groups for linkset in linksets for part in linkset.parts)
        wanted |= self._ground.textures if options.use_ground else set()
        assets = read_assets(document.open, wanted, inflated_limit=document.inflated_limit)
        self._pictures = Pictures(assets, document.path)
        self._looks = Looks(assets, self._pictures)
        self._models = PartModels(assets, self._pictures)
        self._collections: dict[Hashable, int] = {}
        self._left_out: Counter[str] = Counter()
        """Number of parts that are not built, by their kind."""
        self._bumps = self._shine = self._media = self._gltf = self._at_rest = self._unseen = self._trees = 0
        """Number of faces or parts of which something is not carried over, and of invisible parts."""

    def build(self) -> Scene:
        """Return the scene, with warnings."""
        self._placement.models = self._models.models
        self.scene.materials = self._looks.materials
        if self._document.is_inventory:
            for (group, linksets), origin in zip(self._groups, row_origins(self._groups), strict=True):
                self._add_linksets(linksets, origin, self._folder(group.parent))
        else:
            for group, linksets in self._groups:
                home = self._collection(id(group), group.name, -1) if len(self._groups) > 1 else -1
                self._add_ground(group, home)
                self._add_linksets(linksets, group.origin, home)
        self._report()
        return self.scene

    # -- collections ----------------------------------------------------------------------------

    def _collection(self, key: Hashable, name: str, parent: int, *, is_hidden: bool = False) -> int:
        """Return the index of the collection with this key, which is added to another one if it is new."""
        if key not in self._collections:
            self._collections[key] = len(self._part.collections)
            self._part.collections.append(PlacedCollection(name, parent, is_hidden))
        return self._collections[key]

    def _collection_of(self, kind: str, home: int, *, is_hidden: bool = False) -> int:
        """Return the index of the collection of a kind of objects, such as "Trees", in another one."""
        return self._collection((kind, home), kind, home, is_hidden=is_hidden)

    def _folder(self, index: int) -> int:
        """Return the index of the collection of an inventory folder, after those of the folders that contain it."""
        if index < 0:
            return -1
        folder = self._document.groups[index]
        return self._collection(id(folder), folder.name, self._folder(folder.parent))

    # -- nodes ----------------------------------------------------------------------------------

    def _add_node(
        self, name: str, parent: int, channels: Channels, content: Content | None, home: int, key: str = ""
    ) -> int:
        node = PlacedNode(name, parent, channels.matrix(), content, channels=channels, collection=home, key=key)
        self._part.nodes.append(node)
        return len(self._part.nodes) - 1

    def _add_linksets(self, linksets: Iterable[Linkset], origin: Vector, home: int) -> None:
        """Add the parts of each linkset below an empty at the place of its root, or a single part alone.

        No part is the parent of another one, since children would inherit its scale, which is its size.
        """
        for linkset in linksets:
            root, *others = linkset.parts
            x, y, z = root.position
            position = (x + origin[0], y + origin[1], z + origin[2])
            if not others:
                self._add_part(root, -1, position, root.rotation, home)
                continue
            place = Channels(position, quaternion=root.rotation)
            above = self._add_node(linkset.name, -1, place, None, home, _key(root, "linkset"))
            self._add_part(root, above, _ORIGIN, _UNTURNED, home, is_root=True)
            for part in others:
                self._add_part(part, above, part.position, part.rotation, home)

    def _add_part(
        self, part: Part, parent: int, position: Vector, rotation: Quaternion, home: int, *, is_root: bool = False
    ) -> None:
        """Add the node of a part, with its light, to the collection ``home``, or to that for invisible parts."""
        if part.kind == "tree":
            self._add_tree(part, parent, position, rotation, home)
            return
        if part.kind not in _MESH_KINDS:
            self._left_out[part.kind] += 1
            return
        self._at_rest += part.is_flexible
        self._gltf += part.has_gltf_materials
        found = self._models.find(part)
        content: Content = Marker(MarkerShape.CUBE, _MISSING_SIZE)
        own_home = home
        if found is not None:
            faces = [part.entry.face(number) for number in range(found.faces)]
            slots = [SlotUse(str(number), self._looks.material(face)) for number, face in enumerate(faces)]
            content = ModelUse(found.model, tuple(slots))
            self._bumps += sum(face.bump > 0 for face in faces)
            self._shine += sum(face.shiny > 0 for face in faces)
            self._media += sum(face.has_media for face in faces)
            if all(face.color[3] == 0.0 or face.texture == TRANSPARENT for face in faces):
                own_home = self._collection_of("Invisible", home, is_hidden=True)
                self._unseen += 1
        channels = Channels(position, scale=part.size, quaternion=rotation)
        node = self._add_node(part.name, parent, channels, content, own_home, _key(part))
        self._part.nodes[node].is_linkset_root = is_root
        if part.light is not None and self._options.use_region_lights:
            width, depth, height = part.size
            undone = Channels(scale=(1 / width, 1 / depth, 1 / height), quaternion=_UNTURNED)
            self._add_node(f"{part.name} Light", node, undone, light_of(part.light), home, _key(part, "light"))

    def _add_tree(self, part: Part, parent: int, position: Vector, rotation: Quaternion, home: int) -> None:
        marker, species = marker_of(part), species_of(part)
        place = Channels((*position[:2], position[2] - DEPTH), quaternion=rotation)
        node = self._add_node(species, parent, place, marker, self._collection_of("Trees", home), _key(part))
        self._part.nodes[node].properties = {"Species": species, "Height": f"{marker.size:.2f} m"}
        self._trees += 1

    def _add_ground(self, group: Group, home: int) -> None:
        mesh = self._ground.mesh(group) if self._options.use_ground else None
        if mesh is not None:
            material = self._ground.material(group, f"{mesh.name} Material", self._pictures)
            self._add_surface(mesh, material, group.origin, self._collection_of("Ground", home))
        if self._options.use_water and (group.terrain or group.settings):
            x, y, z = group.origin
            place = (x, y, z + self._ground.water_height(group))
            self._add_surface(water_mesh(group.size), water_material(), place, self._collection_of("Water", home))

    def _add_surface(self, mesh: Mesh, material: Material, place: Vector, home: int) -> None:
        """Add the ground or the water of a region."""
        model = Scene(mesh.name, [Node(mesh.name, mesh=mesh)], format=FORMAT)
        self._placement.models.append(PlacedModel(mesh.name, lambda: model))
        if material not in self.scene.materials:
            self.scene.materials.append(material)
        use = ModelUse(len(self._placement.models) - 1, (SlotUse(mesh.materials[0], material.name),))
        self._add_node(mesh.name, -1, Channels(place, quaternion=_UNTURNED), use, home)

    # -- report ---------------------------------------------------------------------------------

    def _report(self) -> None:
        report = self.scene.report
        report.add(*self._document.warnings)
        self._models.report(report)
        self._pictures.report(report)
        self._looks.report(report)
        self._ground.report(report)
        looks = (
            (self._bumps, Text("bumps of {}", counted(self._bumps, "face"))),
            (self._shine, Text("shine of {}", counted(self._shine, "face"))),
            (self._media, Text("media of {}", counted(self._media, "face"))),
            (self._gltf, Text("glTF materials of {}", counted(self._gltf, "part"))),
        )
        lost = [text for number, text in looks if number]
        if lost:
            report.loss("looks-not-carried-over", "Not carried over: {}", joined(lost))
        for group, _ in self._groups:
            self._left_out.update(group.left_out)
        left_out = self._left_out
        kinds = {
            "parcel": counted(left_out["parcel"], "parcel"),
            "script": counted(left_out["script"], "script"),
            "grass": counted(left_out["grass"], "patch of grass", "patches of grass"),
            "particles": counted(left_out["particles"], "particle system"),
            "other": counted(left_out["other"], "unknown object"),
        }
        if left_out:
            report.loss("left-out", "Left out: {}", joined(text for kind, text in kinds.items() if left_out[kind]))
        if self._at_rest:
            number = counted(self._at_rest, "flexible part stands", "flexible parts stand")
            report.note("flexible-at-rest", "{} at rest", number)
        if self._trees:
            number = counted(self._trees, "tree is an empty", "trees are empties")
            report.note("trees-as-empties", "{} with species and height, since viewers have the meshes", number)
        if self._unseen:
            number = counted(self._unseen, "invisible part is", "invisible parts are")
            report.note("invisible-parts", "{} in the hidden collection 'Invisible'", number)


def _key(part: Part, kind: str = "part") -> str:
    """Return the key by which *Reload File* finds a node; empty if the part has no UUID."""
    return f"{kind} {part.uuid}" if part.uuid not in ("", NULL_ID) else ""


def _chosen(document: Archive, region: str, pattern: str) -> list[tuple[Group, list[Linkset]]]:
    """Return the groups to import, each with those of its linksets whose names match a pattern.

    Raises
    ------
    FormatError
        There is no region of the wanted name, or no object whose name matches.
    """
    groups = document.groups
    region = region.strip()
    if region and not document.is_inventory:
        groups = [group for group in groups if group.name.strip().casefold() == region.casefold()]
        if not groups:
            names = listed([group.name for group in document.groups])
            raise FormatError("The archive has no region '{}'; it has {}", region, names)
    # In names of objects, a bracket is a usual character.
    wanted = pattern.strip().casefold().replace("[", "[[]") or "*"
    found = [
        (group, [linkset for linkset in group.linksets if fnmatchcase(linkset.name.casefold(), wanted)])
        for group in groups
    ]
    if wanted != "*" and not any(linksets for _, linksets in found):
        raise FormatError("The archive has no object whose name matches '{}'", pattern)
    return [(group, linksets) for group, linksets in found if linksets or not document.is_inventory]


def _assets_of(parts: Iterable[Part]) -> set[str]:
    """Return the UUIDs of all assets that parts name."""
    found: set[str] = set()
    for part in parts:
        found.add(part.sculpt_asset)
        for face in part.entry.looks:
            found |= {face.texture, face.material}
    return found - {"", NULL_ID}


def to_scene(document: Archive, name: str, options: ReadOptions) -> Scene:
    """Map an archive to a scene that places the meshes of its parts.

    Raises
    ------
    FormatError
        The archive cannot be read again.
    """
    return PlacementBuilder(document, name, options).build()

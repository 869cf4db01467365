"""The collections of a placement: one for each file, with groups and levels of detail inside."""

from __future__ import annotations

from collections.abc import Sequence

import bpy

from ....io_formats.core.placement import PlacedCollection, PlacementPart
from ... import names
from ..import_context import ImportContext
from ..objects import hide_levels


class PlacedCollections:
    """Creates the collections of an import, and links its objects to them."""

    def __init__(self, job: ImportContext, parts: Sequence[PlacementPart]) -> None:
        self.job = job
        self.of_parts = [self._new(names.fit(part.name)) for part in parts]
        """The collection of each part."""
        self.groups = [self._add_groups(number, part.collections) for number, part in enumerate(parts)]
        """The collections of each part for the groups in ``PlacementPart.collections``."""
        self._levels: dict[tuple[int, int], bpy.types.Collection] = {}

    def link_object(self, made: bpy.types.Object, part: int, level: int = 0, group: int = -1) -> None:
        """Link an object of a part to the collection of its level of detail, or to that of its group."""
        if level:
            self._level(part, level).objects.link(made)
        else:
            (self.groups[part][group] if group >= 0 else self.of_parts[part]).objects.link(made)

    def link_to_scene(self) -> None:
        """Link the collections to the user's scene; collections of other files are linked without being shown."""
        context = self.job.request.context
        main, *others = self.of_parts
        context.scene.collection.children.link(main)
        if others:
            parts = self._new(names.fit(f"{main.name} Parts"))
            for other in others:
                parts.children.link(other)
            context.scene.collection.children.link(parts)
            for view_layer in context.scene.view_layers:
                layer = view_layer.layer_collection.children.get(parts.name)
                if layer is not None:
                    layer.exclude = True
        hide_levels(context.view_layer, [group for group in self.groups[0] if group.hide_render])

    def _new(self, name: str) -> bpy.types.Collection:
        made: bpy.types.Collection = self.job.keep(bpy.data.collections.new(name))
        return made

    def _level(self, part: int, level: int) -> bpy.types.Collection:
        if (part, level) not in self._levels:
            home = self.of_parts[part]
            inner = self._levels[part, level] = self._new(names.fit(f"{home.name} LOD {level}"))
            inner.hide_viewport = inner.hide_render = True
            home.children.link(inner)
        return self._levels[part, level]

    def _add_groups(self, part: int, groups: Sequence[PlacedCollection]) -> list[bpy.types.Collection]:
        home = self.of_parts[part]
        made: list[bpy.types.Collection] = []
        for group in groups:
            is_taken = names.fit(group.name) in bpy.data.collections
            above = made[group.parent] if group.parent >= 0 else home
            inner = self._new(names.fit(f"{group.name} {above.name}" if is_taken else group.name))
            inner.meshferry.source_name = names.readable(group.name)
            inner.hide_render = group.is_hidden
            # in instanced collections, hiding with the eye icon has no effect
            inner.hide_viewport = group.is_hidden and part > 0
            above.children.link(inner)
            made.append(inner)
        return made

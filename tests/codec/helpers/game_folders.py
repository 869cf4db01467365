"""Folders of Timberborn with an archive of blueprints, and of mods, as the game and its modders lay them out."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

WINDOWS = "Timberborn_Data/StreamingAssets/Modding"
MACOS = "Timberborn.app/Contents/Resources/Data/StreamingAssets/Modding"

COLLECTIONS = {
    "Common": ["Materials/Terrain/Dirt", "Materials/Water"],
    "Folktails": ["Materials/UberAtlas/BaseWood_Brown.Folktails", "Materials/UberAtlas/BaseMetal.Folktails"],
    "IronTeeth": ["Materials/UberAtlas/BaseWood_Brown.IronTeeth", "Materials/Windows.IronTeeth"],
}


def blueprint(collection: str, paths: Sequence[str], key: str = "Materials") -> str:
    return json.dumps({"MaterialCollectionSpec": {"CollectionId": collection, key: paths}})


def make_game(
    folder: Path, collections: Mapping[str, Sequence[str]] = COLLECTIONS, *, below: str = WINDOWS, method: int = 8
) -> Path:
    """Write the archive below a folder; return the folder."""
    archive = folder / below / "Blueprints.zip"
    archive.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(archive, "w", method) as target:
        target.writestr("Goods/Good.Log.blueprint.json", '{"GoodSpec": {"Id": "Log"}}')
        for name, paths in collections.items():
            path = f"MaterialCollections/MaterialCollection.{name}.blueprint.json"
            target.writestr(path, "\ufeff" + blueprint(name, paths))
    return folder


def make_mod(folder: Path, **files: str) -> Path:
    """Write a mod with these collections, by identifier; return the folder of its models."""
    models = folder / "Buildings" / "Lodge"
    models.mkdir(parents=True)
    (folder / "manifest.json").write_text('{"Id": "Mine"}')
    (folder / "MaterialCollections").mkdir()
    for name, text in files.items():
        (folder / "MaterialCollections" / f"MaterialCollection.{name}.blueprint.json").write_text(text)
    return models

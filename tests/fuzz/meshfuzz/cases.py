"""Cases from a seed: case ``n`` of seed ``s`` is the same bytes on every machine that has the same samples.

Each format may have a maker of its own that knows its structure; the others get raw changes to their samples.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import (
    collada_cases,
    image_cases,
    mesh_serializer_cases,
    opensim_archive_cases,
    raw,
    second_life_animation_cases,
    second_life_mutations,
    second_life_seeds,
    second_life_shape_cases,
    timberborn_blueprint_cases,
    timbermesh_mutations,
    timbermesh_seeds,
    timbermesh_wrappings,
    unigine_mutations,
    unigine_project_cases,
    unigine_scene_cases,
    unigine_seeds,
)
from .checkout import ROOT, SAMPLES, load_package
from .tokens import encode

CORPUS = ROOT / "tests" / "fuzz" / "corpus"
"""Small files that reach branches which no other does, or once failed; ``make_corpus.py`` chooses them."""
_LARGEST_SAMPLE = 256 * 1024
_BOMBS = 0.0004
"""Share of files that become very large: one takes as long as hundreds of others. The smoke test has one of each."""


@dataclass(frozen=True)
class Case:
    """One hostile file, and how it was made."""

    number: int
    data: bytes
    recipe: str


@dataclass
class Corpus:
    """What the cases of one format are made from."""

    files: dict[str, bytes] = field(default_factory=dict)
    """Whole files as they are."""
    seeds: Mapping[str, Any] = field(default_factory=dict)
    """Contents in the form that the maker changes."""


Maker = Callable[[Corpus, random.Random], tuple[bytes, str]]

_FOLDERS = {
    "unigine_mesh": "unigine",
    "unigine_animation": "unigine",
    "unigine_skeleton": "unigine",
    "unigine_scene": "unigine_scenes",
    "unigine_texture": "unigine_scenes",
    "unigine_project": "unigine_scenes",
    "timberborn_blueprint": "timberborn_blueprints",
    "second_life_mesh": "secondlife",
    "second_life_bundle": "secondlife",
    "second_life_collada": "collada",
    "second_life_animation": "secondlife_animation",
    "second_life_bvh": "secondlife_animation",
    "second_life_shape": "secondlife_shape",
    "opensim_archive": "opensim_archives",
    "mesh_serializer": "unity_meshserializer",
}
"""Where the samples of a format lie, if not in a folder of its name."""


def sample_files(name: str, extensions: tuple[str, ...]) -> dict[str, bytes]:
    """Return the real files of a format that are here, by name; none in a fresh clone."""
    folder = SAMPLES / _FOLDERS.get(name, name)
    paths = (
        sorted(path for path in folder.rglob("*") if path.name.lower().endswith(extensions)) if folder.is_dir() else []
    )
    return {path.name: path.read_bytes() for path in paths if path.stat().st_size <= _LARGEST_SAMPLE}


def corpus_files(name: str) -> dict[str, bytes]:
    """Return the files of the corpus for a format, by name."""
    return {path.stem: path.read_bytes() for path in sorted(CORPUS.glob(f"{name}-*.bin"))}


def messages_of(files: dict[str, bytes]) -> dict[str, bytes]:
    """Return the inflated contents of whole Timbermesh files by name."""
    inflated = {name: timbermesh_wrappings.unwrap(data) for name, data in files.items()}
    return {name: content for name, content in inflated.items() if content is not None}


def make_timbermesh(corpus: Corpus, rng: random.Random) -> tuple[bytes, str]:
    if rng.random() < _BOMBS:
        return timbermesh_wrappings.bomb(rng)
    if corpus.files and rng.random() < 0.1:
        name, data = pick(corpus.files, rng)
        return raw.mutate(data, rng), f"raw changes to {name}"
    name, content = pick(corpus.seeds, rng)
    pick_change = rng.random()
    if pick_change < 0.75:
        content, how = timbermesh_mutations.mutate(content, rng), "changed fields"
    elif pick_change < 0.95:
        content, how = raw.mutate(content, rng), "raw changes"
    else:
        how = "unchanged"
    data, wrapping = timbermesh_wrappings.wrap(content, rng)
    return data, f"{name}, {how}, {wrapping}"


def make_raw(corpus: Corpus, rng: random.Random) -> tuple[bytes, str]:
    """Change bytes of a sample, without knowing what they mean."""
    name, data = pick(corpus.files, rng) if corpus.files else ("noise", rng.randbytes(rng.choice((0, 1, 4, 100, 5000))))
    return raw.mutate(data, rng), f"raw changes to {name}"


def structured(mutations: Any, pack: Callable[[Any], bytes], *, changed: float, damaged: float) -> Maker:
    """Return the maker of a format whose ``mutations`` change seeds and make bombs.

    Of all cases, the seeds of a share up to ``changed`` have other values, of one up to ``damaged`` other bytes.
    """

    def make(corpus: Corpus, rng: random.Random) -> tuple[bytes, str]:
        choice = rng.random()
        if choice < _BOMBS:
            return mutations.bomb(rng)
        if corpus.files and choice < 0.15:
            name, data = pick(corpus.files, rng)
            return raw.mutate(data, rng), f"raw changes to {name}"
        name = rng.choice(list(corpus.seeds))
        seed = corpus.seeds[name]
        if choice < changed:
            return mutations.mutate(seed, rng), f"{name}, changed values"
        data = pack(seed)
        return (raw.mutate(data, rng), f"{name}, raw changes") if choice < damaged else (data, f"{name}, unchanged")

    return make


def of_files(make: Callable[[dict[str, bytes], random.Random], tuple[bytes, str]]) -> Maker:
    """Return the maker of a format whose cases are made from files alone."""
    return lambda corpus, rng: make(corpus.files, rng)


def pick(files: Mapping[str, bytes], rng: random.Random) -> tuple[str, bytes]:
    """Choose a file, small ones more often: a hundred small cases find more than one large one."""
    names = list(files)
    name = rng.choices(names, [(3000 + len(files[n])) ** -1.5 for n in names])[0]
    return name, files[name]


make_unigine = structured(unigine_mutations, encode, changed=0.8, damaged=0.96)
make_second_life = structured(second_life_mutations, lambda seed: seed.pack(), changed=0.9, damaged=0.97)
_MAKERS: dict[str, tuple[Maker, Mapping[str, Any]]] = {
    "timbermesh": (make_timbermesh, timbermesh_seeds.seeds()),
    "unigine_mesh": (make_unigine, unigine_seeds.meshes()),
    "unigine_animation": (make_unigine, unigine_seeds.animations()),
    "unigine_skeleton": (make_unigine, unigine_seeds.skeletons()),
    "unigine_scene": (of_files(unigine_scene_cases.make), {}),
    "timberborn_blueprint": (of_files(timberborn_blueprint_cases.make), {}),
    "second_life_mesh": (make_second_life, second_life_seeds.assets()),
    "second_life_bundle": (make_second_life, second_life_seeds.bundles()),
    "second_life_collada": (of_files(collada_cases.make), {}),
    "second_life_animation": (of_files(second_life_animation_cases.make_animation), {}),
    "second_life_bvh": (of_files(second_life_animation_cases.make_bvh), {}),
    "second_life_shape": (of_files(second_life_shape_cases.make), {}),
    "opensim_archive": (of_files(opensim_archive_cases.make), {}),
    "mesh_serializer": (of_files(mesh_serializer_cases.make), {}),
}
"""Makers of cases and their seeds: messages, rows or trees of values."""

_PROJECT_FILES: dict[str, tuple[tuple[str, ...], Maker]] = {
    "unigine_texture": ((".texture", ".dds"), of_files(image_cases.make)),
    "unigine_project": ((".mat", ".meta", ".basemat", ".mgraph"), of_files(unigine_project_cases.make)),
}
"""Files of a project other than models: their extensions and makers."""

_WEIGHTS = {"second_life_mesh": 2, "second_life_bundle": 1, "unigine_skeleton": 2}
"""Cases of a format for each three of most others: bundles take ten times as long, and their models are assets."""


class CaseMaker:
    """The cases of all formats, or of one, for a seed."""

    def __init__(self, seed: int, only: str = "", *, use_samples: bool = True) -> None:
        load_package()
        from meshferry.io_formats import registry

        self.seed = seed
        self.sources: list[tuple[str, Corpus, Maker]] = []
        for known in registry.FORMATS:
            if known.is_read and only in ("", known.name):
                samples = sample_files(known.name, known.extensions) if use_samples else {}
                files = corpus_files(known.name) | samples
                make, seeds = _MAKERS.get(known.name, (make_raw, {}))
                if known.name == "timbermesh":
                    seeds = {**seeds, **messages_of(files)}
                self.sources += [(known.name, Corpus(files, seeds), make)] * _WEIGHTS.get(known.name, 3)
        for name, (extensions, make) in _PROJECT_FILES.items():
            if only in ("", name):
                samples = sample_files(name, extensions) if use_samples else {}
                self.sources.append((name, Corpus(corpus_files(name) | samples), make))

    def make(self, number: int) -> Case:
        rng = random.Random(f"{self.seed}:{number}")
        name, corpus, make = self.sources[number % len(self.sources)]
        data, recipe = make(corpus, rng)
        return Case(number, data, f"{name}: {recipe}")


def from_file(path: Path) -> Case:
    """Return a saved case; its number, which chooses the options, is the end of its name."""
    number = path.stem.rpartition("-")[2]
    return Case(int(number) if number.isdigit() else -1, path.read_bytes(), f"file {path.name}")

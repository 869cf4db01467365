"""Cases from a seed: case ``n`` of seed ``s`` is the same bytes on every machine that has the same samples.

Each format may have a maker of its own that knows its structure; the others get raw changes to their samples.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from . import (
    image_cases,
    mesh_serializer_cases,
    raw,
    second_life_animation_cases,
    second_life_mutations,
    second_life_seeds,
    timbermesh_mutations,
    timbermesh_seeds,
    timbermesh_wrappings,
    unigine_mutations,
    unigine_project_cases,
    unigine_scene_cases,
    unigine_seeds,
)
from .checkout import ROOT, SAMPLES, load_package
from .second_life_seeds import Seed
from .tokens import encode
from .unigine_seeds import Row

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

    messages: dict[str, bytes] = field(default_factory=dict)
    """Inflated contents, for the makers that know the structure."""
    files: dict[str, bytes] = field(default_factory=dict)
    """Whole files as they are."""
    rows: dict[str, Row] = field(default_factory=dict)
    """Files as rows of values, for the makers that know them."""
    seeds: Mapping[str, Seed] = field(default_factory=dict)
    """Files as trees of values, for the makers that know those."""


_FOLDERS = {
    "unigine_mesh": "unigine",
    "unigine_animation": "unigine",
    "unigine_skeleton": "unigine",
    "unigine_scene": "unigine_scenes",
    "unigine_texture": "unigine_scenes",
    "unigine_project": "unigine_scenes",
    "second_life_mesh": "secondlife",
    "second_life_bundle": "secondlife",
    "second_life_animation": "secondlife_animation",
    "second_life_bvh": "secondlife_animation",
    "mesh_serializer": "unity_meshserializer",
}
"""Where the samples of a format lie, if not in a folder of its name."""


def sample_files(name: str, extensions: tuple[str, ...]) -> dict[str, bytes]:
    """Return the real files of a format that are here, by name; none in a fresh clone."""
    folder = SAMPLES / _FOLDERS.get(name, name)
    paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() in extensions) if folder.is_dir() else []
    return {path.name: path.read_bytes() for path in paths if path.stat().st_size <= _LARGEST_SAMPLE}


def corpus_files(name: str) -> dict[str, bytes]:
    """Return the files of the corpus for a format, by name."""
    return {path.stem: path.read_bytes() for path in sorted(CORPUS.glob(f"{name}-*.bin"))}


def timbermesh_corpus(files: dict[str, bytes]) -> Corpus:
    seeds = timbermesh_seeds.seeds()
    inflated = {name: timbermesh_wrappings.unwrap(data) for name, data in files.items()}
    return Corpus({**seeds, **{name: content for name, content in inflated.items() if content is not None}}, files)


def make_timbermesh(corpus: Corpus, rng: random.Random) -> tuple[bytes, str]:
    if rng.random() < _BOMBS:
        return timbermesh_wrappings.bomb(rng)
    if corpus.files and rng.random() < 0.1:
        name, data = pick(corpus.files, rng)
        return raw.mutate(data, rng), f"raw changes to {name}"
    name, content = pick(corpus.messages, rng)
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


def unigine_corpus(rows: dict[str, Row]) -> Callable[[dict[str, bytes]], Corpus]:
    return lambda files: Corpus(files=files, rows=rows)


def make_unigine(corpus: Corpus, rng: random.Random) -> tuple[bytes, str]:
    choice = rng.random()
    if choice < _BOMBS:
        return unigine_mutations.bomb(rng)
    if corpus.files and choice < 0.15:
        name, data = pick(corpus.files, rng)
        return raw.mutate(data, rng), f"raw changes to {name}"
    name = rng.choice(list(corpus.rows))
    row = corpus.rows[name]
    if choice < 0.8:
        return unigine_mutations.mutate(row, rng), f"{name}, changed values"
    data = encode(row)
    return (raw.mutate(data, rng), f"{name}, raw changes") if choice < 0.96 else (data, f"{name}, unchanged")


def second_life_corpus(seeds: Mapping[str, Seed]) -> Callable[[dict[str, bytes]], Corpus]:
    return lambda files: Corpus(files=files, seeds=seeds)


def make_second_life(corpus: Corpus, rng: random.Random) -> tuple[bytes, str]:
    choice = rng.random()
    if choice < _BOMBS:
        return second_life_mutations.bomb(rng)
    if corpus.files and choice < 0.15:
        name, data = pick(corpus.files, rng)
        return raw.mutate(data, rng), f"raw changes to {name}"
    name = rng.choice(list(corpus.seeds))
    seed = corpus.seeds[name]
    if choice < 0.9:
        return second_life_mutations.mutate(seed, rng), f"{name}, changed values"
    data = seed.pack()
    return (raw.mutate(data, rng), f"{name}, raw changes") if choice < 0.97 else (data, f"{name}, unchanged")


def make_second_life_animation(corpus: Corpus, rng: random.Random) -> tuple[bytes, str]:
    return second_life_animation_cases.make_animation(corpus.files, rng)


def make_second_life_bvh(corpus: Corpus, rng: random.Random) -> tuple[bytes, str]:
    return second_life_animation_cases.make_bvh(corpus.files, rng)


def make_mesh_serializer(corpus: Corpus, rng: random.Random) -> tuple[bytes, str]:
    return mesh_serializer_cases.make(corpus.files, rng)


def make_image(corpus: Corpus, rng: random.Random) -> tuple[bytes, str]:
    return image_cases.make(corpus.files, rng)


def make_unigine_scene(corpus: Corpus, rng: random.Random) -> tuple[bytes, str]:
    return unigine_scene_cases.make(corpus.files, rng)


def make_unigine_project(corpus: Corpus, rng: random.Random) -> tuple[bytes, str]:
    return unigine_project_cases.make(corpus.files, rng)


def pick(files: dict[str, bytes], rng: random.Random) -> tuple[str, bytes]:
    """Choose a file, small ones more often: a hundred small cases find more than one large one."""
    names = list(files)
    name = rng.choices(names, [(3000 + len(files[n])) ** -1.5 for n in names])[0]
    return name, files[name]


Maker = Callable[[Corpus, random.Random], tuple[bytes, str]]
_MAKERS: dict[str, tuple[Callable[[dict[str, bytes]], Corpus], Maker]] = {
    "timbermesh": (timbermesh_corpus, make_timbermesh),
    "unigine_mesh": (unigine_corpus(unigine_seeds.meshes()), make_unigine),
    "unigine_animation": (unigine_corpus(unigine_seeds.animations()), make_unigine),
    "unigine_skeleton": (unigine_corpus(unigine_seeds.skeletons()), make_unigine),
    "unigine_scene": (lambda files: Corpus(files=files), make_unigine_scene),
    "second_life_mesh": (second_life_corpus(second_life_seeds.assets()), make_second_life),
    "second_life_bundle": (second_life_corpus(second_life_seeds.bundles()), make_second_life),
    "second_life_animation": (lambda files: Corpus(files=files), make_second_life_animation),
    "second_life_bvh": (lambda files: Corpus(files=files), make_second_life_bvh),
    "mesh_serializer": (lambda files: Corpus(files=files), make_mesh_serializer),
}

_PROJECT_FILES: dict[str, tuple[tuple[str, ...], Maker]] = {
    "unigine_texture": ((".texture", ".dds"), make_image),
    "unigine_project": ((".mat", ".meta", ".basemat", ".mgraph"), make_unigine_project),
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
                prepare, make = _MAKERS.get(known.name, (lambda files: Corpus(files=files), make_raw))
                self.sources += [(known.name, prepare(files), make)] * _WEIGHTS.get(known.name, 3)
        for name, (extensions, make) in _PROJECT_FILES.items():
            if only in ("", name):
                samples = sample_files(name, extensions) if use_samples else {}
                self.sources.append((name, Corpus(files=corpus_files(name) | samples), make))

    def make(self, number: int) -> Case:
        rng = random.Random(f"{self.seed}:{number}")
        name, corpus, make = self.sources[number % len(self.sources)]
        data, recipe = make(corpus, rng)
        return Case(number, data, f"{name}: {recipe}")


def from_file(path: Path) -> Case:
    """Return a saved case; its number, which chooses the options, is the end of its name."""
    number = path.stem.rpartition("-")[2]
    return Case(int(number) if number.isdigit() else -1, path.read_bytes(), f"file {path.name}")

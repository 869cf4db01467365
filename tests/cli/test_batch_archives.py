"""Archives of OpenSim: what is read out of good ones, and what bad and hostile ones do."""

from __future__ import annotations

import gzip
import io
import tarfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from meshferry.cli.batch import sources
from meshferry.io_formats.core.errors import FormatError
from meshferry.io_formats.second_life.opensim import container
from meshfuzz.opensim_archive_seeds import opensim_tar, v7_entry

ONE = "assets/0b0c0e6a-5f3e-4a0e-9d57-1c5e5c5e5c01_mesh.llmesh"
TWO = "assets/0b0c0e6a-5f3e-4a0e-9d57-1c5e5c5e5c02_mesh.llmesh"
THREE = "assets/0b0c0e6a-5f3e-4a0e-9d57-1c5e5c5e5c03_mesh.llmesh"
TEXTURE = "assets/0b0c0e6a-5f3e-4a0e-9d57-1c5e5c5e5c09_texture.jp2"


@pytest.fixture
def archive(tmp_path: Path) -> Callable[..., Path]:
    def make(data: bytes, name: str = "region.oar", *, packed: bool = True) -> Path:
        path = tmp_path / name
        path.write_bytes(gzip.compress(data, 1) if packed else data)
        return path

    return make


def read(path: Path) -> tuple[dict[str, bytes], list[str], str]:
    """Return the contents of an archive, its warnings, and the error at its end."""
    found: dict[str, bytes] = {}
    warned: list[str] = []
    error = ""
    try:
        for name, content in sources.archive_members(path, warned.append):
            assert name not in found
            found[name] = content
    except FormatError as problem:
        error = str(problem)
        assert path.name in error
    return found, warned, error


REGION = opensim_tar(
    ("archive.xml", b"<archive/>"),
    ("assets/", b""),
    (ONE, b"{one}"),
    (TEXTURE, bytes(3000)),
    (TWO, b"{two}" * 1000),
    ("objects/Crate_128-128-025__x.llmesh.xml", b"<object/>"),
    ("regions/1_1_" + "Arizona" * 20 + "/assets/x_mesh.llmesh", b"{three}"),
)


@pytest.mark.parametrize("packed", [True, False])
def test_meshes_of_a_region(archive: Callable[..., Path], packed: bool) -> None:
    path = archive(REGION, packed=packed)
    found, warned, error = read(path)
    long_name = "regions/1_1_" + "Arizona" * 20 + "/assets/x_mesh.llmesh"
    assert list(found.items()) == [(ONE, b"{one}"), (TWO, b"{two}" * 1000), (long_name, b"{three}")]
    assert (warned, error) == ([], "")


def test_other_writers_of_tar(tmp_path: Path) -> None:
    """Archives from other packers: other header layouts, several gzip members, names that are not ASCII."""
    for kind, number in {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}.items():
        path = tmp_path / f"{kind}.tgz"
        with tarfile.open(path, "w:gz", format=number) as tar:
            for name in ("./" + ONE, "dir/größe_mesh.LLMESH"):
                info = tarfile.TarInfo(name)
                info.size, info.mtime = 3, 1.5 if kind == "pax" else 1
                tar.addfile(info, io.BytesIO(b"{1}"))
        found, warned, error = read(path)
        assert (list(found), warned, error) == (["./" + ONE, "dir/größe_mesh.LLMESH"], [], "")
    path = tmp_path / "pieces.iar"
    path.write_bytes(b"".join(gzip.compress(REGION[start : start + 700]) for start in range(0, len(REGION), 700)))
    assert len(read(path)[0]) == 3


def test_every_truncation_keeps_what_came_before(archive: Callable[..., Path]) -> None:
    """Cut anywhere, an archive gives a prefix of its meshes, whole ones, and says that it is cut off."""
    names = [ONE, TWO]
    data = opensim_tar((ONE, b"{one}" * 150), (TWO, b"{two}" * 100), (TEXTURE, bytes(600)))
    packed = gzip.compress(data)
    counts = set()
    for length in range(len(packed)):
        found, _, error = read(archive(packed[:length], packed=False))
        assert list(found) == names[: len(found)]
        assert "cut off" in error or "not a gzipped tar" in error, length
        counts.add(len(found))
    for length in range(0, len(data) - 1024, 37):
        found, _, error = read(archive(data[:length], packed=False))
        assert list(found) == names[: len(found)]
        # a plain tar cut between two files looks whole
        assert "cut off" in error or "damaged" in error or "not a gzipped tar" in error or length % 512 == 0, length
        counts.add(len(found))
    assert counts == {0, 1, 2}


def test_flipped_bytes_end_in_one_error_or_none(archive: Callable[..., Path]) -> None:
    data = opensim_tar((ONE, b"{one}"), (TWO, b"{two}"))
    for place in [*range(0, 512, 3), *range(1024, 1536, 3)]:
        broken = bytearray(data)
        broken[place] ^= 0xFF
        found, warned, error = read(archive(bytes(broken), packed=False))
        if place < 345:
            assert error and "Error" not in error, place  # the header has a checksum
        assert len(found) <= 2 and not warned
    packed = gzip.compress(data)
    for place in range(0, len(packed), 2):
        broken = bytearray(packed)
        broken[place] ^= 0x55
        read(archive(bytes(broken), packed=False))


def test_names_that_come_again(archive: Callable[..., Path]) -> None:
    found, warned, _ = read(archive(opensim_tar((ONE, b"{first}"), (TWO, b"{}"), (ONE, b"{second}"))))
    assert found == {ONE: b"{first}", TWO: b"{}"}
    assert warned == [f"{ONE} is left out: its name occurs twice; the first one is used"]


def test_links_are_not_followed(archive: Callable[..., Path], tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"{secret}")
    for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.DIRTYPE):
        stream = io.BytesIO()
        with tarfile.open(fileobj=stream, mode="w") as tar:
            info = tarfile.TarInfo(ONE)
            info.type, info.linkname = kind, str(secret)
            tar.addfile(info)
            after = tarfile.TarInfo(TWO)
            after.size = 2
            tar.addfile(after, io.BytesIO(b"{}"))
        found, warned, error = read(archive(stream.getvalue()))
        assert found == {TWO: b"{}"} and not error
        assert len(warned) == (kind != tarfile.DIRTYPE)


@pytest.mark.parametrize(
    "entry",
    [
        v7_entry(ONE.encode(), b"{}", size=b"%011o" % 2**32),  # 4 GB that are not there
        v7_entry(TEXTURE.encode(), b"{}", size=b"%011o" % 2**32),
        v7_entry(ONE.encode(), b"{}", size=b"\x80\0\0\x17\x48\x76\xe8\0\0\0\0"),  # the same in 256s, far more
        v7_entry(ONE.encode(), b"{}", size=b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00"),  # less than nothing
        v7_entry(ONE.encode(), b"{}", size=b"0000zz00000"),
        v7_entry(b"././@LongLink", b"", b"L", size=b"%011o" % 2**32),
        v7_entry(b"././@LongLink", bytes(2**20), b"L"),
        v7_entry(b"pax", b"11 size=-99\n12 path=a\nb\n", b"x") + v7_entry(ONE.encode(), b"{}"),
        v7_entry(b"pax", b"0 size=9\n", b"x") + v7_entry(ONE.encode(), b"{}"),
        v7_entry(b"pax", b"9" * 30000 + b"\n", b"x") + v7_entry(ONE.encode(), b"{}"),
        v7_entry(b"sparse", b"", b"S"),
        v7_entry(b"././@LongLink", b"x", b"L") * 5000,
    ],
    ids=lambda entry: entry[:13].rstrip(b"\0").decode(),
)
def test_hostile_headers(archive: Callable[..., Path], entry: bytes) -> None:
    """What a header claims is not believed: an error or a remark, soon, and without memory for what is not there."""
    good = v7_entry(TWO.encode(), b"{two}")
    for packed in (True, False):
        path = archive(good + entry + bytes(1024), packed=packed)
        tracemalloc.start()
        found, warned, error = read(path)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert found[TWO] == b"{two}"
        assert warned or error or found.get(ONE, b"{}") == b"{}"  # empty numbers and empty files are read over
        assert "damaged" in error or b"9" * 30000 not in entry  # which old Pythons take hours to make out
        assert "Traceback" not in error and len(error) < 300
        assert peak < 20_000_000


@pytest.mark.slow
def test_sparse_map_that_does_not_end(archive: Callable[..., Path]) -> None:
    """GNU's own layout counts holes in front of a file, as many as it likes."""
    pax = b"".join(b"%d %s\n" % (len(text) + 4, text) for text in (b"GNU.sparse.major=1", b"GNU.sparse.minor=0"))
    numbers = b"400000000\n" + b"300\n" * 4_000_000
    data = v7_entry(b"pax", pax, b"x") + v7_entry(ONE.encode(), numbers)
    path = archive(v7_entry(TWO.encode(), b"{two}") + data + bytes(1024))
    tracemalloc.start()
    found, warned, error = read(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert list(found) == [TWO]
    assert warned or "too long" in error
    assert peak < 30_000_000


def test_bombs_are_stopped(archive: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Small files that inflate without end, and archives of nothing but names."""
    monkeypatch.setattr(container, "LEAST_INFLATED_LIMIT", 2**20)
    monkeypatch.setattr(container, "LARGEST_ASSET", 2**18)
    monkeypatch.setattr(container, "INFLATED_RATIO", 10)
    found, warned, error = read(archive(opensim_tar((ONE, b"{}"), (TEXTURE, bytes(2**23)), (TWO, b"{}"))))
    assert list(found) == [ONE]
    assert "inflates to more than 1,048,576 bytes" in error
    found, warned, error = read(archive(opensim_tar((ONE, bytes(2**18 + 1)), (TWO, b"{}")), packed=False))
    assert list(found) == [TWO]
    assert warned == [f"{ONE} is left out: its 262,145 bytes are more than the 262,144 that are read"]
    monkeypatch.setattr(container, "MOST_MEMBERS", 5)
    _, _, error = read(archive(opensim_tar(*((f"assets/{index}", b"") for index in range(6))), packed=False))
    assert "more than 5 files" in error


def test_what_is_no_archive(tmp_path: Path) -> None:
    for name, data in {"page.oar": b"<html>" * 200, "zip.oar": b"PK\3\4" + bytes(2000), "empty.oar": b""}.items():
        (tmp_path / name).write_bytes(data)
        found, _, error = read(tmp_path / name)
        assert not found
        assert error == f"{tmp_path / name}: This is not a gzipped tar file, as OpenSim's archives are (at byte 0)" or (
            name == "empty.oar" and error
        )
    assert "cannot be read" in read(tmp_path / "missing.oar")[2]
    (tmp_path / "folder.oar").mkdir()
    assert "not a file" in read(tmp_path / "folder.oar")[2]
    # nothing but zeros is an archive without anything
    (tmp_path / "zeros.oar").write_bytes(bytes(2048))
    assert read(tmp_path / "zeros.oar") == ({}, [], "")


@pytest.mark.parametrize(
    ("archive_name", "member", "place"),
    [
        ("lands/region.oar", ONE, "lands/region/" + ONE),
        ("x.tar.gz", ONE, "x/" + ONE),
        ("X.IAR", "./" + ONE, "X/" + ONE),
        ("a.b.oar", "../../../etc/x.llmesh", "a.b/etc/x.llmesh"),
        ("a.oar", "/etc/x.llmesh", "a/etc/x.llmesh"),
        ("a.oar", "C:\\Windows\\x.llmesh", "a/C_/Windows/x.llmesh"),
        ("a.oar", "assets/nul.llmesh", "a/assets/nul_.llmesh"),
        ("a.oar", "assets/a:b*\n.llmesh", "a/assets/a_b__.llmesh"),
        ("a.oar", "x" * 400 + "_animation.bvh", "a/" + "x" * 200 + "_animation.bvh"),
        ("a.oar", "..", "a/_"),
        ("a.oar", "x" * 400 + ".llmesh", "a/" + "x" * 200 + ".llmesh"),
    ],
)
def test_places_stay_below_the_archive(archive_name: str, member: str, place: str) -> None:
    assert sources.place_of(archive_name, member) == place


def test_members_by_name_in_order_and_out_of_it(archive: Callable[..., Path]) -> None:
    path = archive(opensim_tar((ONE, b"{1}"), (TWO, b"{2}"), (THREE, b"{3}")))
    reader = sources.ArchiveReader(path)
    assert [reader.content(name) for name in (ONE, THREE)] == [b"{1}", b"{3}"]
    assert reader.content(TWO) == b"{2}"  # passed already
    assert reader.content(TWO) == b"{2}"
    with pytest.raises(FormatError, match=r"region\.oar: assets/gone.llmesh: It is not in the archive any more"):
        reader.content("assets/gone.llmesh")
    assert reader.content(ONE) == b"{1}"


def test_members_of_a_broken_archive_by_name(archive: Callable[..., Path]) -> None:
    data = opensim_tar((ONE, b"{1}"), (TWO, b"{2}"))
    path = archive(data[: 3 * 512 + 1], packed=False)
    reader = sources.ArchiveReader(path)
    for _ in range(2):
        with pytest.raises(FormatError, match=r"_mesh\.llmesh: The archive is"):
            reader.content(TWO)
    assert reader.content(ONE) == b"{1}"

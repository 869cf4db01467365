"""The report of a batch: what stands on its pages, read by a parser that knows nothing of how they are made."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

import pytest
from batch_stand_ins import losses
from meshferry.io_formats.disk.reach import command_text

VOID = {"meta", "input", "img", "br", "link", "hr"}
PICTURE = b"RIFF\x04\x00\x00\x00WEBP"
HASH = "0123456789abcdef" * 2


class Page(HTMLParser):
    """A page that was read: every element has to be closed where it was opened."""

    def __init__(self, path: Path) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.cards: dict[str, str] = {}
        """Text of each article, by id."""
        self.scripts: list[str] = []
        self.text = ""
        self.source = path.read_bytes().decode("utf-8")
        self._open: list[str] = []
        self._card = ""
        self.feed(self.source)
        self.close()
        assert not self._open, self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {key: value or "" for key, value in attrs}
        self.elements.append((tag, given))
        if tag == "article":
            self._card = given["id"]
            assert self._card not in self.cards
            self.cards[self._card] = ""
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in {"path", "use"}:
            return
        assert self._open.pop() == tag
        if tag == "article":
            self._card = ""

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {key: value or "" for key, value in attrs}))

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] == "script":
            self.scripts.append(data)
        elif self._open and self._open[-1] != "style":
            self.text += data
            if self._card:
                self.cards[self._card] += data

    def all(self, tag: str) -> list[dict[str, str]]:
        return [given for name, given in self.elements if name == tag]

    @property
    def filters(self) -> list[str]:
        return [one["data-filter"] for one in self.all("button")]

    @property
    def data(self) -> Any:
        """What the index of several pages searches."""
        return json.loads(self.scripts[0])


def make_result(number: int = 0, path: str = "props/lamp.mesh", **given: Any) -> Any:
    from meshferry.cli.batch.tasks import Result, Status, Task

    ended = Status(given.pop("ended", "done"))
    target = given.pop("target", path.rpartition(".")[0] + ".blend")
    task = Task(number, 0, path, given.pop("member", ""), target, 1, 1)
    given.setdefault("outputs", [target] if ended.is_good else [])
    return Result(task, ended, **given)


def write(results: Any, output: Path, **given: Any) -> Path:
    from meshferry.cli.batch.report import About, write_report

    about = About("Meshferry 1.2.3", ["--to", "blend", "--clip", "A b"], ["/models"], 0.0, given.pop("no_pictures", ""))
    return write_report(results, about, output, given.pop("to", output / "report.html"), **given)


def test_one_page_tells_everything_of_each_model(tmp_path: Path) -> None:
    facts = {"nodes": 1, "triangles": 12345, "vertices": 678, "materials": 2, "bones": 9, "shape_keys": 1}
    results = [
        make_result(0, facts=facts | {"clips": [{}, {}]}, warnings=losses("Roof: no UV layer", "Door: no UV layer")),
        make_result(1, "fish.anim", ended="unchanged", seconds=0.012),
        make_result(2, "odd/broken.mesh", ended="failed", error="The file is cut off"),
        make_result(3, "odd/deadly.mesh", ended="crashed", error="The process died of signal 11", seconds=75),
        make_result(4, "odd/endless.mesh", ended="timed out"),
    ]
    page = Page(write(results, tmp_path))
    assert list(page.cards) == ["m0", "m1", "m2", "m3", "m4"]
    lamp = page.cards["m0"].replace("\N{NO-BREAK SPACE}", " ")
    counts = "1 object · 12,345 triangles · 678 vertices · 2 materials · 9 bones · 1 shape key · 2 animations"
    for text in ("lamp.mesh", "props", counts, "Done", "lamp.blend", "2 warnings", "Roof, Door: no UV layer"):
        assert text in lamp
    assert "Unchanged" in page.cards["m1"] and "12 ms" in page.cards["m1"]
    assert "Failed" in page.cards["m2"] and "The file is cut off" in page.cards["m2"]
    assert "Crashed" in page.cards["m3"] and "signal 11" in page.cards["m3"] and "1 min 15 s" in page.cards["m3"]
    assert "Timed out" in page.cards["m4"]
    kinds = [one["data-result"] for one in page.all("article")]
    assert kinds == ["done", "unchanged", "failed", "quarantined", "quarantined"]
    assert page.filters == ["all", "done", "unchanged", "failed", "quarantined", "warned"]
    assert [one["data-triangles"] for one in page.all("article")] == ["12345", "0", "0", "0", "0"]
    assert (
        "Meshferry 1.2.3" in page.text
        and f"--to blend --clip {command_text(['A b'])}" in page.text
        and "/models" in page.text
    )
    assert re.search(r"3\s*</dd>|<dd>3</dd>", page.source), "models that were not converted are summed up"


def test_only_filters_for_what_is_there(tmp_path: Path) -> None:
    assert Page(write([make_result()], tmp_path)).filters == ["all", "done"]
    assert not Page(write([], tmp_path)).cards


NASTY = [
    "<script>alert(1)</script>.mesh",
    "</article></main><b>.mesh",
    '" onmouseover="x.mesh',
    "a&lt;b&amp;.mesh",
    "javascript:alert(1).mesh",
    "//elsewhere.example/x.mesh",
    "back\\slash ' quote #1?.mesh",
    "${title} $style %s {0}.mesh",
    "日本語 Ünïcödé e\u0301 🪔.mesh",
    "عربي.mesh",
    "line\nbreak\ttab\x07\x1b[0m.mesh",
    "turned\u202egnp.mesh",
    "bytes\udcff\udc80.mesh",
    "half\ud83d.mesh",
    "--><!--.mesh",
    "]]>.mesh",
]


@pytest.mark.parametrize("place", ["path", "member", "warnings", "error", "output"])
def test_nothing_that_files_are_called_is_markup(tmp_path: Path, place: str) -> None:
    made = {
        "path": lambda text: make_result(path=text),
        "member": lambda text: make_result(path="region.oar", member=f"assets/{text}"),
        "warnings": lambda text: make_result(warnings=losses(f"{text}: odd", text)),
        "error": lambda text: make_result(ended="failed", error=f"{text} " * 40),
        "output": lambda text: make_result(outputs=["a/" + text, text]),
    }[place]
    harmless = Page(write([made("harmless.mesh")] * len(NASTY), tmp_path))
    page = Page(write([made(text) for text in NASTY], tmp_path, no_pictures=NASTY[0]))
    extra = Counter(tag for tag, _ in page.elements)
    extra.subtract(tag for tag, _ in harmless.elements)
    # a folder, the notice and links that no system could follow; nothing else came from a name
    assert {tag for tag, count in extra.items() if count} <= {"p", "bdi", "a"}
    assert not [key for _, given in page.elements for key in given if key.startswith("on")]
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202e\ud800-\udfff]", page.source)
    for link in page.all("a"):
        assert not re.match(r"[a-z]+:|//|\\", link["href"], re.IGNORECASE)
    assert "<script>alert(1)<" in page.cards["m0"]
    assert "日本語 Ünïcödé e\u0301 🪔.mesh" in page.cards["m8"]


@pytest.mark.skipif(sys.platform in {"win32", "darwin"}, reason="the file system takes no such names")
def test_links_lead_to_the_files(tmp_path: Path) -> None:
    """Followed as a browser would, byte by byte."""
    output = tmp_path / "to & fro #1"
    names = [name for name in NASTY if "\ud83d" not in name and "/" not in name]
    for name in names:
        (output / "a b").mkdir(parents=True, exist_ok=True)
        (output / "a b" / name).write_bytes(b"")
    results = [make_result(number, "x.mesh", outputs=[f"a b/{name}"]) for number, name in enumerate(names)]
    for to in (output / "report.html", output / "meshferry-batch" / "report.html", tmp_path / "else where" / "r.html"):
        page = Page(write(results, output, to=to))
        places = [os.fsencode(to.parent) + b"/" + unquote_to_bytes(link["href"]) for link in page.all("a")]
        assert len(places) == len(names)
        assert all(os.path.isfile(place) for place in places)


def test_a_page_needs_nothing_else(tmp_path: Path) -> None:
    """No address of anything but outputs and pages; the one script is the one that the page's policy allows."""
    page = Page(write([make_result(), make_result(1, "b.mesh")], tmp_path, a_page=1))
    pages = [page, Page(tmp_path / "report-001.html"), Page(tmp_path / "report-002.html")]
    for one in pages:
        assert "://" not in one.source
        assert not one.all("link") and not [given for given in one.all("script") if "src" in given]
        assert not re.search(r"url\(|@import", one.source)
        policy = next(given["content"] for given in one.all("meta") if "http-equiv" in given)
        digest = base64.b64encode(hashlib.sha256(one.scripts[-1].encode()).digest()).decode()
        assert f"script-src 'sha256-{digest}'" in policy and "default-src 'none'" in policy


def test_pictures_are_inside(tmp_path: Path) -> None:
    folder = tmp_path / "meshferry-batch" / "pictures"
    folder.mkdir(parents=True)
    (folder / f"{HASH}.webp").write_bytes(PICTURE)
    (folder / f"{HASH[::-1]}.webp").write_bytes(b"\x89PNG\r\n\x1a\n")
    (folder / f"{'a' * 32}.webp").write_bytes(b"<svg onload='alert(1)'>")
    (tmp_path / "secret.webp").write_bytes(PICTURE)
    hashes = [HASH, HASH[::-1], "a" * 32, "b" * 32, "", "../../secret"]
    page = Page(write([make_result(number, hash=one) for number, one in enumerate(hashes)], tmp_path))
    shown = [picture["src"] for picture in page.all("img")]
    assert shown == [
        "data:image/webp;base64," + base64.b64encode(PICTURE).decode(),
        "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n").decode(),
    ]
    assert [one["href"] for one in page.all("use")] == ["#none"] * 4


def test_many_models_are_pages_that_an_index_finds(tmp_path: Path) -> None:
    results = [
        make_result(0, "a/one.mesh"),
        make_result(1, "a/two.mesh", warnings=losses("x")),
        make_result(2, "b/</script>.mesh", ended="failed", error="no"),
        make_result(3, "region.oar", member="assets/4.llmesh", ended="crashed", warnings=losses("x")),
        make_result(4, "five.mesh", ended="unchanged"),
    ]
    index = Page(write(iter(results), tmp_path, a_page=2))
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *("report-001.html", "report-002.html", "report-003.html"),
        "report.html",
    ]
    pages = [Page(tmp_path / f"report-{number:03}.html") for number in (1, 2, 3)]
    assert [list(page.cards) for page in pages] == [["m0", "m1"], ["m2", "m3"], ["m4"]]
    assert not index.cards
    assert index.filters == ["all", "done", "unchanged", "failed", "quarantined", "warned"]
    links = [[link["href"] for link in page.all("a") if link["href"].startswith("report")] for page in pages]
    assert links == [
        ["report.html", "report-002.html"] * 2,
        ["report.html", "report-001.html", "report-003.html"] * 2,
        ["report.html", "report-002.html"] * 2,
    ]
    assert [link["href"] for link in index.all("a")] == ["report-001.html", "report-002.html", "report-003.html"]
    data = index.data
    assert data["results"] == ["done", "unchanged", "failed", "quarantined"]
    assert (data["stem"], data["suffix"], data["a_page"]) == ("report-", ".html", 2)
    assert data["models"] == [
        ["a", "one.mesh", 0, "two.mesh", 1],
        ["b/<", "script>.mesh", 4],
        ["region.oar: assets", "4.llmesh", 7],
        ["", "five.mesh", 2],
    ]


def test_exactly_a_page_needs_no_index(tmp_path: Path) -> None:
    assert len(Page(write([make_result(number) for number in range(3)], tmp_path, a_page=3)).cards) == 3
    assert len(list(tmp_path.iterdir())) == 1


def test_names_that_no_encoding_explains_are_found_in_the_index(tmp_path: Path) -> None:
    index = Page(write([make_result(number, name) for number, name in enumerate(NASTY)], tmp_path, a_page=3))
    assert "<" not in index.scripts[0], "browsers read what is inside of a script element in a way of their own"
    found = [name for _, *row in index.data["models"] for name in row[::2]]
    assert len(found) == len(NASTY)
    assert "日本語 Ünïcödé e\u0301 🪔.mesh" in found and r"bytes\udcff\udc80.mesh" in found


def test_pages_are_written_while_results_come(tmp_path: Path) -> None:
    """A library of any size goes through: no more than two pages of results wait for their writing."""
    seen: list[int] = []

    def results() -> Iterator[Any]:
        for number in range(50):
            seen.append(len(list(tmp_path.glob("report-*.html"))))
            yield make_result(number, f"{number}.mesh")

    write(results(), tmp_path, a_page=5)
    assert all(written >= number // 5 - 2 for number, written in enumerate(seen))


def test_old_pages_of_a_longer_report_go_away(tmp_path: Path) -> None:
    results = [make_result(number, f"{number}.mesh") for number in range(6)]
    write(results, tmp_path, a_page=1)
    for kept in ("report-099.html", "report-new.html", "other-005.html"):
        (tmp_path / kept).write_text("<p>unrelated</p>", "utf-8")
    write(results[:3], tmp_path, a_page=1)
    kept_files = {"report-099.html", "report-new.html", "other-005.html"}
    assert {path.name for path in tmp_path.iterdir()} - kept_files == {
        *("report-001.html", "report-002.html", "report-003.html"),
        "report.html",
    }
    write(results[:1], tmp_path, a_page=1)
    assert {path.name for path in tmp_path.iterdir()} == {"report.html", *kept_files}


def test_a_report_that_cannot_be_written_is_one_refusal(tmp_path: Path) -> None:
    from meshferry.io_formats.core.errors import ExportError

    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ExportError, match="the folder cannot be made"):
        write([], tmp_path, to=tmp_path / "file" / "report.html")
    (tmp_path / "report.html").mkdir()
    with pytest.raises(ExportError, match=r"report\.html: the file cannot be written"):
        write([], tmp_path)


def test_facts_that_somebody_broke_do_not_stop_the_report(tmp_path: Path) -> None:
    facts = {"triangles": "many", "vertices": None, "nodes": float("inf"), "bones": float("nan"), "clips": 3}
    page = Page(write([make_result(facts=facts, seconds=float("nan"))], tmp_path))
    assert "3\N{NO-BREAK SPACE}animations" in page.cards["m0"]


def test_thousands_of_warnings_of_one_model_are_summed_up(tmp_path: Path) -> None:
    warnings = losses(*(f"Object {number}: kind {number % 100}" for number in range(5000)))
    page = Page(write([make_result(warnings=warnings, outputs=[f"{n}.blend" for n in range(500)])], tmp_path))
    assert "5,000 warnings" in page.cards["m0"] and "and 60 more kinds" in page.cards["m0"]
    assert "500 files" in page.cards["m0"] and "and 460 more files" in page.cards["m0"]
    assert len(page.source) < 60_000


# -- which pictures are drawn ---------------------------------------------------------------------------------------


def test_pictures_are_wanted_of_what_could_be_read(tmp_path: Path) -> None:
    from meshferry.cli.batch.report_pictures import PictureRun, picture_file

    run = PictureRun(tmp_path)
    assert run.wants(make_result(hash=HASH))
    assert run.wants(make_result(hash=HASH, ended="unchanged"))
    assert run.wants(make_result(hash=HASH, ended="failed", facts={"nodes": 1}))
    assert not run.wants(make_result(hash=HASH, ended="failed"))
    assert not run.wants(make_result(hash=HASH, ended="crashed", facts={"nodes": 1}))
    assert not run.wants(make_result(hash=""))
    assert not run.wants(make_result(hash="../" + HASH))
    place = picture_file(tmp_path, HASH)
    assert place == tmp_path / "meshferry-batch" / "pictures" / f"{HASH}.webp"
    place.parent.mkdir(parents=True)
    place.write_bytes(b"")
    assert run.wants(make_result(hash=HASH)), "nothing is in it"
    place.write_bytes(b"\x89PNG\r\n\x1a\n")  # of a Blender that lacks WebP
    assert not run.wants(make_result(hash=HASH))


def test_a_machine_that_cannot_draw_is_given_up(tmp_path: Path) -> None:
    from meshferry.cli.batch.report_pictures import PictureRun
    from meshferry.cli.batch.tasks import CANNOT_DRAW

    refused = make_result(ended="failed", error="Blender cannot draw a picture: no", error_code=CANNOT_DRAW)
    dead = make_result(ended="crashed", error="The process died of signal 6")
    empty = make_result(ended="failed", error="There is nothing to see in it")

    run = PictureRun(tmp_path)
    for result in (empty, empty, empty, refused, empty):
        run.note(result)
        assert not run.problem
    run.note(dead)
    assert "signal 6" in run.problem and "OpenGL" in run.problem
    assert ("apt install" in run.problem) == (sys.platform == "linux")
    assert not run.wants(make_result(hash=HASH))

    run = PictureRun(tmp_path)
    for result in (make_result(), dead, refused, dead, dead):
        run.note(result)
    assert not run.problem, "where one has come about, others die of their own faults"
    assert run.wants(make_result(hash=HASH))

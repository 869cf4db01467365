"""Results that several processes compute once."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

import pytest
from meshferry.io_formats.disk import locks
from meshferry.io_formats.projects import LONGEST_AGE, SharedResults


def shared(folder: Path) -> SharedResults:
    return SharedResults(folder / "store", lambda: None)


def fail() -> None:
    raise AssertionError("computed again")


def test_a_result_is_computed_once(tmp_path: Path) -> None:
    assert shared(tmp_path).get("a", lambda: {"ä\udc80": [1]}) == {"ä\udc80": [1]}
    assert shared(tmp_path).get("a", fail) == {"ä\udc80": [1]}
    assert shared(tmp_path).get("b", lambda: None) is None
    assert shared(tmp_path).get("b", fail) is None


@pytest.mark.parametrize("content", [b"", b"{", b"[1, 2]", b"\xff", b"[" * 100_000])
def test_a_broken_or_old_result_is_computed_again(tmp_path: Path, content: bytes) -> None:
    assert shared(tmp_path).get("a", lambda: 1) == 1
    (path,) = (tmp_path / "store").glob("*.json")
    path.write_bytes(content)
    assert shared(tmp_path).get("a", lambda: 2) == 2
    shared(tmp_path).get("c", lambda: 3)
    for path in (tmp_path / "store").glob("*.json"):
        os.utime(path, (0, time.time() - LONGEST_AGE - 1))
    assert shared(tmp_path).get("c", lambda: 4) == 4


@pytest.mark.skipif(sys.platform == "win32", reason="no FIFOs, and links need a privilege")
@pytest.mark.parametrize("kind", ["fifo", "link"])
def test_a_fifo_or_link_in_the_place_of_a_result_is_none(tmp_path: Path, kind: str) -> None:
    assert shared(tmp_path).get("a", lambda: 1) == 1
    (path,) = (tmp_path / "store").glob("*.json")
    path.unlink()
    (tmp_path / "planted").write_text("[3]")
    os.mkfifo(path) if kind == "fifo" else path.symlink_to(tmp_path / "planted")
    assert shared(tmp_path).get("a", lambda: 2) == 2


def test_others_wait_for_the_first_and_can_be_cancelled(tmp_path: Path) -> None:
    started, end = threading.Event(), threading.Event()

    def slow() -> str:
        started.set()
        assert end.wait(10)
        return "slow"

    first = threading.Thread(target=lambda: shared(tmp_path).get("a", slow))
    first.start()
    assert started.wait(10)

    def cancel() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        SharedResults(tmp_path / "store", cancel).get("a", fail)
    end.set()
    assert shared(tmp_path).get("a", fail) == "slow"
    first.join()
    assert not list((tmp_path / "store").glob("*.lock"))


def test_without_a_folder_each_process_computes_its_own(tmp_path: Path) -> None:
    (tmp_path / "store").write_bytes(b"a file")
    assert shared(tmp_path).get("a", lambda: 1) == 1


def test_a_failure_releases_the_lock(tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        shared(tmp_path).get("a", fail)
    held = locks.hold(tmp_path / "x.lock")
    assert held is not None
    locks.remove(tmp_path / "x.lock", held)
    assert shared(tmp_path).get("a", lambda: 1) == 1

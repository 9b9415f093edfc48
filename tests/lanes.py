"""Two processes share the tests that need a JVM: each takes the next file that nobody has taken, so that both end at the same time.

The lane `servers` begins with the files that talk to servers, the lane `spark` with the others; whoever is done first goes on with the
last files of the other. `--lane spark --taken FOLDER`: for each file that is taken there is a file in the folder.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, pairwise
from pathlib import Path

import pytest

Files = list[list[pytest.Item]]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--lane", choices=("spark", "servers"), help="share the tests with the other lane")
    parser.addoption("--taken", type=Path, help="the folder in which both lanes note the files that they take")


def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """What pytest does, with the tests of the files that are left for this lane."""
    lane, options = session.config.getoption("--lane"), session.config.option
    if lane is None or options.collectonly or session.testsfailed:
        return None
    for item, following in pairwise(chain(_left(in_order(session.items, lane), options.taken), [None])):
        assert item is not None
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
    return True


def in_order(tests: Iterable[pytest.Item], lane: str) -> Files:
    """The tests of a lane's own files, then those of the other lane's files, from the last one."""
    files: dict[Path, list[pytest.Item]] = {}
    for test in tests:
        files.setdefault(test.path, []).append(test)
    talking = [items for items in files.values() if any(item.get_closest_marker("server") for item in items)]
    others = [items for items in files.values() if items not in talking]
    own, last = (others, talking) if lane == "spark" else (talking, others)
    return [*own, *reversed(last)]


def _left(files: Files, folder: Path) -> Iterator[pytest.Item]:
    """The tests of files that the other lane has not taken."""
    return (item for items in files if take(folder, items[0].path.as_posix()) for item in items)


def take(folder: Path, file: str) -> bool:
    """Whether the file is this lane's from now on."""
    try:
        (folder / file.replace("/", "+")).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True

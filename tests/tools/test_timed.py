"""Parts of a make target: all of them run, and the end tells how long each took, its CPU time, and the slowest tests."""

from __future__ import annotations

import re

import pytest
from tools.timed import main

REPORT = '<testsuites><testsuite><testcase classname=\\"tests.{0}\\" name=\\"test_it\\" time=\\"{1}\\"/></testsuite></testsuites>'


def test_a_part_that_fails_fails_the_whole_after_the_others(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["one", "exit 3", "two", "echo done"]) == 1
    said = capfd.readouterr().out
    assert "done" in said
    assert re.search(r"s  one  FAILED\n.* s  two\n.* s  in all\n$", said)


def test_the_slowest_tests_of_all_parts_are_told_together(capfd: pytest.CaptureFixture[str]) -> None:
    parts = [("one", 0.5), ("+ two", 12)]
    assert main([word for name, time in parts for word in (name, f'echo "{REPORT.format(name[-3:], time)}" > $PARTS/{name[-3:]}.xml')]) == 0
    assert re.search(r"slowest 2 of 2 tests\n +12.0 s  tests/two.py::test_it\n +0.5 s  tests/one.py::test_it\n", capfd.readouterr().out)


def test_the_cpu_time_of_a_part_includes_its_children(capfd: pytest.CaptureFixture[str]) -> None:
    busy = "python3 -c 'import time\nwhile time.process_time() < 0.3: pass'"
    main(["busy", f'bash -c "{busy}"; true', "idle", "sleep 0.3"])
    used = {name: float(cpu) for cpu, name in re.findall(r"([\d.]+) s  (\w+)$", capfd.readouterr().out, re.M)}
    assert used["busy"] >= 0.3 > used["idle"]

"""`millstream inspect FILE` of a pipeline that does not run serves its last run, in a browser, until it is told to end."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.inspector.conftest import CANARY, TEXT
from tests.inspector.pages import Attend, Open, epoch

from millstream.errors import Diagnostic, RunError

pytestmark = pytest.mark.server  # a process of its own: it takes some seconds


def end(attend: Attend, text: str, *, failing: bool) -> None:
    with suppress(RunError), ExitStack() as stack:
        run, _ = attend(text, stack=stack)
        for number in range(6):
            epoch(run, number)
        run.recorder.measure()
        if failing:
            run.recorder.state("failed")
            raise RunError(Diagnostic("MS067", "a row failed", node="big"))


@contextmanager
def inspected(folder: Path, text: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    (folder / "shop.yaml").write_text(text)
    command = [sys.executable, "-m", "millstream.cli", "inspect", "shop.yaml"]
    process = subprocess.Popen(command, cwd=folder, env={**os.environ, "CANARY": CANARY}, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process, process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait(20)


def text_in(folder: Path) -> str:
    return f"{TEXT}settings: {{checkpoint: {folder / 'checkpoint-shop'}}}\n"


def test_a_failure_can_be_looked_at_afterwards(attend: Attend, visit: Open, tmp_path: Path) -> None:
    end(attend, text_in(tmp_path), failing=True)
    with inspected(tmp_path, text_in(tmp_path)) as (process, link):
        page: Any = visit(link)
        page.wait_for_selector("#link-message >> text=the run has ended (failed)")
        page.wait_for_selector("#failure >> text=MS067: a row failed")
        page.wait_for_selector("#graph [data-node=big].has-bad")
        page.wait_for_selector("#epochs >> text=epoch 5")
        page.wait_for_selector("#charts >> text=Rows per second")  # from the beginning of the run, where nothing was counted yet
        assert page.locator("#stop").is_disabled()
        page.locator("#graph [data-node=big]").click()
        page.wait_for_selector("#panel >> text=the run has ended; rows are not kept")
        page.locator("#kept summary").click()
        page.wait_for_selector("#kept table")
    assert process.returncode == 0


def test_a_run_that_has_died_is_said_to_have_died(attend: Attend, visit: Open, tmp_path: Path) -> None:
    end(attend, text_in(tmp_path), failing=False)
    with inspected(tmp_path, text_in(tmp_path)) as (_, link):
        page: Any = visit(link)
        page.wait_for_selector("#reasons >> text=the process has died")
        assert re.search(r"failed", page.locator("#health").inner_text())


def test_a_death_is_told_also_when_another_run_has_followed(attend: Attend, visit: Open, tmp_path: Path) -> None:
    end(attend, text_in(tmp_path), failing=False)
    end(attend, text_in(tmp_path), failing=True)
    with inspected(tmp_path, text_in(tmp_path)) as (_, link):
        page: Any = visit(link)
        page.wait_for_selector("#log >> text=the run before it had died")
        assert page.locator("#log >> text=had died").count() == 1


def test_a_pipeline_that_never_ran_is_refused(tmp_path: Path) -> None:
    (tmp_path / "shop.yaml").write_text(text_in(tmp_path))
    command = [sys.executable, "-m", "millstream.cli", "inspect", "shop.yaml"]
    found = subprocess.run(command, cwd=tmp_path, env={**os.environ, "CANARY": CANARY}, capture_output=True, text=True, check=False)
    assert found.returncode == 2
    assert "MS052" in found.stderr

"""TypeScript's own compiler finds in scripts what is wrong, and nothing else."""

from __future__ import annotations

import os
import re
import shutil
import textwrap
from pathlib import Path

import pytest
from tools.typescript import COMPILER, node_folder
from typer.testing import CliRunner

from millstream.cli import application

EXAMPLE = Path(__file__).parents[2] / "examples" / "16-typescript"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    node = node_folder()
    if node is None or not COMPILER.exists():
        pytest.skip("TypeScript is not installed")
    monkeypatch.setenv("PATH", os.pathsep.join([str(COMPILER.parent), str(node), os.environ["PATH"]]))
    here = shutil.copytree(EXAMPLE, tmp_path / "example")
    monkeypatch.chdir(here)
    return here


def check(folder: Path, old: str, new: str) -> tuple[int, str]:
    script = folder / "enrich.ts"
    assert old in script.read_text()
    script.write_text(script.read_text().replace(old, new))
    done = CliRunner().invoke(application("check"), ["check", "--types", "orders.yaml"])
    return done.exit_code, done.output


def test_the_example_is_right(folder: Path) -> None:
    assert check(folder, "", "")[0] == 0


@pytest.mark.parametrize("page", ["scripts.md", "components/transforms/script.md"])
def test_the_examples_of_the_docs_are_right(folder: Path, page: str) -> None:
    text = (EXAMPLE.parents[1] / "docs" / page).read_text()
    (block,) = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)[:1]
    if "sources:" not in block:
        rows = "sources: {orders: {type: memory, rows: [{id: 1, amount: 2.5}], schema: {id: int64, amount: float64}}}"
        block = f"{rows}\ntransforms:\n{textwrap.indent(block, '  ')}\nsinks: {{out: {{type: blackhole, from: priced}}}}\n"
    (folder / "page.yaml").write_text(block)
    done = CliRunner().invoke(application("check"), ["check", "--types", "page.yaml"])
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("old", "new", "place", "said"),
    [
        ("order.country ??", "order.contry ??", "enrich.ts:18:25", "Property 'contry' does not exist on type 'Row'"),
        ("order.user?.", "order.user.", "enrich.ts:23:11", "'order.user' is possibly 'null'"),
        ("    id: order.id,", "    id: 'a',", "enrich.ts:22:5", "Type 'string' is not assignable to type 'number | bigint"),
    ],
    ids=["a field that is not there", "a null", "a type"],
)
def test_a_mistake_has_its_place(folder: Path, old: str, new: str, place: str, said: str) -> None:
    code, output = check(folder, old, new)
    assert code == 78
    assert place in output
    assert said in output


def test_the_rows_of_another_function_do_not_fit(folder: Path) -> None:
    code, output = check(folder, "(order: Row): Result | null {", "(order: {id: string}): any {")
    assert code == 78
    assert "does not fit its rows: Type 'null' is not assignable to type 'string'" in output or "is not assignable" in output
    assert "(row: Row): Result" in output

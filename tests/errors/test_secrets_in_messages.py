"""A password that stands in the file itself is not shown when the line is, whatever else is wrong with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from millstream.engine.engine import SparkEngine
from millstream.errors import SpecError
from millstream.plan.run_options import RunOptions
from millstream.secrets import mask_line
from millstream.spec.files import load_pipeline

PIPELINE = """
sources: {{m: {{type: memory, rows: [{{id: 1}}]}}}}
sinks: {{pg: {{type: postgres, from: m, table: t, database: d, {options}}}}}
"""


@pytest.mark.parametrize(
    "options",
    [
        "password: hunter2, prot: 1",
        "prot: 1, pasword: hunter2",
        "passwd: 'hunter2, and more'",
        "password: [hunter2]",
        "password: {a: hunter2}",
        'prot: 1, "password": "hunter2"',
    ],
)
def test_the_line_is_shown_without_it(tmp_path: Path, options: str) -> None:
    (tmp_path / "p.yaml").write_text(PIPELINE.format(options=options))
    with pytest.raises(SpecError) as caught:
        load_pipeline(tmp_path / "p.yaml")
    text = "\n".join(found.render() for found in caught.value.diagnostics)
    assert "p.yaml:3" in text and "hunter2" not in text and "more" not in text
    assert "Secret" not in text


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("  password: my pass, word # x", "  password: *****************"),
        ("a: {api_key: abc, primary_key: id}", "a: {api_key: ***, primary_key: id}"),
        ("password: secret://env/X", "password: secret://env/X"),
        ('a: {password: "secret://file/x", b: 1}', 'a: {password: "secret://file/x", b: 1}'),
        ("a: {password: ${X}, b: 1}", "a: {password: ${X}, b: 1}"),
        ('Postgres(user="u", password="abc")', 'Postgres(user="u", password=*****)'),
        ("primary_key: [a, b]", "primary_key: [a, b]"),
    ],
)
def test_what_is_hidden(line: str, shown: str) -> None:
    assert mask_line(line) == shown


def test_a_secret_that_is_not_there_is_told_before_anything_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.yaml").write_text(PIPELINE.format(options="password: secret://env/NOT_SET, user: secret://file/none"))
    with pytest.raises(SpecError) as caught:
        SparkEngine().run(load_pipeline(tmp_path / "p.yaml"), RunOptions())
    found = {diagnostic.message: diagnostic.code for diagnostic in caught.value.diagnostics}
    start = "of sink `pg` cannot be read: the"
    assert found == {
        f"`secret://env/NOT_SET` {start} environment variable `NOT_SET` is not set": "MS013",
        f"`secret://file/none` {start} file `none` cannot be read: No such file or directory": "MS013",
    }
    assert not (tmp_path / ".millstream").exists()

"""Mistakes that a parser, a validator or a library finds are told in words about what the user wrote."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from millstream.engine.failures import Translator
from millstream.rules.previews import check_previews
from millstream.secrets import Redactor, Secret
from millstream.spec.loader import loads

ENDS = "\nsinks: {p: {type: print, from: a}}"


def only(text: str) -> tuple[str, str, str]:
    (found,) = loads(text).diagnostics
    return found.code, found.message, found.help


@pytest.mark.parametrize(
    ("text", "message", "help_"),
    [
        ("sources:\n  a:\n    type: memory\n   rows: []\n", "indented by 3 spaces", "begin in the same column: 0, 2, 4"),
        ("sources: {a: {type: memory}" + ENDS, "the `{` of line 1 is not closed, or a comma is missing", "add `}` or `,`"),
        ("a: b: c", "a second `:`", "quote a text"),
        ("a: @b", "a value cannot begin with this character", "quote the text"),
    ],
)
def test_yaml_is_explained_by_its_lines(text: str, message: str, help_: str) -> None:
    code, said, way = only(text)
    assert code == "MS002"
    assert message in said
    assert help_ in way


@pytest.mark.parametrize(
    ("text", "help_"),
    [
        ("settings: {trigger: available_now}\nsources: {a: {type: memory, rows: [{id: 1}]}}", "write `trigger: {type: available_now}`"),
        ("sources: {a: {type: file, path: x, format: json, mode: bounded}}", "write `mode: {type: bounded}`"),
        ("sources: {a: {type: memory, rows: [{id: 1}], event_time: at}}", "write `event_time: {column: at}`"),
    ],
)
def test_a_word_where_a_map_is_wanted_is_shown_as_a_map(text: str, help_: str) -> None:
    code, _, way = only(text + ENDS)
    assert (code, way) == ("MS008", help_)


def test_every_wrong_type_of_a_schema_is_told_at_its_column() -> None:
    found = loads("sources: {a: {type: memory, rows: [], schema: {id: int6, at: timestmp}}}" + ENDS).diagnostics
    assert [(each.code, each.span.column) for each in found if each.span] == [("MS015", 52), ("MS015", 62)]


@pytest.mark.parametrize(
    "sql", ["SELECT id, FROM r", "SELECT (SELECT max(id), ) AS x FROM r", "SELECT id FROM r GROUP BY id, HAVING id > 1"]
)
def test_a_comma_before_nothing_is_no_sql(sql: str) -> None:
    (found,) = (
        each
        for each in loads(
            f"sources: {{r: {{type: memory, rows: [{{id: 1}}]}}}}\ntransforms: {{a: {{type: sql, sql: '{sql}'}}}}{ENDS}"
        ).diagnostics
        if each.code == "MS158"
    )
    assert "nothing is between this comma and" in found.message and found.help == "remove the comma"


def test_a_number_without_a_unit_is_shown_with_one() -> None:
    text = "sources: {a: {type: file, path: x, format: json, mode: {type: continuous, poll_interval: 10}}}" + ENDS
    assert only(text)[:2] == ("MS009", "`poll_interval` in source `a`: `10` has no unit; write `10s`")


@pytest.mark.parametrize(
    ("transform", "whole"),
    [
        ("type: with_columns, columns: {b: coalesce(id, 0)}", 'b: "coalesce(id, 0)"'),
        ("type: filter, where: greatest(id, 0) > 1", 'where: "greatest(id, 0) > 1"'),
        ("type: select, columns: {x: if(id > 1, round(id, 2), 0), id: id}", 'x: "if(id > 1, round(id, 2), 0)"'),
    ],
)
def test_a_comma_in_an_unquoted_expression_is_one_finding(transform: str, whole: str) -> None:
    text = f"sources: {{r: {{type: memory, rows: [{{id: 1}}]}}}}\ntransforms: {{a: {{from: r, {transform}}}}}{ENDS}"
    code, _, help_ = only(text)
    assert code == "MS027"
    assert help_ == f"inside {{…}} quote a text with a comma: `{whole}`"


@pytest.mark.parametrize(("kind", "meant"), [("datetime", "timestamp"), ("text", "string"), ("decimal", "decimal(18,2)")])
def test_types_of_other_systems_are_known(kind: str, meant: str) -> None:
    text = f"sources: {{a: {{type: memory, schema: {{id: int64, at: {kind}}}}}}}{ENDS}"
    assert f"did you mean `{meant}`?" in only(text)[1]


@pytest.mark.parametrize("inner", ["9" * 5000, "[" * 900 + "]" * 900, "{a: " * 900 + "1" + "}" * 900])
def test_what_is_too_long_or_too_deep_is_told(inner: str) -> None:
    code, _, _ = only(f"sources: {{a: {{type: memory, rows: [{{id: {inner}}}]}}}}{ENDS}")
    assert code == "MS004"


@pytest.mark.parametrize("code", ["ms24", "24", "MS024", "Ms-24"])
def test_explain_takes_codes_as_people_write_them(code: str, capsys: pytest.CaptureFixture[str]) -> None:
    from millstream.cli.explain import explain

    explain(code)
    assert capsys.readouterr().out.startswith("MS024: unknown column")


def test_a_check_of_a_source_with_an_unset_secret_says_so(tmp_path: Path) -> None:
    from millstream.clients.storage import open_storage

    source = "type: postgres, database: d, table: t, password: 'secret://env/NOT_SET_HERE', sslmode: disable, mode: {type: bounded}"
    loaded = loads(f"sources: {{a: {{{source}}}}}{ENDS}")
    assert loaded.topology
    assert not loaded.errors
    (found,) = check_previews(loaded.topology, open_storage(str(tmp_path)))
    assert (found.code, found.level) == ("MS013", "error")
    assert "`NOT_SET_HERE` is not set" in found.message


def test_a_server_for_trying_out_says_which_extra_it_needs(tmp_path: Path) -> None:
    script = (
        "import sys; sys.modules['psycopg'] = None; from millstream.cli import main; sys.argv = ['millstream', 'dev', 'postgres']; main()"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, cwd=tmp_path, check=False)
    assert done.returncode == 78
    assert "MS045" in done.stderr
    assert "millstream[postgres]" in done.stderr


@pytest.mark.parametrize(
    "said",
    [
        "java.lang.ClassNotFoundException: Class org.apache.hadoop.fs.s3a.S3AFileSystem not found",
        'org.apache.hadoop.fs.UnsupportedFileSystemException: No FileSystem for scheme "s3a"',
    ],
)
def test_an_address_without_its_jars_names_them(said: str) -> None:
    (found,) = Translator((), "p", Redactor([])).translate(RuntimeError(said), "a").diagnostics
    assert found.code == "MS164"
    assert "`s3a://`" in found.message
    assert "org.apache.hadoop:hadoop-aws" in found.help


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ('FATAL: password authentication failed for user "dev"', None),
        ('database "dev" does not exist', None),
        ("`localhost:5432/dev` does not answer", None),
        ("a device in development", None),
        ("postgresql://dev:dev@localhost:5432/dev", "postgresql://dev:***@localhost:5432/dev"),
        ("password=dev dbname=dev", "password=*** dbname=dev"),
        ("tried dev", "tried ***"),
        ("redis://dev@localhost", "redis://***@localhost"),
        ("http://host:80/dev", "http://host:80/***"),
        ("'dev'", "'***'"),
        ("wrong: dev, dev", "wrong: ***, ***"),
    ],
)
def test_a_short_password_hides_no_names_and_is_never_shown(said: str, shown: str | None) -> None:
    assert Redactor([Secret("dev")])(said) == (shown or said)


def test_a_long_password_is_hidden_wherever_it_stands() -> None:
    assert Redactor([Secret("hunter2hunter2")])('xhunter2hunter2x database "hunter2hunter2"') == 'x***x database "***"'


@pytest.mark.parametrize(
    "text",
    [
        "Job aborted: java.lang.OutOfMemoryError: Requested array size exceeds VM limit",
        "org.apache.spark.memory.SparkOutOfMemoryError: [AGGREGATE_OUT_OF_MEMORY] No enough memory for aggregation",
    ],
)
def test_a_task_without_memory_is_told_as_such(text: str) -> None:
    from millstream.engine.failures import Translator
    from millstream.secrets import Redactor

    (found,) = Translator([], "p", Redactor([])).translate(RuntimeError(text), "q").diagnostics
    assert found.code == "MS155" and "settings.driver_memory" in found.help


def test_a_worker_that_did_not_start_in_time_is_tried_again() -> None:
    from millstream.errors import TemporaryError

    error = RuntimeError("org.apache.spark.SparkException: Python worker failed to connect back.")
    found = Translator([], "p", Redactor([])).translate(error, "q")
    assert isinstance(found, TemporaryError) and found.diagnostics[0].code == "MS069"


def test_a_subquery_with_several_rows_is_told_with_a_way_out() -> None:
    error = RuntimeError("SparkRuntimeException: [SCALAR_SUBQUERY_TOO_MANY_ROWS] More than one row returned by a subquery. SQLSTATE: 21000")
    (found,) = Translator([], "p", Redactor([])).translate(error, "q").diagnostics
    assert (found.code, "LIMIT 1" in found.help) == ("MS067", True)


def test_months_are_not_taken_for_minutes() -> None:
    from millstream.units import Duration

    assert Duration("1m").milliseconds == 60_000
    with pytest.raises(ValueError, match="months"):
        Duration("1M")

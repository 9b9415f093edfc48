"""`sql_file`: the query lies in a file of its own, and messages lead there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
import yaml
from tools.docs import component_page

from millstream.errors import Diagnostic
from millstream.plan.document import to_document
from millstream.registry import Registry
from millstream.spec.json_schema import pipeline_schema
from millstream.spec.loader import Loaded, load

PIPELINE = """
sources: {orders: {type: memory, rows: [{id: 1, amount: 5}]}}
transforms:
  large:
    type: sql
    %s
sinks: {out: {type: print, from: large}}
"""
QUERY = "-- large orders\nSELECT id, amount\nFROM orders\nWHERE amount > ${LEAST:-100}\n"
Write = Callable[..., Loaded]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def go(option: str = "sql_file: q.sql", query: str | None = QUERY, **environ: str) -> Loaded:
        folder = tmp_path / "p"
        folder.mkdir(exist_ok=True)
        if query is not None:
            (folder / "q.sql").write_text(query)
        (folder / "p.yaml").write_text(PIPELINE % option)
        return load(folder / "p.yaml", environ=environ)

    return go


def only(loaded: Loaded) -> Diagnostic:
    (finding,) = loaded.diagnostics
    return finding


def test_the_plan_holds_the_text_with_its_variables(write: Write) -> None:
    document = to_document(write(LEAST="7").require())["transforms"]["large"]
    assert document == {"type": "sql", "sql": QUERY.replace("${LEAST:-100}", "7")}


def test_a_file_with_the_marks_of_windows_is_read(write: Write) -> None:
    assert not write(query="\ufeffSELECT id\r\nFROM orders\r\n").diagnostics


def test_messages_lead_to_line_and_column_of_the_file(write: Write, tmp_path: Path) -> None:
    finding = only(write(query=QUERY.replace("id, amount", "id, amont")))
    assert (finding.code, finding.span and (finding.span.line, finding.span.column)) == ("MS024", (2, 12))
    assert finding.span and finding.span.file == str(tmp_path / "p" / "q.sql")
    assert "SELECT id, amont" in finding.render()


@pytest.mark.parametrize("query", ["SELEC id FROM orders", "SELECT id FROM", "SELECT id FROM orderz", "SELECT lenght(id) AS n FROM orders"])
def test_every_mistake_in_the_query_is_told_in_the_file(write: Write, query: str) -> None:
    assert all(finding.span and finding.span.file.endswith("q.sql") for finding in write(query=query).errors)
    assert write(query=query).errors


@pytest.mark.parametrize(
    ("option", "query", "code", "words"),
    [
        ("sql_file: qq.sql", QUERY, "MS001", "did you mean `q.sql`"),
        ("sql_file: sub/q.sql", None, "MS001", "does not exist"),
        ("sql_file: .", QUERY, "MS001", "is a folder"),
        ("sql_file: ../q.sql", QUERY, "MS169", "outside the pipeline's folder"),
        ("sql_file: /etc/hostname", QUERY, "MS169", "outside the pipeline's folder"),
        ("sql_file: q.sql", "  \n", "MS170", "is empty"),
        ("sql_file: 5", QUERY, "MS008", "must be the path of a file"),
        ("{sql_file: q.sql, sql: SELECT 1 FROM orders}", QUERY, "MS008", "both `sql` and `sql_file`"),
        ("sql_fiel: q.sql", QUERY, "MS006", "did you mean `sql_file`"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_finding_where_it_is_named(
    write: Write, option: str, query: str | None, code: str, words: str
) -> None:
    finding = only(write(option.strip("{}").replace(", ", "\n    "), query))
    assert finding.code == code
    assert words in finding.render()
    assert finding.span and finding.span.line >= 6 and finding.span.file.endswith("p.yaml")


def test_a_symlink_that_leads_outside_is_refused(write: Write, tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    (tmp_path / "secret.sql").write_text(QUERY)
    (tmp_path / "p" / "link.sql").symlink_to(tmp_path / "secret.sql")
    assert only(write("sql_file: link.sql")).code == "MS169"


def test_a_symlink_inside_the_folder_is_followed(write: Write, tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "link.sql").symlink_to("q.sql")
    assert not write("sql_file: link.sql").diagnostics


def test_an_unset_variable_is_told(write: Write) -> None:
    assert only(write(query="SELECT ${WHAT} FROM orders")).code == "MS011"


def test_editors_know_it() -> None:
    schema = jsonschema.Draft7Validator(pipeline_schema())
    assert schema.is_valid(yaml.safe_load(PIPELINE % "sql_file: q.sql"))
    assert not schema.is_valid(yaml.safe_load(PIPELINE % "from: orders"))
    assert not schema.is_valid(yaml.safe_load(PIPELINE % "sql_file: q.sql\n    sql: SELECT 1"))


def test_the_page_says_that_one_of_the_two_is_needed() -> None:
    page = component_page("transform", "sql", Registry.installed().find("transform", "sql"))
    assert "| `sql` | text | **required**, or `sql_file` |" in page
    assert "| `sql_file` | text | **required**, or `sql` |" in page

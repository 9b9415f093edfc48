"""What is wrong with a dynamic table, or with SQL that uses one, is told by a check: the place, the reason, the nearest fix."""

import pytest

from millstream.plan.topology import Topology
from millstream.spec.loader import Loaded, loads

TEXT = """
sources:
  orders: {{type: memory, rows: [], schema: {{id: int64, user: string, at: timestamp, tags: "list<string>"}}}}
  other: {{type: memory, rows: [], schema: {{id: int64}}}}
transforms:
  watched: {{type: dynamic_table, backend: sqlite, path: t.db, key: user, key_type: string, columns: {{tier: string}}{more}}}
  numbered: {{type: dynamic_table, backend: sqlite, path: t.db, key: id, key_type: int64}}
  step:
    type: sql
    sql: |
      {sql}
sinks:
  out: {{type: print, from: step}}
"""


def _check(sql: str, more: str = "") -> Loaded:
    return loads(TEXT.format(sql=sql, more=more))


def _told(loaded: Loaded) -> list[tuple[str, str]]:
    return [(found.code, found.message) for found in loaded.errors]


GOOD = [
    "SELECT id, dynamic_table_get('watched', user).tier FROM orders WHERE dynamic_table_check('watched', tags)",
    "SELECT o.id, w.tier FROM orders o LEFT JOIN watched w ON lower(o.user) = w.user",
    "SELECT o.id, w.tier, n.id AS k FROM orders o JOIN watched AS w ON w.user = o.user LEFT OUTER JOIN numbered n ON o.id = n.id",
    "SELECT id FROM orders WHERE dynamic_table_check('numbered', id) AND NOT dynamic_table_check('watched', id)",
    "SELECT id, 'dynamic_table_check(x)' AS text FROM orders JOIN watched ON orders.user = watched.user",
]


@pytest.mark.parametrize("sql", GOOD)
def test_these_are_fine(sql: str) -> None:
    loaded = _check(sql)
    assert not loaded.errors
    assert not [found for found in loaded.warnings if "watched" in found.message]


def test_columns_of_a_joined_table_are_known() -> None:
    loaded = _check("SELECT o.id, w.teir FROM orders o LEFT JOIN watched w ON o.user = w.user")
    assert _told(loaded) == [("MS024", "transform `step`: unknown column `teir`")]
    assert loaded.errors[0].help == "did you mean `tier`?"


def test_an_unknown_table_is_told_with_its_place() -> None:
    loaded = _check("SELECT id,\n        dynamic_table_check('wached', user) AS x FROM orders")
    (found,) = loaded.errors
    assert (found.code, found.message) == ("MS130", "transform `step`: there is no dynamic table `wached`")
    assert found.help == "did you mean `watched`?"
    assert found.span is not None
    assert (found.span.line, found.span.text[found.span.column - 1 : found.span.end - 1]) == (12, "'wached'")


REFUSED = [
    ("SELECT dynamic_table_check(user, 1) AS x FROM orders", "MS131", "takes the name of a dynamic table, in quotes"),
    ("SELECT dynamic_table_check('watched') AS x FROM orders", "MS131", "takes the name of a dynamic table, in quotes"),
    ("SELECT dynamic_table_get('numbered', id).x AS x FROM orders", "MS131", "`numbered` has no columns to get"),
    ("SELECT id FROM orders WHERE dynamic_table_check('numbered', user)", "MS132", "the key of `numbered` is `int64`"),
    ("SELECT id FROM orders WHERE dynamic_table_check('numbered', tags)", "MS132", "looked up by `string`"),
    ("SELECT o.id FROM orders o JOIN numbered n ON o.user = n.id", "MS132", "looked up by `string`"),
    ("SELECT id FROM orders WHERE dynamic_table_check('watched', at)", "MS132", "looked up by `timestamp"),
    ("SELECT tier FROM watched", "MS133", "rows do not flow out of the dynamic table `watched`"),
    ("SELECT o.id FROM orders o RIGHT JOIN watched w ON o.user = w.user", "MS133", "not by RIGHT JOIN"),
    ("SELECT o.id FROM orders o LEFT ANTI JOIN watched w ON o.user = w.user", "MS133", "not by LEFT ANTI JOIN"),
    ("SELECT o.id FROM orders o JOIN watched w ON o.user = w.user AND w.tier = 'x'", "MS133", "by its key alone"),
    ("SELECT o.id FROM orders o JOIN watched w ON o.user = w.tier", "MS133", "by its key alone"),
    ("SELECT o.id FROM orders o JOIN watched w ON o.id > w.user", "MS133", "by its key alone"),
    ("SELECT o.id FROM orders o JOIN watched w USING (user)", "MS133", "needs ON"),
    (
        "SELECT o.id FROM orders o JOIN watched w ON o.user = w.user JOIN orders p ON p.user = w.tier",
        "MS030",
        "a dynamic table in a query that is kept up to date",
    ),
]


@pytest.mark.parametrize(("sql", "code", "part"), REFUSED)
def test_these_are_refused(sql: str, code: str, part: str) -> None:
    found = [(told, message) for told, message in _told(_check(sql)) if told == code]
    assert found, _told(_check(sql))
    assert part in found[0][1]


OPTIONS = [
    (', time_column: "a\\0b"', "MS134", "NUL"),
    (", sql: SELECT id FROM orders GROUP BY id", "MS134", "cannot be filled by an aggregate"),
    (", sql: 'SELECT id, user FROM orders'", "MS134", "returns no column `tier`"),
    (", sql: 'SELECT uesr FROM orders'", "MS024", "unknown column `uesr`"),
]


@pytest.mark.parametrize(("more", "code", "part"), OPTIONS)
def test_options_that_do_not_fit(more: str, code: str, part: str) -> None:
    found = _told(_check("SELECT id FROM orders", more))
    assert [message for told, message in found if told == code and part in message], found


def test_postgres_would_cut_long_names_in_silence() -> None:
    name = "x" * 70
    text = TEXT.format(sql="SELECT id FROM orders", more="").replace(
        "backend: sqlite, path: t.db, key: user", f"backend: postgres, key: {name}"
    )
    told = dict(_told(loads(text)))
    assert "Postgres truncates names after 63" in told["MS134"]
    assert "`database` is missing" in told["MS007"]


def test_only_sql_reads_a_dynamic_table() -> None:
    text = TEXT.format(sql="SELECT id FROM orders", more="").replace("from: step", "from: watched")
    assert ("MS012", "sink `out` reads `watched`, which is a dynamic table") in _told(loads(text))


def test_a_table_that_nobody_asks_is_a_warning() -> None:
    assert "nothing reads transform `watched`" in str([found.message for found in _check("SELECT id FROM orders").warnings])


def test_a_plan_survives_its_own_yaml() -> None:
    from millstream.plan.document import from_yaml, to_yaml

    topology = _check("SELECT o.id, w.tier FROM orders o JOIN watched w ON o.user = w.user").require()
    again: Topology = from_yaml(to_yaml(topology))
    assert again.node("step").inputs == ("orders",)
    assert again.node("step").component.lookup_names == ("watched",)

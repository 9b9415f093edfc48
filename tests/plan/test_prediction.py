"""How a query will run is predicted from its text, with the reason where Spark cannot run it as a stream by itself."""

import pytest

from millstream.sql.check.prediction import predict
from millstream.transforms.sql import Sql

HOURLY = "select k, window(at, '1 hour') w, count(*) n from t group by 1, 2"


@pytest.mark.parametrize(
    "text",
    [
        HOURLY,
        f"select k, w.start s, n * 2 from ({HOURLY}) where n > 3",
        "select explode(xs) x from (select collect_list(x) xs from t group by window(at, '1 day'))",
        "select count(distinct k) from t group by window(at, '1 hour')",
        "select window.end e, max(x) from t group by window(at, '1 hour')",
    ],
)
def test_one_windowed_aggregate_with_plain_steps_runs_whole(text: str) -> None:
    found = predict(text)
    assert (found.kind, found.has_tail, len(found.selects)) == ("windowed", False, 1)


@pytest.mark.parametrize(
    ("text", "scans"),
    [
        (f"select * from (select *, row_number() over (partition by w order by n desc) r from ({HOURLY})) where r = 1", 1),
        (f"select w, count(distinct k) c from ({HOURLY}) group by w", 1),
        (f"select a.n from ({HOURLY}) a join ({HOURLY}) b on a.w = b.w and a.k = b.k", 1),
        (f"with h as ({HOURLY}) select w, max(n) m from h group by w", 1),
        (f"select distinct w from ({HOURLY})", 1),
        (f"select x.w from ({HOURLY}) x full join (select window(at, '1 hour') w, sum(y) y from t group by 1) z on x.w = z.w", 2),
        (
            "with f as (select * from t), h as (select window(at, '1 hour') w from f group by 1) select w, count(*) c from h group by w",
            1,
        ),
    ],
)
def test_what_goes_window_by_window_is_done_per_epoch(text: str, scans: int) -> None:
    found = predict(text)
    assert (found.kind, found.has_tail, found.scans("t")) == ("windowed", True, scans)


@pytest.mark.parametrize(
    "text",
    ["select count(*) from t", "select k, sum(x) s from t group by k", "select k, s * 2 d from (select k, sum(x) s from t group by k)"],
)
def test_totals_without_a_window_run_on(text: str) -> None:
    assert predict(text).kind == "running"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"select k, sum(n) from ({HOURLY}) group by k", "must have the window in its GROUP BY"),
        (f"select *, rank() over (order by n) r from ({HOURLY})", "must have the window in its PARTITION BY"),
        (f"select * from ({HOURLY}) a join ({HOURLY}) b on a.k = b.k", "must compare the same window"),
        (f"select * from ({HOURLY}) order by n", "ORDER above a windowed aggregate needs all windows at once"),
        (f"select * from ({HOURLY}) limit 3", "LIMIT above"),
        (f"{HOURLY} order by n", "ORDER in a windowed aggregate"),
        (f"select * from ({HOURLY}) a join t on a.k = t.k", "must compare the same window"),
        ("select k, count(*) n from t group by k having count(*) > 3", "HAVING is not supported yet"),
        ("select * from (select k, count(*) n from t group by k) where n > 3", "a condition on an aggregate is not supported yet"),
        ("select count(*) from (select k, count(*) n from t group by k)", "an aggregate over an aggregate is not supported yet"),
        ("select distinct k from t", "DISTINCT is not supported yet"),
        ("select a.k from t a join u b on a.k = b.k", "a join of streams"),
        ("select k from t order by k", "ORDER BY is not supported yet"),
        ("select window(at, '1 hour').end e, max(x) from t group by 1", "GROUP BY must hold the window itself"),
        ("select k from t offset 3", "OFFSET is not supported yet"),
        ("select * from t tablesample (10 percent)", "TABLESAMPLE is not supported yet"),
        ("select * from (select k, v from t) pivot (sum(v) for k in ('a'))", "PIVOT is not supported yet"),
        ("select k from t where k in (select k from t where v > 5)", "IN (SELECT …) over a stream is not supported yet"),
        ("select k from t where exists (select 1 from t b where b.k = t.k)", "EXISTS over a stream is not supported yet"),
        ("select k, (select max(v) from t) m from t", "a subquery of a stream in an expression is not supported yet"),
        ("with a as (select k, count(*) n from t group by k), b as (select * from a where n < 2) select k from b", "a condition on"),
        ("with a as (select k, sum(x) from t group by k), b as (select * from a) select * from b union all select k, v from t", "UNION"),
        ("select count(*) from t group by k", "cannot be updated"),
        ("select upper(k) as k, count(*) n from t group by k", "cannot be updated"),
        ("select s from (select k, sum(x) s from t group by k)", "cannot be updated"),
        (f"select * from ({HOURLY}) a join ({HOURLY}) b on a.w.end = b.w.start", "must compare the same window"),
        (f"select * from ({HOURLY}) a join (select window(at, '1 day') w from t group by 1) b on a.w.start = b.w.start", "must compare"),
        (f"select * from ({HOURLY}) a join (select window(at, '1 hour') z, max(x) w from t group by 1) b on a.w = b.w", "must compare"),
        (f"select mean(n) from (select *, row_number() over (partition by w order by n) r from ({HOURLY})) where r = 1", "in its GROUP BY"),
    ],
)  # fmt: skip
def test_what_one_epoch_cannot_answer_is_refused(text: str, reason: str) -> None:
    refusal = predict(text).refusal
    assert refusal is not None and reason in refusal.reason


@pytest.mark.parametrize("text", ["select a, b from t where c", "select * from t union all select * from u", "select explode(xs) from t"])
def test_plain_queries_stay_as_they_are(text: str) -> None:
    assert predict(text).kind == "stateless"


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("select k, sum(x) s from t group by k", ("k",)),
        ("select a % 5 m, b, count(*) from t group by 1, b", ("m", "b")),
        ("select user, s from (select k as user, sum(x) s from t group by k)", ("user",)),
        ("with a as (select k, sum(x) s from t group by k) select s, k as q from a", ("q",)),
        ("select count(*) from t", ()),
    ],
)
def test_running_totals_are_identified_by_what_they_are_grouped_by(text: str, key: tuple[str, ...]) -> None:
    assert Sql(sql=text).result_key == key

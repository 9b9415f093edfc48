"""The judge of a case: after each epoch, what the outputs of a view amount to is Spark's batch answer."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Literal, Protocol

import pyarrow as pa
import sqlglot
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType
from sqlglot import exp
from tests.sql.random.cases import Case, Row, contents

Rows = Counter[Row]
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""Every query is new: to compile it to Java takes longer than to run it."""
WRONG = "org.apache.spark.sql.catalyst.optimizer.PushProjectionThroughLimitAndOffset"
"""A rule by which Spark 4.1 loses the order of a LIMIT: it moves a correlated subquery of SELECT between both, which becomes a join."""
SETTINGS = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.optimizer.excludedRules": WRONG,
    **INTERPRETED,
}
"""One partition: the answer is the same, with half of the tasks."""
COMPILED = 8
"""One of so many cases runs as compiled Java, as in production."""
EMPTY = 8
"""One of so many cases runs that never have a row in the result."""


class Stepping(Protocol):
    """What is tested."""

    def step(self, epoch: int) -> Answer | None:
        """The whole result after an epoch; None if it is not known yet."""

    def close(self) -> None: ...


ViewMaker = Callable[[SparkSession, Case], Stepping]


@dataclass(frozen=True)
class Outcome:
    status: Literal["passed", "failed", "refused", "invalid", "skipped"]
    """`invalid`: Spark's batch refuses the query; `refused`: the view does; `skipped`: the result has never a row."""
    kind: str = ""
    """what failures have in common that are the same mistake"""
    report: str = ""


@dataclass(frozen=True)
class Answer:
    schema: StructType
    rows: tuple[Row, ...]
    in_order: bool = False
    """Whether the rows come in the order of the query."""


class RefusedError(Exception):
    """The view does not support the query, and says so."""


class WrongError(Exception):
    """An output that cannot be right, whatever the answer is."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


class Oracle:
    """Answers of Spark's batch, in a session of its own: its temporary views and settings are not those of the tested view."""

    def __init__(self, spark: SparkSession) -> None:
        self.compiled = spark
        self.interpreted = new_session(spark, INTERPRETED)
        self.batch = new_session(spark, SETTINGS)

    def judge(self, case: Case, make: ViewMaker, skip: bool = False) -> Outcome:
        """Run the case up to the first epoch whose result is wrong. Most cases without any result are skipped if `skip`."""
        try:
            answers = self._answers(case)
        except (PySparkException, Py4JJavaError) as error:
            return Outcome("invalid", _first_line(error))
        case = replace(case, epochs=case.epochs[: len(answers)])
        filled = any(answer.rows for answer in answers)
        if skip and not filled and case.seed % EMPTY:
            return Outcome("skipped")
        with ExitStack() as stack:
            return self._judge(case, make, answers, stack) or Outcome("passed", "" if filled else "empty")

    def _answers(self, case: Case) -> list[Answer]:
        """The answers up to the epoch in which the query itself fails, as with a sum that is too large."""
        answers: list[Answer] = []
        for tables in contents(case):
            try:
                answers.append(self.answer(case, tables))
            except (PySparkException, Py4JJavaError):
                if not answers:
                    raise
                break
        return answers

    def _judge(self, case: Case, make: ViewMaker, answers: list[Answer], stack: ExitStack) -> Outcome | None:
        spark, view = self.interpreted if case.seed % COMPILED else self.compiled, None
        for number, answer in enumerate(answers):
            try:
                if view is None:
                    view = make(spark, case)
                    stack.callback(view.close)
                got = view.step(number)
            except RefusedError as error:
                return Outcome("refused", str(error))
            except WrongError as error:
                return Outcome("failed", error.kind, f"epoch {number}: {error}\n  expected: {Counter(answer.rows)}\n\n{case}")
            except Exception as error:  # noqa: BLE001 — whatever the tested code raises
                return Outcome("failed", f"error: {_first_line(error)}", f"epoch {number}: {_last_lines(error)}\n\n{case}")
            wrong = got and (_wrong_schema(answer.schema, got.schema) or _difference(case, answer, got))
            if wrong:
                return Outcome("failed", wrong[0], f"epoch {number}: {wrong[1]}\n\n{case}")
        return None

    def answer(self, case: Case, tables: Mapping[str, list[Row]]) -> Answer:
        """The query over the tables as they are."""
        for table in case.tables:
            frame_of(self.batch, tables[table.name], table.schema).createOrReplaceTempView(table.name)
        frame = self.batch.sql(case.query)
        return Answer(frame.schema, rows_of(frame))


def new_session(spark: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    session = spark.newSession()
    for name, value in settings.items():
        session.conf.set(name, value)
    return session


def frame_of(spark: SparkSession, rows: Sequence[Row], schema: StructType) -> DataFrame:
    """Rows by Arrow are a local relation: a query over rows that PySpark pickles takes five times as long."""
    types = to_arrow_schema(schema, timestamp_utc=True)
    columns = [pa.array([_for_arrow(row[place], field.type) for row in rows], field.type) for place, field in enumerate(types)]
    return spark.createDataFrame(pa.Table.from_arrays(columns, schema=types), schema)


def _for_arrow(value: Any, kind: pa.DataType) -> Any:
    """Structs are tuples, here and in PySpark's rows."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return {kind.field(place).name: _for_arrow(item, kind.field(place).type) for place, item in enumerate(value)}
    if pa.types.is_list(kind):
        return [_for_arrow(item, kind.value_type) for item in value]
    return list(value.items()) if isinstance(value, dict) else value


def rows_of(frame: DataFrame) -> tuple[Row, ...]:
    return tuple(normal(tuple(row)) for row in frame.collect())


def changes_of(frame: DataFrame) -> Rows:
    """Rows and their weights."""
    found = Rows()
    for *values, weight in frame.collect():
        found[tuple(normal(value) for value in values)] += weight
    return found


def sum_of(first: Rows, second: Rows) -> Rows:
    """Weights may be negative: the operators of `Counter` drop those."""
    found = Rows(first)
    found.update(second)
    return Rows({row: weight for row, weight in found.items() if weight})


def normal(value: Any) -> Any:
    """Equal values of SQL as equal values of Python; floats to 9 digits."""
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN"
        return 0.0 if abs(value) < 1e-7 else float(f"{value:.9g}")
    if isinstance(value, Decimal):
        return value.normalize() if value else Decimal(0)
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, tuple | list):
        return tuple(normal(item) for item in value)
    if isinstance(value, dict):
        return tuple(sorted((normal(key), repr(normal(item))) for key, item in value.items()))
    return value


def _difference(case: Case, answer: Answer, got: Answer) -> tuple[str, str] | None:
    expected, found = Rows(answer.rows), Rows(got.rows)
    if expected != found:
        return "mismatch", f"not the batch answer{_lines(expected, found)}"
    if got.in_order and is_ordered(case.query, answer.schema.names) and answer.rows != got.rows:
        return "order", f"not in order\n  expected: {answer.rows}\n  got: {got.rows}"
    return None


def is_ordered(query: str, columns: Sequence[str]) -> bool:
    """Whether the order of all rows follows from the query's text: ORDER BY has all columns."""
    tree = sqlglot.parse_one(query, dialect="spark")
    order = tree.args.get("order")
    names = {each.this.name for each in order.expressions if isinstance(each.this, exp.Column)} if order else set()
    return names.issuperset(columns)


def _lines(expected: Rows, got: Rows) -> str:
    sides = {
        "expected": expected,
        "got": got,
        "expected - got": Counter(expected) - Counter(got),
        "got - expected": Counter(got) - Counter(expected),
    }
    return "".join(f"\n  {name}: {dict(rows) if len(rows) < 40 else f'{len(rows)} rows'}" for name, rows in sides.items())


def _wrong_schema(wanted: StructType, found: StructType) -> tuple[str, str] | None:
    pairs = [[(field.name, field.dataType.simpleString()) for field in fields] for fields in (wanted.fields, found.fields)]
    if pairs[0] == pairs[1]:
        return None
    return "schema", f"the schema is {found.simpleString()}, of the batch answer {wanted.simpleString()}"


def _first_line(error: BaseException) -> str:
    """The kind of an error: without numbers, names and texts that differ between cases."""
    java = error.java_exception.toString() if isinstance(error, Py4JJavaError) else str(error)
    text = (java.strip() or "no message").splitlines()[0]
    named = re.search(r"\[[A-Z_.]+\]", text)
    text = named[0] if named else re.sub(r"[#]?[0-9]+L?", "N", re.sub(r"\"[^\"]*\"|`[^`]*`", "…", text))
    return f"{type(error).__name__}: {text[:160]}"


def _last_lines(error: BaseException) -> str:
    import traceback

    lines = "".join(traceback.format_exception(error)).splitlines()
    python = [line for line in lines if not line.lstrip().startswith("at ")]
    return "\n".join(python[-25:])

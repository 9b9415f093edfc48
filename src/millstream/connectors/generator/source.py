"""Generated rows, fast enough for benchmarks: Spark's own row counters, and one expression per column.

Without a rate, `rate-micro-batch` numbers the rows of each epoch; with one, `rate` numbers them by the clock. These sources give only the
numbers; the columns are computed from them (`hash_random.py`).
"""

from __future__ import annotations

import json
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import pyarrow as pa
from pydantic import Field, model_validator

from millstream.connectors.generator.hash_random import ROW, Dice
from millstream.connectors.generator.numbers import BoolField, NormalField, SequenceField, TimestampField, UniformField
from millstream.connectors.generator.texts import ChoiceField, ConstantField, TemplateField, UuidField
from millstream.errors import nearest
from millstream.plan.components import REJECT, NodeContext, Progress, Source, SourceRun
from millstream.plan.expressions import quote_column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

AnyField = Annotated[
    SequenceField | ChoiceField | UniformField | NormalField | TimestampField | UuidField | TemplateField | ConstantField | BoolField,
    Field(discriminator="type"),
]
_SMALL = 2_000_000


class GeneratorSource(Source):
    """Generates rows, for experiments, demos and measurements. The same seed gives the same rows: in every run, after a restart, on any
    number of cores. With `rows_per_second` the clock continues while the pipeline is stopped: after a restart the missed rows come
    first.
    """

    type: ClassVar[str] = "generator"
    keyless: ClassVar[bool] = True
    shaped_by: ClassVar[frozenset[str]] = frozenset({"fields"})
    summary: ClassVar[str] = "Generate rows: typed, seeded, the same every time."
    example: ClassVar[str] = """
        clicks:
          type: generator
          rows: 1_000_000
          rows_per_second: 5000
          seed: 7
          fields:
            id: {type: sequence}
            user: {type: choice, values: [ann, bob], weights: [3, 1]}
            amount: {type: uniform, min: 1, max: 100}
            at: {type: timestamp, start: 2026-01-01T00:00:00Z, step: 10ms, jitter: 1s}
    """
    adjustable: ClassVar[frozenset[str]] = frozenset({"rows_per_epoch", "partitions"})

    fields: Annotated[dict[str, AnyField], Field(min_length=1)]
    """The columns, by name."""
    rows: int | None = Field(default=None, ge=1)
    """The number of rows. Default: no end."""
    rows_per_second: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """The rate. Default: as fast as possible."""
    rows_per_epoch: int = Field(default=1_000_000, ge=1)
    """The size of an epoch, without a rate."""
    seed: int = 0
    """Another seed gives other rows."""
    partitions: int | None = Field(default=None, ge=1)
    """The number of tasks that generate rows. Default: the number of cores."""

    @model_validator(mode="after")
    def _templates(self) -> GeneratorSource:
        for name, field in self.fields.items():
            for used in field.names if isinstance(field, TemplateField) else ():
                if used not in self.fields:
                    raise ValueError(f"the template of `{name}` names `{used}`, which is not a field; {nearest(used, self.fields)}")
        self.ordered_templates()
        return self

    @property
    def expensive(self) -> bool:
        return False

    @property
    def bounded(self) -> bool:
        return self.rows is not None

    @property
    def available_now(self) -> bool:
        """Spark's available-now trigger reads only one epoch from its row counters."""
        return self.rows is not None and self.rows_per_second is None and self.rows <= self.rows_per_epoch

    @property
    def small(self) -> bool:
        return self.rows is not None and self.rows <= _SMALL

    def output(self) -> pa.Schema:
        return pa.schema([pa.field(name, field.arrow) for name, field in self.fields.items()])

    def open(self, context: NodeContext) -> GeneratorSourceRun:
        return GeneratorSourceRun(self, context)

    @property
    def pace(self) -> tuple[int, Fraction]:
        """Spark counts whole rows per second; keeping a share of them gives the exact rate."""
        assert self.rows_per_second is not None
        wanted = Fraction(self.rows_per_second).limit_denominator(1000)
        whole = max(1, ceil(wanted))
        return whole, wanted / whole

    def count(self, offset: Any) -> int:
        """Rows up to an offset: `{"offset": rows}`, or the seconds of a rate."""
        if offset is None:
            return 0
        parsed = json.loads(offset) if isinstance(offset, str) else offset
        if isinstance(parsed, dict):
            return int(parsed["offset"])
        whole, share = self.pace
        return int(int(parsed) * whole * share)

    def ordered_templates(self) -> list[str]:
        """The templates, each after those that it uses; ValueError when they form a cycle."""
        waiting = {name: field for name, field in self.fields.items() if isinstance(field, TemplateField)}
        done: list[str] = []
        while waiting:
            ready = [name for name, field in waiting.items() if not any(used in waiting for used in field.names)]
            if not ready:
                raise ValueError(f"the templates {' and '.join(f'`{name}`' for name in waiting)} form a cycle")
            done += ready
            waiting = {name: field for name, field in waiting.items() if name not in ready}
        return done


class GeneratorSourceRun(SourceRun):
    """Spark's row counter, and the columns computed from it."""

    def __init__(self, source: GeneratorSource, context: NodeContext) -> None:
        super().__init__(context)
        self.source = source

    def read(self, spark: SparkSession) -> DataFrame:
        numbered = self._numbers(spark)
        if self.source.rows is not None:
            numbered = numbered.where(f"{ROW} < {self.source.rows}L")
        dice = {name: field.column_sql(Dice(self.source.seed, name)) for name, field in self.source.fields.items()}
        plain = [f"{sql} AS {quote_column(name)}" for name, sql in dice.items() if not isinstance(self.source.fields[name], TemplateField)]
        frame = numbered.selectExpr(ROW, *plain)
        for name in self.source.ordered_templates():
            frame = frame.selectExpr("*", f"{dice[name]} AS {quote_column(name)}")
        rejects = [f"CAST(NULL AS struct<raw: string, error: string>) AS {REJECT}"] if self.context.isolate else []
        return frame.selectExpr(*map(quote_column, self.source.fields), *rejects)

    def is_exhausted(self, offset: Any) -> bool:
        return self.source.rows is not None and self.source.count(offset) >= self.source.rows

    def rows_read(self, progress: Progress) -> int:
        limit = self.source.rows if self.source.rows is not None else 2**63
        return min(limit, self.source.count(progress.end)) - min(limit, self.source.count(progress.start))

    def _numbers(self, spark: SparkSession) -> DataFrame:
        partitions = str(self.source.partitions or spark.sparkContext.defaultParallelism)
        if self.source.rows_per_second is None:
            size = min(self.source.rows_per_epoch, self.source.rows or self.source.rows_per_epoch)
            reader = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", size).option("startTimestamp", 0)
            return reader.option("numPartitions", partitions).load().selectExpr(f"value AS {ROW}")
        whole, share = self.source.pace
        frame = spark.readStream.format("rate").option("rowsPerSecond", whole).option("numPartitions", partitions).load()
        if share == 1:
            return frame.selectExpr(f"value AS {ROW}")
        number = f"value * {share.numerator}L div {share.denominator}L"
        after = f"(value + 1L) * {share.numerator}L div {share.denominator}L"
        return frame.where(f"{after} > {number}").selectExpr(f"{number} AS {ROW}")

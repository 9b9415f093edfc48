"""A query over its inputs, as Spark analyses it.

The inputs are leaves without rows. Aggregates by window and joins within a time stay with Spark's stream, which forgets what the watermark
has passed: they are cut out of the plan, and their rows are inputs of the incremental query, in the same epoch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType, TimestampType

from millstream.engine.incremental.arrivals import Feed
from millstream.engine.incremental.keys import Keys
from millstream.engine.incremental.steps import CONF, refuse_clock, step_of
from millstream.engine.incremental.weights import column_names
from millstream.sql.analysed import parts, plans
from millstream.sql.analysed.gate import Carriers, Refusal, inexact, window_columns
from millstream.sql.catalyst.bridge import Bridge, Plan

Relate = Callable[[Mapping[str, DataFrame]], DataFrame]
"""Computes the result from frames of the inputs."""


class Analysis:
    """The plan of a query, and its inputs."""

    def __init__(self, spark: SparkSession, feeds: Mapping[str, Feed], relate: Relate, node: str = "query") -> None:
        """`node` has the result, and messages name it."""
        self.feeds, self.node = dict(feeds), node
        self.bridge = bridge = Bridge(_compiling(spark))
        bridge.check()
        leaves = {name: self._placeholder(feed) for name, feed in feeds.items()}
        result = relate({name: bridge.frame(leaf) for name, leaf in leaves.items()})
        self.names = tuple(result.columns)
        self.plan = bridge.analysed(result)
        refuse_clock(bridge, self.plan)
        self.inputs = {bridge.rdd_id(leaf): name for name, leaf in leaves.items()}
        """The id of a leaf's RDD → the input."""
        self.streamed: tuple[Plan, ...] = ()
        """The parts that Spark's stream computes."""
        self.reads: Counter[str] = Counter()
        """The input → how often the stream reads it, if parts do."""

    def _placeholder(self, feed: Feed) -> Plan:
        empty = self.bridge.spark.createDataFrame([], feed.plain_schema)
        output = [each for each in self.bridge.items(empty._jdf.queryExecution().analyzed().output()) if each.name() in feed.columns]
        return self.bridge.leaf(self.bridge.seq(output), self.bridge.empty_rdd())

    def stream_parts(self, nodes: Mapping[str, str], streams: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
        """Leave parts of the query to Spark's stream. `nodes` gives the nodes whose parts may be, by their texts; `streams` are the rows
        of the inputs. Returns the streams that the rest of the query reads.
        """
        found = self._streamable(nodes, streams) if nodes else []
        if not found:
            return dict(streams)
        cut = parts.cut(self.bridge, self.plan, found)
        owners = [f"{_word(part)} of {nodes[_text_of(part)]}" for part in cut.parts]
        names = [f"{owner}{_number(owners, place)}" for place, owner in enumerate(owners)]
        known = self.inputs | {self.bridge.rdd_id(leaf): names[number] for leaf, number in cut.leaves}
        read = {known[self.bridge.rdd_id(leaf)] for leaf in self.bridge.nodes(cut.rest) if self._is_input(leaf)}
        reads = {name: [self.feeds[name].arrives_as or name] for name in self.feeds if name in read}
        reads |= {name: [self._input_of(leaf) for leaf in self._leaves(part)] for name, part in zip(names, cut.parts, strict=True)}
        ordered = _in_order_of(list(streams), reads)
        if not ordered:
            return dict(streams)
        native = dict(zip(names, cut.parts, strict=True))
        rows: dict[str, DataFrame] = {}
        feeds: dict[str, Feed] = {}
        for name in ordered:
            if name in native:
                rows[name] = self._streamed(native[name], streams)
                key, windows = self._key_of(native[name]), _windows(rows[name])
                feeds[name] = Feed(rows[name].schema, key, native=True, windows=windows, lags_us=_lags(rows[name], windows))
            else:
                (arrives_as,) = reads[name]
                rows[arrives_as], feeds[name] = streams[arrives_as], self.feeds[name]
        self.plan, self.streamed, self.inputs, self.feeds = cut.rest, cut.parts, known, feeds
        self.reads.update(each for name in ordered for each in reads[name])
        return rows

    def _streamable(self, nodes: Collection[str], streams: Mapping[str, DataFrame]) -> list[Plan]:
        found = parts.streamable(self.bridge, self.plan, lambda each: _text_of(each) in nodes and self._runs(each, streams))
        found = parts.without_merged_sessions(self.plan, found)
        return sorted(found, key=lambda each: (list(nodes).index(_text_of(each)), parts.place_of(each)))

    def _runs(self, part: Plan, streams: Mapping[str, DataFrame]) -> bool:
        """Whether Spark runs a part as a stream; frames without rows, which only show a plan, are no streams."""
        frame = self._streamed(part, streams)
        bridge = Bridge(frame.sparkSession)
        refused = frame.isStreaming and bridge.streaming_refusal(bridge.analysed_as_is(frame), "Append")
        return not refused and inexact(frame) is None

    def _is_input(self, node: Plan) -> bool:
        return self.bridge.is_leaf(node) and self.bridge.rdd_id(node) in self.inputs

    def _input_of(self, leaf: Plan) -> str:
        return self.inputs[self.bridge.rdd_id(leaf)]

    def _leaves(self, part: Plan) -> list[Plan]:
        return [leaf for leaf in self.bridge.items(part.collectLeaves()) if self._is_input(leaf)]

    def _streamed(self, part: Plan, streams: Mapping[str, DataFrame]) -> DataFrame:
        """A part over the streams of its inputs."""
        bridge = Bridge(next(iter(streams.values())).sparkSession)
        rows = [(leaf, bridge.analysed_as_is(streams[self._input_of(leaf)])) for leaf in self._leaves(part)]
        pairs = [(leaf, parts.with_columns_of(bridge, leaf, below, plans.names(leaf))) for leaf, below in rows]
        hosted = bridge.replaced_everywhere(part, pairs)
        frame = bridge.frame(parts.streamed(bridge, hosted))
        return frame.toDF(*column_names(len(frame.columns)))

    def _key_of(self, part: Plan) -> tuple[str, ...]:
        """The columns that identify a row of a part."""
        found = Keys(self.bridge, {}).of(step_of(self.bridge, part, {}))
        ids = plans.ids(part)
        return tuple(f"c{ids.index(column)}" for column in sorted(found[0], key=ids.index)) if found else ()


def query_over(text: str) -> Relate:
    """A query as a function of the frames that it names."""

    def relate(frames: Mapping[str, DataFrame]) -> DataFrame:
        bridge = Bridge(next(iter(frames.values())).sparkSession)
        tables = {name: frame._jdf.queryExecution().analyzed() for name, frame in frames.items()}
        return bridge.frame(bridge.with_tables(bridge.with_inlined_definitions(bridge.parse(text)), tables))

    return relate


def _compiling(spark: SparkSession) -> SparkSession:
    """A session of its own for compiling, with the functions and settings of another."""
    session = SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())
    for name, value in CONF.items():
        session.conf.set(name, value)
    return session


def _in_order_of(inputs: list[str], reads: Mapping[str, list[str]]) -> list[str]:
    """What is read, in an order in which all inputs are met in theirs; empty if there is none. Spark numbers its sources in the order in
    which the stream meets them, and offsets are stored by that number.
    """
    found = sorted(reads, key=lambda name: [inputs.index(each) for each in reads[name]])
    met = list(dict.fromkeys(each for name in found for each in reads[name]))
    return found if met == inputs else []


def _windows(frame: DataFrame) -> Carriers:
    """The columns of a part that hold the window by which all its rows close in one epoch."""
    aggregates = parts.windowed_aggregates(plans.analysed_plan(frame))
    if len(aggregates) != 1 or not parts.closes_windows(aggregates[0]):
        return {}
    found = window_columns(frame, parts.kind_of_window(aggregates[0]))
    return {} if isinstance(found, Refusal) else found


def _lags(frame: DataFrame, windows: Carriers) -> dict[str, int]:
    """How far the windows of rows to come are behind the watermark, at most. A window leaves when the watermark has passed its end, so
    those to come end after it.
    """
    (aggregate,) = parts.windowed_aggregates(plans.analysed_plan(frame)) if windows else (None,)
    if aggregate is None or not parts.closes_by_inputs(aggregate):
        return {}
    length = parts.length_of_windows(aggregate)
    edges = {"end": 0} if length is None else {"start": length, "end": 0}
    found: dict[str, int] = {}
    for name, carrier in windows.items():
        kind = frame.schema[name].dataType
        if isinstance(kind, StructType) and carrier.edge == "window" and isinstance(kind["end"].dataType, TimestampType):
            found |= {f"{name}.{edge}": lag for edge, lag in edges.items()}
        elif isinstance(kind, TimestampType) and carrier.edge in edges:
            found[name] = edges[carrier.edge]
    return found


def _word(part: Plan) -> str:
    return "windows" if plans.kind(part) == "Aggregate" else "join"


def _number(owners: list[str], place: int) -> str:
    """Tells the parts of one node apart."""
    return f" ({owners[:place].count(owners[place]) + 1})" if owners.count(owners[place]) > 1 else ""


def _text_of(node: Plan) -> str:
    found = plans.step_origin(node)
    return found.text if found else ""

"""The public names. Written by `make docs`."""

from millstream.api.environment import StreamEnvironment as StreamEnvironment
from millstream.api.keyed import KeyedStream as KeyedStream
from millstream.api.keyed import WindowedStream as WindowedStream
from millstream.api.stream import DataStream as DataStream
from millstream.api.stream import Flow as Flow
from millstream.api.stream import Split as Split
from millstream.connectors.blackhole.sink import BlackholeSink as BlackholeSink
from millstream.connectors.file.committed import committed_files as committed_files
from millstream.connectors.file.committed import read_committed as read_committed
from millstream.connectors.file.sink import FileSink as FileSink
from millstream.connectors.file.source import FileSource as FileSource
from millstream.connectors.generator.source import GeneratorSource as GeneratorSource
from millstream.connectors.kafka.sink import KafkaSink as KafkaSink
from millstream.connectors.kafka.source import KafkaSource as KafkaSource
from millstream.connectors.memory.sink import MemorySink as MemorySink
from millstream.connectors.memory.source import MemorySource as MemorySource
from millstream.connectors.postgres.aggregate import PostgresAggregateSink as PostgresAggregateSink
from millstream.connectors.postgres.sink import PostgresSink as PostgresSink
from millstream.connectors.postgres.source import PostgresSource as PostgresSource
from millstream.connectors.print.sink import PrintSink as PrintSink
from millstream.errors import Diagnostic as Diagnostic
from millstream.errors import MillstreamError as MillstreamError
from millstream.observe.report import Report as Report
from millstream.plan.aggregates import approx_count_distinct as approx_count_distinct
from millstream.plan.aggregates import approx_percentile as approx_percentile
from millstream.plan.aggregates import avg as avg
from millstream.plan.aggregates import collect as collect
from millstream.plan.aggregates import collect_set as collect_set
from millstream.plan.aggregates import count as count
from millstream.plan.aggregates import count_distinct as count_distinct
from millstream.plan.aggregates import first as first
from millstream.plan.aggregates import last as last
from millstream.plan.aggregates import max_ as max_
from millstream.plan.aggregates import median as median
from millstream.plan.aggregates import min_ as min_
from millstream.plan.aggregates import percentile as percentile
from millstream.plan.aggregates import stddev as stddev
from millstream.plan.aggregates import sum_ as sum_
from millstream.plan.aggregates import top_k as top_k
from millstream.plan.aggregates import variance as variance
from millstream.plan.declarations import function as function
from millstream.plan.event_time import EventTime as EventTime
from millstream.plan.expressions import Expr as Expr
from millstream.plan.expressions import col as col
from millstream.plan.expressions import expr as expr
from millstream.plan.expressions import func as func
from millstream.plan.expressions import lit as lit
from millstream.plan.run_options import RunOptions as RunOptions
from millstream.plan.settings import Settings as Settings
from millstream.plan.topology import Topology as Topology
from millstream.plan.tracing import Sampling as Sampling
from millstream.plan.windows import SessionWindow as SessionWindow
from millstream.plan.windows import SlidingWindow as SlidingWindow
from millstream.plan.windows import TumblingWindow as TumblingWindow
from millstream.spec.files import load_pipeline as load_pipeline
from millstream.worker.processing import BucketFunction as BucketFunction
from millstream.worker.processing import BucketResult as BucketResult
from millstream.worker.processing import Moment as Moment
from millstream.worker.processing import ProcessFunction as ProcessFunction
from millstream.worker.processing import Timers as Timers
from millstream.worker.state_cells import KeyState as KeyState
from millstream.worker.states import ListState as ListState
from millstream.worker.states import MapState as MapState
from millstream.worker.states import ValueState as ValueState

__version__: str
__all__: list[str]
_NAMES: dict[str, tuple[str, ...]]

def _modules() -> dict[str, str]: ...

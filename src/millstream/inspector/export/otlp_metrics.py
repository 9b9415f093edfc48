"""The metrics of a run as one OTLP message: those of the table, and those of the two processes.

Counts are cumulative since the start of the run. Names are the table's; units are UCUM's, as OpenTelemetry wants them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from importlib.metadata import version

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.metrics.v1 import metrics_pb2
from opentelemetry.proto.metrics.v1.metrics_pb2 import Gauge, HistogramDataPoint, Metric, NumberDataPoint, Sum
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from prometheus_client.core import Metric as Family

from millstream.inspector.attended import AttendedRun
from millstream.inspector.exported_metrics import METRICS, ExportedMetric, Moment
from millstream.inspector.exposition import process_families
from millstream.inspector.health import health_of
from millstream.observe.histogram import BOUNDS, Histogram
from millstream.secrets import redacted

_UNITS = {"seconds": "s", "bytes": "By"}
_CUMULATIVE = metrics_pb2.AGGREGATION_TEMPORALITY_CUMULATIVE


def message_of(run: AttendedRun) -> bytes:
    """All metrics at this moment."""
    snapshot = run.recorder.snapshot()
    moment = Moment(snapshot, health_of(snapshot, run.gate.is_paused), time.time())
    span = _Span(int(run.began * 1e9), int(moment.now * 1e9))
    request = ExportMetricsServiceRequest()
    group = request.resource_metrics.add(resource=resource_of(run))
    scope = group.scope_metrics.add(scope=InstrumentationScope(name="millstream", version=version("millstream")))
    of_node = {node.name: redacted(node.options.telemetry.labels, run.redact) for node in run.topology.nodes}
    for metric in METRICS:
        scope.metrics.append(_metric(metric, moment, of_node, span))
    for family in process_families(snapshot.jvm):
        scope.metrics.extend(_of_process(family, span))
    return bytes(request.SerializeToString())


def resource_of(run: AttendedRun) -> Resource:
    """Who sends: the pipeline is the service, and the run its instance."""
    labels = redacted(run.topology.settings.telemetry.labels, run.redact)
    known = {"service.name": run.name, "service.instance.id": run.run, "service.version": version("millstream")}
    return Resource(attributes=[*attributes(labels | known), KeyValue(key="process.pid", value=AnyValue(int_value=os.getpid()))])


def attributes(values: Mapping[str, str]) -> list[KeyValue]:
    return [KeyValue(key=name, value=AnyValue(string_value=value)) for name, value in values.items()]


class _Span:
    """The time that cumulative counts are of."""

    def __init__(self, start: int, now: int) -> None:
        self.start, self.now = start, now

    def number(self, value: float, labels: Mapping[str, str]) -> NumberDataPoint:
        point = NumberDataPoint(start_time_unix_nano=self.start, time_unix_nano=self.now, attributes=attributes(labels))
        if isinstance(value, int):
            point.as_int = value
        else:
            point.as_double = value
        return point

    def histogram(self, value: Histogram, labels: Mapping[str, str]) -> HistogramDataPoint:
        return HistogramDataPoint(
            start_time_unix_nano=self.start,
            time_unix_nano=self.now,
            attributes=attributes(labels),
            count=sum(value.counts),
            sum=value.total,
            bucket_counts=value.counts,
            explicit_bounds=BOUNDS,
        )


def _metric(metric: ExportedMetric, moment: Moment, of_node: Mapping[str, Mapping[str, str]], span: _Span) -> Metric:
    found = Metric(name=metric.name, description=metric.description, unit=_UNITS.get(metric.unit, "1"))
    for values, value in metric.points(moment):
        own = of_node.get(values[0], {}) if "node" in metric.labels else {}
        labels = {**own, **dict(zip(metric.labels, values, strict=True))}
        if isinstance(value, Histogram):
            found.histogram.aggregation_temporality = _CUMULATIVE
            found.histogram.data_points.append(span.histogram(value, labels))
        elif metric.kind == "counter":
            found.sum.CopyFrom(_sum([*found.sum.data_points, span.number(value, labels)]))
        else:
            found.gauge.data_points.append(span.number(value, labels))
    return found


def _of_process(family: Family, span: _Span) -> Iterable[Metric]:
    """`millstream_jvm_process_resident_memory_bytes` → `millstream.jvm.process.resident_memory` in bytes."""
    unit = next((unit for unit in _UNITS if family.name.endswith(f"_{unit}")), "")
    name = family.name.removesuffix(f"_{unit}").replace("_", ".", 3).removesuffix(".")
    points = [span.number(float(sample.value), {}) for sample in family.samples if not sample.name.endswith("_created")]
    found = Metric(name=name, description=family.documentation, unit=_UNITS.get(unit, "1"))
    if family.type == "counter":
        found.sum.CopyFrom(_sum(points))
    else:
        found.gauge.CopyFrom(Gauge(data_points=points))
    yield found


def _sum(points: Iterable[NumberDataPoint]) -> Sum:
    return Sum(data_points=points, aggregation_temporality=_CUMULATIVE, is_monotonic=True)

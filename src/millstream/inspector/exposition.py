"""The metrics of a run in Prometheus' text format."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from importlib.metadata import version

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector

from millstream.inspector.attended import AttendedRun
from millstream.inspector.exported_metrics import METRICS, ExportedMetric, Moment
from millstream.inspector.health import health_of
from millstream.observe.histogram import Histogram
from millstream.secrets import redacted

CONTENT_TYPE = CONTENT_TYPE_LATEST


def exposition(run: AttendedRun) -> bytes:
    """All metrics at this moment."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_RunCollector(run))
    for collector in _processes(run.recorder.snapshot().jvm):
        registry.register(collector)
    return generate_latest(registry)


def process_families(jvm: int | None) -> Iterator[Metric]:
    """The metrics of this process, and of the JVM that the run has started."""
    for collector in _processes(jvm):
        yield from collector.collect()


def _processes(jvm: int | None) -> Iterator[Collector]:
    yield ProcessCollector(namespace="millstream_python", registry=None)
    if jvm is not None:
        yield ProcessCollector(namespace="millstream_jvm", pid=lambda: jvm, registry=None)


class _RunCollector(Collector):
    """The metrics of the table."""

    def __init__(self, run: AttendedRun) -> None:
        self._run = run
        settings = run.topology.settings.telemetry.labels
        self._always = {"pipeline": run.name, **redacted(settings, run.redact)}
        self._of_node = {node.name: redacted(node.options.telemetry.labels, run.redact) for node in run.topology.nodes}
        self._more = tuple(sorted({name for labels in self._of_node.values() for name in labels} - self._always.keys()))

    def collect(self) -> Iterable[Metric]:
        snapshot = self._run.recorder.snapshot()
        moment = Moment(snapshot, health_of(snapshot, self._run.gate.is_paused), time.time())
        about = GaugeMetricFamily("millstream_run_info", "The run.", labels=[*self._always, "run", "version", "process"])
        about.add_metric([*self._always.values(), self._run.run, version("millstream"), str(self._run.process)], 1)
        yield about
        for metric in METRICS:
            yield self._family(metric, moment)

    def _family(self, metric: ExportedMetric, moment: Moment) -> Metric:
        more = self._more if "node" in metric.labels else ()
        names = [*self._always, *metric.labels, *more]
        if metric.kind == "histogram":
            histogram = HistogramMetricFamily(metric.prometheus, metric.description, labels=names)
            for labels, value in metric.points(moment):
                assert isinstance(value, Histogram)
                counts = [(bound, float(count)) for bound, count in value.cumulated()]
                histogram.add_metric([*self._always.values(), *labels], counts, value.total)
            return histogram
        kind = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
        family = kind(metric.prometheus, metric.description, labels=names)
        for labels, value in metric.points(moment):
            assert not isinstance(value, Histogram)
            family.add_metric([*self._always.values(), *labels, *self._labels_of(labels, more)], float(value))
        return family

    def _labels_of(self, labels: tuple[str, ...], more: tuple[str, ...]) -> Iterator[str]:
        """The user's labels of a node; empty where it has none of that name."""
        own = self._of_node.get(labels[0], {}) if labels else {}
        return (own.get(name, "") for name in more)

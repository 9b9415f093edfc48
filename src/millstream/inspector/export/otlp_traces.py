"""Spans as OTLP messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib.metadata import version

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1 import trace_pb2

from millstream.inspector.export.spans import Span

_KINDS = {
    "internal": trace_pb2.Span.SPAN_KIND_INTERNAL,
    "consumer": trace_pb2.Span.SPAN_KIND_CONSUMER,
    "producer": trace_pb2.Span.SPAN_KIND_PRODUCER,
}
_SAMPLED = 1


def message_of(spans: Iterable[Span], resource: Resource, redact: Callable[[str], str]) -> bytes:
    """One message; secrets are starred."""
    request = ExportTraceServiceRequest()
    about = InstrumentationScope(name="millstream", version=version("millstream"))
    scope = request.resource_spans.add(resource=resource).scope_spans.add(scope=about)
    scope.spans.extend(_span(each, redact) for each in spans)
    return bytes(request.SerializeToString())


def _span(span: Span, redact: Callable[[str], str]) -> trace_pb2.Span:
    found = trace_pb2.Span(
        trace_id=bytes.fromhex(span.context.trace),
        span_id=bytes.fromhex(span.context.span),
        parent_span_id=bytes.fromhex(span.parent),
        name=span.name,
        kind=_KINDS[span.kind],
        start_time_unix_nano=span.start,
        end_time_unix_nano=max(span.start, span.end),
        flags=_SAMPLED,
        attributes=[KeyValue(key=name, value=_value(value, redact)) for name, value in span.attributes.items()],
        links=[trace_pb2.Span.Link(trace_id=bytes.fromhex(each.trace), span_id=bytes.fromhex(each.span)) for each in span.links],
    )
    if span.error:
        found.status.code = trace_pb2.Status.STATUS_CODE_ERROR
        found.status.message = redact(span.error)
    return found


def _value(value: str | int, redact: Callable[[str], str]) -> AnyValue:
    return AnyValue(int_value=value) if isinstance(value, int) else AnyValue(string_value=redact(value))

"""A receiver of OTLP over HTTP that parses what it gets with OpenTelemetry's own messages."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

_KINDS = {"/v1/metrics": ExportMetricsServiceRequest, "/v1/traces": ExportTraceServiceRequest}


@dataclass
class Received:
    """What has arrived."""

    endpoint: str
    status: int = 200
    """What it answers; change it to refuse."""
    messages: list[Any] = field(default_factory=list)
    raw: list[bytes] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    def metrics(self) -> dict[str, Any]:
        """Name → metric of the last message."""
        last = [each for each in self.messages if isinstance(each, ExportMetricsServiceRequest)][-1]
        return {metric.name: metric for metric in last.resource_metrics[0].scope_metrics[0].metrics}

    def spans(self) -> list[Any]:
        """All spans, in the order of their arrival."""
        traces = [each for each in self.messages if isinstance(each, ExportTraceServiceRequest)]
        return [span for each in traces for group in each.resource_spans for scope in group.scope_spans for span in scope.spans]


@contextmanager
def collector(port: int = 0) -> Iterator[Received]:
    """In the body it listens on loopback."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = gzip.decompress(self.rfile.read(int(self.headers["Content-Length"])))
            received.headers.append({name.lower(): value for name, value in self.headers.items()})
            if received.status == 200:
                received.raw.append(body)
                received.messages.append(_KINDS[self.path].FromString(body))
            self.send_response(received.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    received = Received(f"http://127.0.0.1:{server.server_address[1]}")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield received
    finally:
        server.shutdown()
        server.server_close()

"""A schema registry that points to another server gets the login; the other server does not."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

from millstream.clients.schema_registry import SchemaRegistry


@contextmanager
def server(target: str = "") -> Iterator[tuple[str, list[str | None]]]:
    """A stand-in that answers with no subjects, or points elsewhere; and the logins that it saw."""
    seen: list[str | None] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.headers.get("Authorization"))
            self.send_response(302 if target else 200)
            if target:
                self.send_header("Location", target + self.path)
            self.end_headers()
            self.wfile.write(b"" if target else b"[]")

        def log_message(self, format: str, *args: object) -> None:
            """Nothing to the terminal."""

    running = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=running.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{running.server_port}", seen
    finally:
        running.shutdown()


def test_a_login_does_not_follow_to_another_server() -> None:
    with server() as (other, there), server(other) as (first, here):
        assert SchemaRegistry((first,), username="u", password="p").subjects() == []
    assert here == ["Basic dTpw"] and there == [None]

"""The events of a run as server-sent events: first the state of the run, then what happens.

A client that does not read is dropped: its events would fill the memory of the run otherwise.
"""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.types import Receive, Scope, Send

from millstream.inspector.attended import AttendedRun
from millstream.inspector.documents import as_json, status_document
from millstream.observe.events import PRIVATE, as_dict

_TICK = 0.2
_ALIVE = 10.0
"""Seconds between two signs of life."""
_PATIENCE = 10.0
"""How long a client may leave what was sent unread."""
_HEADERS = [(b"content-type", b"text/event-stream; charset=utf-8")]
_FINAL = frozenset({"done", "stopped"})
"""After them nothing comes. A failed run has its failures to tell, while Spark is closed."""


class Feed:
    """One client's connection; a response of its own kind, since Starlette's would wait for a client that does not read."""

    def __init__(self, run: AttendedRun, *, rows: bool) -> None:
        """`rows`: whether the client may see rows of users."""
        self._run, self._rows = run, rows

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        stream = self._run.recorder.events
        reader = stream.open()
        leaving = asyncio.create_task(_until_gone(receive))
        try:
            await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
            await self._send(send, "status", status_document(self._run))
            quiet = 0.0
            while not leaving.done():
                ended = self._run.ended.is_set() or self._run.recorder.snapshot().state in _FINAL
                taken, lost = reader.take()
                found = [event for event in taken if self._rows or not isinstance(event, PRIVATE)]
                if lost:
                    await self._send(send, "lost", {"events": lost})
                if found:
                    await self._send_text(send, "".join(self._message("fact", as_dict(event)) for event in found))
                    await self._send(send, "status", status_document(self._run))
                    quiet = 0.0
                elif quiet >= _ALIVE:
                    await self._send(send, "status", status_document(self._run))
                    quiet = 0.0
                if ended:
                    await self._send(send, "end", status_document(self._run))
                    break
                await asyncio.sleep(_TICK)
                quiet += _TICK
            await asyncio.wait_for(send({"type": "http.response.body", "body": b"", "more_body": False}), _PATIENCE)
        except (TimeoutError, OSError):
            pass  # the client has gone, or reads nothing
        finally:
            stream.close(reader)
            leaving.cancel()

    async def _send(self, send: Send, name: str, data: dict[str, Any]) -> None:
        await self._send_text(send, self._message(name, data))

    async def _send_text(self, send: Send, text: str) -> None:
        await asyncio.wait_for(send({"type": "http.response.body", "body": text.encode(), "more_body": True}), _PATIENCE)

    def _message(self, name: str, data: dict[str, Any]) -> str:
        return f"event: {name}\ndata: {as_json(self._run, data)}\n\n"


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass

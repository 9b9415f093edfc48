"""The web application of one run: health, metrics, events, plain data for its page, and orders."""

from __future__ import annotations

import gzip
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from functools import cache
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from millstream.codes import CODES
from millstream.errors import MillstreamError
from millstream.inspector.access import Access
from millstream.inspector.attended import AttendedRun
from millstream.inspector.documents import as_json, run_document, status_document, topology_document
from millstream.inspector.exposition import CONTENT_TYPE, exposition
from millstream.inspector.feed import Feed
from millstream.inspector.health import Health, health_of
from millstream.inspector.kept import checkpoint_document, log_document
from millstream.observe.events import as_dict
from millstream.plan.run_options import InspectAddress

_PAGE = {"": "text/html", "page.js": "text/javascript", "page.css": "text/css", "icon.svg": "image/svg+xml"}
_SAFE = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'none'",
}
_MOST_READERS = 100

Answer = Callable[[Request], Awaitable[ASGIApp]]


def application(run: AttendedRun, access: Access, open_page: Callable[[InspectAddress], str]) -> ASGIApp:
    """The application of a run; `access` says who may do what."""
    return _Guarded(Starlette(routes=[*_page_routes(), *_RunRoutes(run, access, open_page).routes()]), access)


class _Guarded:
    """Refuses requests that the rules do not allow, and adds the headers that protect a browser."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope)
        refusal = self._access.refusal(request.method, request.url.path, request.headers)
        if refusal is not None:
            status, reason = refusal
            await JSONResponse({"error": reason}, status)(scope, receive, send)
            return

        async def send_safely(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *((name.lower().encode(), value.encode()) for name, value in _SAFE.items())]
            await send(message)

        await self._app(scope, receive, send_safely)


def _page_routes() -> list[Route]:
    async def show(request: Request) -> Response:
        name = request.url.path.strip("/")
        small = "gzip" in request.headers.get("accept-encoding", "")
        return Response(_asset(name or "page.html", small), headers={"Content-Encoding": "gzip"} if small else None, media_type=_PAGE[name])

    return [Route(f"/{name}", show) for name in _PAGE]


@cache
def _asset(name: str, small: bool) -> bytes:
    found = files("millstream.inspector").joinpath("static", name).read_bytes()
    return gzip.compress(found, mtime=0) if small else found


class _RunRoutes:
    """The routes that show a run."""

    def __init__(self, run: AttendedRun, access: Access, open_page: Callable[[InspectAddress], str]) -> None:
        self._run, self._access, self._open_page = run, access, open_page

    def routes(self) -> list[Route]:
        shown: dict[str, Answer] = {
            "/healthz": self._alive,
            "/readyz": self._ready,
            "/metrics": self._metrics,
            "/facts": self._facts,
            "/api/run": self._describe,
            "/api/status": self._status,
            "/api/topology": self._topology,
            "/api/history": self._history,
            "/api/checkpoint": self._checkpoint,
            "/api/log": self._log,
            "/api/codes/{code}": self._explain,
        }
        orders: dict[str, Answer] = {
            f"/api/orders/{name}": getattr(self, f"_{name}") for name in ("stop", "pause", "resume", "savepoint", "page")
        }
        orders["/api/watch"] = self._watch
        return [
            *(Route(path, answer, methods=["GET"]) for path, answer in shown.items()),
            *(Route(path, _reporting(answer), methods=["POST"]) for path, answer in orders.items()),
        ]

    async def _alive(self, _: Request) -> Response:
        """The process answers, and its run has not failed."""
        health = self._health()
        return self._json(asdict(health), 503 if health.status == "failed" else 200)

    async def _ready(self, _: Request) -> Response:
        health = self._health()
        return self._json(asdict(health), 200 if health.is_ready else 503)

    async def _metrics(self, _: Request) -> Response:
        return Response(await run_in_threadpool(exposition, self._run), media_type=CONTENT_TYPE)

    async def _facts(self, request: Request) -> ASGIApp:
        if self._run.recorder.events.readers >= _MOST_READERS:
            return JSONResponse({"error": f"{_MOST_READERS} readers are connected already"}, 503)
        return Feed(self._run, rows=self._access.is_trusted(request.headers))

    async def _describe(self, _: Request) -> Response:
        return self._json(run_document(self._run))

    async def _status(self, _: Request) -> Response:
        return self._json(status_document(self._run))

    async def _topology(self, _: Request) -> Response:
        return self._json(await run_in_threadpool(topology_document, self._run))

    async def _checkpoint(self, _: Request) -> Response:
        return self._json(await run_in_threadpool(checkpoint_document, self._run))

    async def _log(self, request: Request) -> Response:
        """The log has texts of user code, and so perhaps values of rows: it is for those who may see rows."""
        if not self._access.is_trusted(request.headers):
            return JSONResponse({"error": "the token is missing or wrong: send `Authorization: Bearer TOKEN`"}, 401)
        return self._json(await run_in_threadpool(log_document, self._run))

    async def _explain(self, request: Request) -> Response:
        """What a code means, as `millstream explain` says it."""
        code = request.path_params["code"].upper()
        known = CODES.get(code)
        return self._json({"code": code, **asdict(known)} if known else {"error": f"there is no code {code}"}, 200 if known else 404)

    async def _history(self, _: Request) -> Response:
        return self._json(await run_in_threadpool(self._past))

    def _past(self) -> dict[str, Any]:
        history = self._run.history()
        return {"events": [as_dict(event) for event in history.events()], "measures": [as_dict(event) for event in history.measures()]}

    async def _stop(self, _: Request) -> Response:
        self._run.stop()
        return self._json(status_document(self._run))

    async def _pause(self, _: Request) -> Response:
        self._run.pause()
        return self._json(status_document(self._run))

    async def _resume(self, _: Request) -> Response:
        self._run.resume()
        return self._json(status_document(self._run))

    async def _savepoint(self, request: Request) -> Response:
        folder = (await request.json())["folder"]
        if not isinstance(folder, str) or not folder:
            raise ValueError("folder")
        return self._json(asdict(await run_in_threadpool(self._run.save, folder)))

    async def _watch(self, request: Request) -> Response:
        """Sample the rows of a node for some seconds; they come as events of the node and with the filter in the answer."""
        asked = await request.json()
        where = str(asked.get("where") or "").strip()
        sampled = await run_in_threadpool(self._run.watch, str(asked["node"]), where, begins=bool(asked.get("begins")))
        return JSONResponse({"node": sampled, "where": where})

    async def _page(self, request: Request) -> Response:
        """Open the page, for somebody who may give orders: the answer is its link with the token."""
        asked = await request.json()
        return JSONResponse({"url": self._open_page(InspectAddress(asked.get("host", "127.0.0.1"), int(asked.get("port", 0))))})

    def _json(self, data: dict[str, Any], status: int = 200) -> Response:
        return Response(as_json(self._run, data), status, media_type="application/json")

    def _health(self) -> Health:
        return health_of(self._run.recorder.snapshot(), self._run.gate.is_paused)


def _reporting(answer: Answer) -> Answer:
    """A failure is an answer with its diagnostics."""

    async def call(request: Request) -> ASGIApp:
        try:
            return await answer(request)
        except MillstreamError as error:
            return JSONResponse({"errors": [each.as_dict() for each in error.diagnostics], "exit": error.exit_code}, 409)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            return JSONResponse(
                {"error": 'the body must be JSON with the value that the order needs, such as {"folder": "before-v2"}'}, 400
            )

    return call

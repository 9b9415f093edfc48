"""A client for schema registries with Confluent's interface, over HTTP with the standard library only.

Several addresses are tried in turn. Temporary errors (no connection, a time-out, an answer of 500 and above) are retried with growing
pauses until the time is over; then the error lists each address's answer. Permanent errors are reported at once: a refused password, or an
address that is not a registry.
"""

from __future__ import annotations

import base64
import json
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import quote, urlsplit

from millstream.clients.registered_schemas import Schema, Version, body_of, schema_from
from millstream.errors import Diagnostic, RunError, TemporaryError

_JSON = "application/vnd.schemaregistry.v1+json"
_REQUEST_SECONDS = 5.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 2.0


class IncompatibleSchemaError(Exception):
    """The registry's reason for refusing a schema."""


@dataclass(frozen=True, slots=True)
class SchemaRegistry:
    """The registry's address and login."""

    urls: tuple[str, ...]
    username: str = ""
    password: str = ""
    ca: str = ""
    """Authorities that sign its certificate, as PEM text."""
    seconds: float = 20.0
    """How long to try."""

    def schema(self, id_: int) -> Schema | None:
        """The schema of an id; None when the registry does not have it."""
        found = self._ask("GET", f"/schemas/ids/{id_}")
        return schema_from(found) if found is not None else None

    def versions(self, subject: str) -> list[int]:
        """The versions of a subject, oldest first; none when there is no such subject."""
        found = self._ask("GET", f"/subjects/{quote(subject, safe='')}/versions")
        return sorted(map(int, found or []))

    def version(self, subject: str, version: int | Literal["latest"] = "latest") -> Version | None:
        found = self._ask("GET", f"/subjects/{quote(subject, safe='')}/versions/{version}")
        return Version(subject, int(found["version"]), int(found["id"]), schema_from(found)) if found is not None else None

    def subjects(self) -> list[str]:
        return sorted(self._ask("GET", "/subjects") or [])

    def register(self, subject: str, schema: Schema) -> int:
        """The schema's id, existing or new."""
        found = self._ask("POST", f"/subjects/{quote(subject, safe='')}/versions", body_of(schema))
        return int(found["id"])

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """The answer; None when the resource does not exist."""
        end, pause = time.monotonic() + self.seconds, _FIRST_PAUSE
        while True:
            said = []
            for url in self.urls:
                try:
                    return self._answer(url.rstrip("/"), method, path, body)
                except (OSError, TimeoutError) as error:  # refused connections, time-outs and 5xx
                    said.append(f"{url}: {_reason(error)}")
            if time.monotonic() + pause >= end:
                raise TemporaryError(_unreachable(self.urls, said, self.seconds))
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _answer(self, url: str, method: str, path: str, body: Mapping[str, Any] | None) -> Any:
        headers = {"Accept": f"{_JSON}, application/json", "Content-Type": _JSON}
        if self.username:
            headers["Authorization"] = "Basic " + base64.b64encode(f"{self.username}:{self.password}".encode()).decode()
        request = urllib.request.Request(url + path, json.dumps(body).encode() if body else None, headers, method=method)
        try:
            opener = urllib.request.build_opener(_Redirects(), urllib.request.HTTPSHandler(context=self._trust(url)))
            with opener.open(request, timeout=min(_REQUEST_SECONDS, self.seconds)) as answer:
                text = answer.read()
        except urllib.error.HTTPError as error:
            if error.code >= 500:
                raise
            return _refusal(url + path, error)
        try:
            return json.loads(text)
        except ValueError:
            raise RunError(_not_a_registry(url + path, "answers, and not in JSON")) from None

    def _trust(self, url: str) -> ssl.SSLContext | None:
        if not url.startswith("https:"):
            return None
        return ssl.create_default_context(cadata=self.ca or None)


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Sends the login only to the named server, and not to one that it redirects to."""

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        following = super().redirect_request(req, fp, code, msg, headers, newurl)
        if following is not None and _server(newurl) != _server(req.full_url):
            following.remove_header("Authorization")
        return following


def _server(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc


def _refusal(url: str, error: urllib.error.HTTPError) -> None:
    """The meaning of an answer of 400 to 499: not found, or a permanent error."""
    try:
        said = json.loads(error.read())
        code, words = int(said["error_code"]), str(said.get("message") or "")
    except (ValueError, TypeError, KeyError):
        code, words = 0, ""
    if error.code in {401, 403}:
        help_ = "check `username` and `password` under `schema_registry`"
        raise RunError(Diagnostic("MS092", f"the schema registry at `{url}` refuses access: {error.code} {error.reason}", help=help_))
    if error.code == 404 and code:
        return
    if error.code == 409:
        raise IncompatibleSchemaError(words)
    if not code:
        raise RunError(_not_a_registry(url, f"answers {error.code}, and not like a schema registry"))
    raise RunError(Diagnostic("MS101", f"the schema registry refuses `{url}`: {words or error.reason}"))


def _reason(error: BaseException) -> str:
    inner = getattr(error, "reason", None)
    if isinstance(error, urllib.error.HTTPError):
        return f"{error.code} {error.reason}"
    if isinstance(inner, OSError):
        error = inner
    return (getattr(error, "strerror", None) or str(inner or error) or type(error).__name__).lower()


def _unreachable(urls: tuple[str, ...], said: list[str], seconds: float) -> Diagnostic:
    message = f"the schema registry does not answer at `{', '.join(urls)}`, tried for {seconds:g} s"
    return Diagnostic("MS100", message, detail="\n".join(said), help="check the address, and that this machine can reach it")


def _not_a_registry(url: str, what: str) -> Diagnostic:
    help_ = "a part of the address may be missing; Apicurio's ends in `/apis/ccompat/v7`"
    return Diagnostic("MS101", f"`{url}` {what}", help=help_)

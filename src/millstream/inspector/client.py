"""Asks a run of this machine, through its socket."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator, Mapping
from typing import Any

from millstream.errors import Diagnostic, RunError
from millstream.inspector.registration import Registration

_SECONDS = 30.0
_SAVEPOINT_SECONDS = 3600.0


class Client:
    """Requests to one run."""

    def __init__(self, run: Registration) -> None:
        self.run = run

    def get(self, path: str) -> Any:
        return self._ask("GET", path)

    def order(self, name: str, **values: str | bool) -> Any:
        return self._ask("POST", f"/api/orders/{name}", values, _SAVEPOINT_SECONDS if name == "savepoint" else _SECONDS)

    def post(self, path: str, **values: str | bool) -> Any:
        return self._ask("POST", path, values)

    def events(self) -> Iterator[tuple[str, Any]]:
        """The name and the data of each event, until the run ends."""
        connection, name = _UnixConnection(self.run.socket, _SECONDS), ""
        try:
            connection.request("GET", "/facts")
            answer = connection.getresponse()
            if answer.status != 200:
                raise self._silent(f"{answer.status} {answer.read(200).decode(errors='replace')}")
            for line in answer:
                text = line.decode().rstrip("\n")
                if text.startswith("event: "):
                    name = text.removeprefix("event: ")
                elif text.startswith("data: "):
                    yield name, json.loads(text.removeprefix("data: "))
        except (OSError, http.client.HTTPException) as error:
            raise self._silent(str(error)) from None
        finally:
            connection.close()
        if name != "end":
            raise self._silent("the connection has ended")

    def _silent(self, reason: str) -> RunError:
        message = f"the run of `{self.run.name}` (process {self.run.process}) does not answer: {reason}"
        return RunError(Diagnostic("MS187", message, help="it may have ended just now: `millstream list`"))

    def _ask(self, method: str, path: str, values: Mapping[str, str | bool] | None = None, seconds: float = _SECONDS) -> Any:
        connection = _UnixConnection(self.run.socket, seconds)
        try:
            body = None if values is None else json.dumps(values)
            connection.request(method, path, body, {"content-type": "application/json"} if body else {})
            answer = connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise self._silent(str(error)) from None
        finally:
            connection.close()
        try:
            found = json.loads(text)
        except ValueError:
            raise self._silent(f"{answer.status} {text[:200].decode(errors='replace')}") from None
        if isinstance(found, dict) and "errors" in found:
            told = [
                Diagnostic(each["code"], each["message"], detail=each.get("detail") or "", help=each.get("help") or "")
                for each in found["errors"]
            ]
            raise RunError(told)
        if isinstance(found, dict) and "error" in found:
            raise RunError(Diagnostic("MS187", f"the run of `{self.run.name}` refuses: {found['error']}"))
        return found


class _UnixConnection(http.client.HTTPConnection):
    """HTTP on a socket of this machine."""

    def __init__(self, path: str, seconds: float) -> None:
        super().__init__("localhost", timeout=seconds)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)

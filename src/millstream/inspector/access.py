"""Who may do what. On the socket of the machine the file system decides. On TCP:

everyone        health, and metrics
on loopback     facts; anywhere else they need the token
with the token  rows, and orders: stop, pause, resume, savepoint

A browser is a danger on loopback: any page that it shows can send requests there. So the host that a request names must be one of ours
(a name that an attacker resolves to loopback is not), a page of another origin is refused, and no answer allows other origins to read it.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

OPEN = frozenset({"/healthz", "/readyz", "/metrics"})
PAGE = frozenset({"/", "/page.js", "/page.css", "/icon.svg"})
"""The page itself has no facts of a run."""


@dataclass(frozen=True, slots=True)
class Access:
    """The rules of one server."""

    token: str = ""
    host: str = ""
    """The host that a TCP server listens on; empty for a socket of the machine."""

    def refusal(self, method: str, path: str, headers: Mapping[str, str]) -> tuple[int, str] | None:
        """The status and the reason of a refusal; None if the request may pass."""
        if not self.host:
            return None
        if not self._names_us(headers.get("host", "")):
            return 421, "this server is not called by that name"
        origin = headers.get("origin")
        if origin and urlsplit(origin).netloc != headers.get("host", ""):
            return 403, "pages of other origins may not ask"
        if method == "GET" and (path in OPEN or path in PAGE or (is_loopback(self.host) and not path.startswith("/api/orders"))):
            return None
        if not self.is_trusted(headers):
            return 401, "the token is missing or wrong: send `Authorization: Bearer TOKEN`"
        return None

    def is_trusted(self, headers: Mapping[str, str]) -> bool:
        """Whether a client may give orders and see rows."""
        if not self.host:
            return True
        given = headers.get("authorization", "").removeprefix("Bearer ")
        return bool(self.token) and hmac.compare_digest(given.encode(), self.token.encode())

    def _names_us(self, host: str) -> bool:
        name = urlsplit(f"//{host}").hostname or ""
        return not is_loopback(self.host) or is_loopback(name)


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False

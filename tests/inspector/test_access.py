"""Who may do what: without the token no order and, except on loopback, no facts. Other hosts and origins are refused."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.inspector.conftest import CANARY

from millstream.errors import SetupError, UsageError
from millstream.inspector.access import Access
from millstream.inspector.attended import AttendedRun
from millstream.inspector.registration import folder_of
from millstream.observe.events import Noted, RowsSampled

Attend = Callable[..., tuple[AttendedRun, str]]
ORDERS = ("stop", "pause", "resume", "savepoint", "page")


def ask(link: str, path: str, method: str = "GET", headers: Mapping[str, str] | None = None, body: str = "{}") -> tuple[int, str]:
    connection = http.client.HTTPConnection(urlsplit(link).netloc, timeout=10)
    connection.request(method, path, body if method == "POST" else None, dict(headers or {}))
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def test_orders_need_the_token(attend: Attend) -> None:
    run, link = attend()
    for name in ORDERS:
        assert ask(link, f"/api/orders/{name}", "POST")[0] == 401
        assert ask(link, f"/api/orders/{name}", "POST", {"Authorization": "Bearer wrong"})[0] == 401
    assert ask(link, "/api/watch", "POST", body='{"node": "big"}')[0] == 401
    assert not run.stopping.is_set()
    assert ask(link, "/api/orders/stop", "POST", {"Authorization": f"Bearer {link.partition('#')[2]}"})[0] == 200
    assert run.stopping.is_set()


def test_a_browser_that_was_sent_by_others_is_refused(attend: Attend) -> None:
    _, link = attend()
    own = urlsplit(link).netloc
    assert ask(link, "/api/status", headers={"Host": "evil.example"})[0] == 421
    assert ask(link, "/api/status", headers={"Host": own, "Origin": "http://evil.example"})[0] == 403
    assert ask(link, "/api/status", headers={"Host": own, "Origin": f"http://{own}"})[0] == 200


def test_no_answer_lets_other_origins_read_it(attend: Attend) -> None:
    _, link = attend()
    connection = http.client.HTTPConnection(urlsplit(link).netloc, timeout=10)
    connection.request("GET", "/api/status")
    names = {name.lower() for name, _ in connection.getresponse().getheaders()}
    assert not {name for name in names if name.startswith("access-control")}
    assert {"content-security-policy", "x-content-type-options", "x-frame-options"} <= names


@pytest.mark.parametrize("path", ["/facts", "/api/status", "/api/topology", "/api/history", "/api/run"])
def test_facts_need_the_token_elsewhere_than_on_loopback(path: str) -> None:
    elsewhere = Access("token", "0.0.0.0")
    assert elsewhere.refusal("GET", path, {"host": "any:1"}) is not None
    assert elsewhere.refusal("GET", path, {"host": "any:1", "authorization": "Bearer token"}) is None
    assert elsewhere.refusal("GET", "/metrics", {"host": "any:1"}) is None
    assert Access("token", "127.0.0.1").refusal("GET", path, {"host": "localhost:1"}) is None


def test_an_address_that_others_reach_needs_a_token(attend: Attend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MILLSTREAM_TOKEN", raising=False)
    with pytest.raises(UsageError, match="would show rows to everyone"):
        attend(host="0.0.0.0")


def test_a_token_that_is_easy_to_guess_is_refused(attend: Attend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MILLSTREAM_TOKEN", "abc")
    with pytest.raises(UsageError, match="easy to guess"):
        attend(host="0.0.0.0")


def test_a_port_in_use_is_said(attend: Attend) -> None:
    _, link = attend()
    from millstream.inspector.attendance import _listen
    from millstream.plan.run_options import InspectAddress

    with pytest.raises(UsageError, match=r"cannot listen on 127\.0\.0\.1"):
        _listen(InspectAddress("127.0.0.1", urlsplit(link).port or 0))


def test_a_folder_that_others_can_open_is_refused(tmp_path: Path) -> None:
    (tmp_path / "millstream").mkdir(mode=0o755)
    (tmp_path / "millstream").chmod(0o755)
    with pytest.raises(SetupError, match="belongs to you alone"):
        folder_of({"XDG_RUNTIME_DIR": str(tmp_path)})


@pytest.mark.parametrize("trusted", [True, False])
def test_rows_are_for_those_with_the_token(attend: Attend, trusted: bool) -> None:
    run, link = attend()
    connection = http.client.HTTPConnection(urlsplit(link).netloc, timeout=10)
    connection.request("GET", "/facts", headers={"Authorization": f"Bearer {link.partition('#')[2]}"} if trusted else {})
    answer = connection.getresponse()
    answer.readline()
    run.recorder.publish(RowsSampled(node="big", query="q", epoch=1, rows=('{"a": 1}',), read_again=False))
    run.recorder.state("done")
    assert (b"rows_sampled" in answer.read()) is trusted


def test_mistakes_in_orders_are_answers(attend: Attend) -> None:
    _, link = attend()
    headers = {"Authorization": f"Bearer {link.partition('#')[2]}"}
    for path, body in (("orders/savepoint", "[]"), ("orders/savepoint", "{}"), ("watch", "1"), ("orders/savepoint", "{")):
        assert ask(link, f"/api/{path}", "POST", headers, body)[0] == 400
    status, text = ask(link, "/api/watch", "POST", headers, '{"node": "bgi"}')
    assert (status, json.loads(text)["errors"][0]["code"]) == (409, "MS189")


def test_the_token_is_not_in_the_log(attend: Attend, tmp_path: Path, sockets: Path) -> None:
    said = list[str]()
    _, link = attend(tell=said.append)
    assert said == [f"inspector: {link.partition('#')[0]}"]
    written = "".join(file.read_text() for file in sockets.rglob("*.json"))
    assert link.partition("#")[2] not in written


def test_secrets_show_nowhere(attend: Attend) -> None:
    run, link = attend()
    run.recorder.note(f"could not log in with {CANARY}")
    run.recorder.publish(Noted(message=f"and {CANARY}"))
    for path in ("/api/status", "/api/topology", "/api/run", "/metrics", "/readyz"):
        status, text = ask(link, path)
        assert status in {200, 503}
        assert CANARY not in text
    written = ""
    while "and " not in written:  # the history is written every two seconds
        time.sleep(0.1)
        written = "".join(file.read_text() for file in Path(run.checkpoint.storage.url).rglob("*.jsonl"))
    assert CANARY not in written
    assert "could not log in with" in ask(link, "/api/status")[1]
    assert json.loads(ask(link, "/api/topology")[1])["nodes"][1]["description"] == "<b>big</b> ones"

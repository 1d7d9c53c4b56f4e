"""Who may look at a dashboard, and who may not."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from nodes.dashboard.security import HEADERS, Guard, is_loopback
from overlay.errors import ConfigError

TOKEN = "a-token-that-somebody-chose"


def asked(
    guard: Guard, path: str = "/", query: str = "", **headers: str
) -> tuple[int, dict[str, str]]:
    """What a request gets: status and headers."""
    sent: list[Any] = []

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        raise AssertionError

    scope = {
        "type": "http",
        "path": path,
        "query_string": query.encode(),
        "headers": [(name.replace("_", "-").encode(), v.encode()) for name, v in headers.items()],
    }
    trio.run(guard.wrapped(app), scope, receive, send)
    told = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], told


@pytest.mark.parametrize(
    ("host", "known"),
    [
        ("127.0.0.1:7480", True),
        ("localhost", True),
        ("LOCALHOST:1", True),
        ("[::1]:7480", True),
        ("[::1]", True),
        ("10.0.0.7:80", True),
        ("lab.example:7480", True),
        ("evil.example:7480", False),
        ("127.0.0.1.evil.example", False),
        ("localhost.evil.example:7480", False),
        ("", False),
    ],
)
def test_only_addresses_and_known_names_are_hosts(host: str, known: bool) -> None:
    guard = Guard("127.0.0.1", hosts=["lab.example"])
    assert guard.knows_host(host) is known
    status, headers = asked(guard, host=host)
    assert status == (200 if known else 421)
    assert HEADERS.items() <= headers.items()
    assert guard.refused["host"] == (not known)


def test_loopback_needs_no_token_and_other_places_do() -> None:
    assert not Guard("127.0.0.1").token
    assert not Guard("::1").token
    assert len(Guard("0.0.0.0").token) >= 32
    assert len(Guard("127.0.0.1", actions=True).token) >= 32
    assert Guard("0.0.0.0").token != Guard("0.0.0.0").token
    assert is_loopback("localhost")
    assert not is_loopback("lab.example")


def test_a_token_that_can_be_guessed_is_refused() -> None:
    with pytest.raises(ConfigError, match="at least 16 characters"):
        Guard("0.0.0.0", token="secret")


def test_the_token_opens_every_door() -> None:
    guard = Guard("0.0.0.0", token=TOKEN)
    host = "10.0.0.7:7480"
    for path in ("/", "/metrics", "/stream/overview", "/assets/main.js", "/act"):
        assert asked(guard, path, host=host)[0] == 401
        assert asked(guard, path, host=host, authorization="Bearer wrong")[0] == 401
        assert asked(guard, path, host=host, authorization=f"Bearer {TOKEN}")[0] == 200
        assert asked(guard, path, host=host, cookie=f"{guard.cookie}={TOKEN}")[0] == 200
    assert guard.refused["token"] == 10


def test_a_link_with_the_token_becomes_a_cookie() -> None:
    guard = Guard("0.0.0.0", token=TOKEN)
    status, headers = asked(guard, query=f"token={TOKEN}", host="10.0.0.7")
    assert (status, headers["location"]) == (303, "/")
    assert "HttpOnly" in headers["set-cookie"]
    assert "SameSite=Strict" in headers["set-cookie"]
    assert asked(guard, query="token=wrong", host="10.0.0.7")[0] == 403
    assert asked(guard, "/metrics", query=f"token={TOKEN}", host="10.0.0.7")[0] == 401


def test_bad_cookies_are_no_tokens() -> None:
    guard = Guard("0.0.0.0", token=TOKEN)
    for cookie in ("", "=", "a=b; c", f"{guard.cookie}=", f"other={TOKEN}", "\xff\xfe"):
        assert asked(guard, host="10.0.0.7", cookie=cookie)[0] == 401


def test_only_a_page_of_this_site_may_act() -> None:
    guard = Guard("127.0.0.1", actions=True)
    good = {
        "x-overlay-action": guard.action_key,
        "origin": "http://127.0.0.1:7480",
        "host": "127.0.0.1:7480",
    }
    assert guard.may_act(good)
    assert not guard.may_act(good | {"x-overlay-action": "guessed"})
    assert not guard.may_act(good | {"origin": "http://evil.example"})
    assert not guard.may_act({"host": "127.0.0.1:7480"})


def test_nothing_comes_from_elsewhere() -> None:
    policy = HEADERS["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy

# SPDX-License-Identifier: GPL-2.0-or-later
"""Any bytes get an answer of our schema; nothing but a right request reaches its function."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iosd_host.config.schema import Count, Key, text
from iosd_host.manager.keys import ADMIN, NOBODY, VIEWER, KeyHolder
from iosd_host.manager.requests import SCHEMA, AdminRequest, ManagerMethod, RequestRefused, Requests

ROOT, GUEST = KeyHolder("local", ADMIN), KeyHolder("guest", VIEWER)
CODES = {"bad-request", "version", "unknown-method", "not-permitted", "bad-params", "busy"}


class Table:
    """Requests of two methods, and what reached them."""

    def __init__(self) -> None:
        self.reached: list[AdminRequest] = []
        keys = (Key("pool", text, None, ""), Key("count", Count(1, 64), None, ""))
        self.requests = Requests(
            [
                ManagerMethod("look", self.run, keys),
                ManagerMethod("set", self.run, keys, ("count",), True),
            ]
        )

    async def run(self, request: AdminRequest) -> Any:
        self.reached.append(request)
        if request.params["pool"] == "full":
            raise RequestRefused("busy", "no", "later")
        return {"of": request.params["pool"]}

    def ask(self, client: KeyHolder, body: bytes) -> dict[str, Any]:
        answer = asyncio.run(self.requests.answer(client, body))
        return dict(json.loads(answer))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)
PARAMS = st.dictionaries(
    st.sampled_from(["pool", "count", "pools", "target"]),
    JSON | st.integers(0, 65) | st.sampled_from(["a", "full", ""]),
)
REQUESTS = st.fixed_dictionaries(
    {
        "schema": st.just(SCHEMA) | JSON,
        "method": st.sampled_from(["look", "set", "pool.set"]) | JSON,
    },
    optional={
        "id": st.integers(0, 9) | JSON,
        "params": PARAMS | JSON,
        "user": JSON | st.just("me"),
        "why": JSON | st.just("because"),
        "more": JSON,
    },
)
BODIES = (
    st.binary()
    | JSON.map(lambda x: json.dumps(x).encode())
    | REQUESTS.map(lambda x: json.dumps(x).encode())
)


@settings(max_examples=80)
@given(BODIES, st.sampled_from([ROOT, GUEST, NOBODY]))
def test_any_bytes(body: bytes, client: KeyHolder) -> None:
    table = Table()
    logging.disable(logging.CRITICAL)
    try:
        answer = table.ask(client, body)
    finally:
        logging.disable(logging.NOTSET)
    assert answer["schema"] == SCHEMA
    assert ("result" in answer) != ("error" in answer)
    if "error" in answer:
        assert answer["error"]["code"] in CODES
        assert answer["error"]["message"]
    for request in table.reached:
        assert client.role
        assert request.method == "look" or client.role == ADMIN
        assert request.params["count"] is None or 1 <= request.params["count"] <= 64
        assert request.params["pool"] is None or isinstance(request.params["pool"], str)
        assert len(request.why) <= 256
        assert "\n" not in request.why + request.user


def body(**fields: Any) -> bytes:
    return json.dumps({"schema": SCHEMA, "id": "x", "method": "look"} | fields).encode()


@pytest.mark.parametrize(
    "raw",
    [
        b"[" * 60_000,
        b'{"a":' * 10_000,
        b"9" * 60_000,
        b'{"schema": NaN}',
        b'"\\ud800"',
        b"\xff\xfe{}",
        b"null",
        b"",
    ],
    ids=repr,
)
def test_nasty_json(raw: bytes) -> None:
    assert Table().ask(ROOT, raw)["error"]["code"] == "bad-request"


@pytest.mark.parametrize(
    "fields",
    [
        {"id": 1.5},
        {"id": True},
        {"id": "x" * 65},
        {"id": 2**63},
        {"user": "a\nb"},
        {"user": "x" * 129},
        {"why": "x" * 257},
        {"why": "\u2028"},
        {"why": ["x"]},
        {"extra": 1},
    ],
    ids=repr,
)
def test_fields_out_of_bounds(fields: dict[str, Any]) -> None:
    table = Table()
    assert table.ask(ROOT, body(**fields))["error"]["code"] == "bad-request"
    assert not table.reached


def test_who_and_why_reach_the_function() -> None:
    table = Table()
    table.ask(ROOT, body(method="set", params={"count": 3}, user="ann", why="a batch"))
    [request] = table.reached
    assert (request.who, request.why, request.params["count"]) == ("ann (local)", "a batch", 3)


def test_refusals_and_faults_are_answers(caplog: pytest.LogCaptureFixture) -> None:
    table = Table()
    assert table.ask(ROOT, body(params={"pool": "full"})) == {
        "schema": SCHEMA,
        "id": "x",
        "error": {"code": "busy", "message": "no", "remedy": "later"},
    }

    async def fault(request: AdminRequest) -> Any:
        raise ZeroDivisionError

    table.requests.methods["look"] = ManagerMethod("look", fault)
    assert table.ask(ROOT, body())["error"]["code"] == "internal"
    assert "ZeroDivisionError" in caplog.text


def test_bad_requests_are_logged_at_a_bounded_rate(caplog: pytest.LogCaptureFixture) -> None:
    table = Table()
    now = [0.0]
    table.requests.bad.clock = lambda: now[0]
    table.requests.bad.since = 0.0
    for _ in range(1000):
        table.ask(ROOT, b"nonsense")
    assert len(caplog.records) == 5
    now[0] = 11.0
    table.ask(ROOT, b"nonsense")
    assert "995 more" in caplog.records[5].message

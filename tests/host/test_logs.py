# SPDX-License-Identifier: GPL-2.0-or-later
"""The log: lines passed on, hostile ones among them, and one job's story across the processes."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from iosd_host.common import logs
from tests.machine import unavailable
from tests.serving import Serving, arguments, missing, sandboxes_missing
from tests.waiting import until

LOGGED_AT_LEAST = 10
"""Jobs of many that are logged one by one."""
ABOUT = '2026-11-21T20:03:49.057Z iosd info: job=0x1/0x2 pool=numpy sandbox=7 ended <b>"x"</b>'


@pytest.fixture
def as_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IOSD_LOG_FORMAT", "json")


def last_line(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    text = capsys.readouterr().err
    assert text.count("\n") == 1
    return dict(json.loads(text))


@pytest.mark.usefixtures("as_json")
def test_text_of_ours_becomes_fields(capsys: pytest.CaptureFixture[str]) -> None:
    logs.relay("tgtd", ABOUT)
    assert last_line(capsys) == {
        "time": "2026-11-21T20:03:49.057Z",
        "level": "info",
        "component": "iosd",
        "job": "0x1/0x2",
        "pool": "numpy",
        "sandbox": "7",
        "message": 'ended <b>"x"</b>',
    }


@pytest.mark.usefixtures("as_json")
@pytest.mark.parametrize(
    "line",
    ["tgtd: start", "{", "[1]", '{"time": 1}', "null", '"x"', "\x1b[31m", '{"x":' + "[" * 10**5],
)
def test_anything_else_is_a_message(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    logs.relay("tgtd", line)
    fields = last_line(capsys)
    assert (fields["component"], fields["level"], fields["message"]) == ("tgtd", "info", line)


@pytest.mark.usefixtures("as_json")
def test_objects_are_passed_on_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    line = '{"time": "t", "level": "info", "component": "iosd", "message": "m", "later": 1}'
    logs.relay("tgtd", line)
    assert capsys.readouterr().err == line + "\n"


def test_text_cannot_forge_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    logs.say("iosd-manager", "info", "why: x\n2026 iosd info: \x1b[2J", pool="a\nb")
    text = capsys.readouterr().err
    assert text.count("\n") == 1
    assert "\x1b" not in text
    assert "iosd-manager info: pool=a\\nb why: x\\n2026" in text


def test_levels(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IOSD_LOG_LEVEL", "warning")
    logs.say("it", "info", "no")
    logs.say("it", "error", "yes")
    assert capsys.readouterr().err.endswith(" it error: yes\n")


# ---- a whole target ----


def stories(served: Serving) -> dict[str, list[dict[str, Any]]]:
    """Log lines of all processes about each job, in order of time; not one that is being written."""
    found: dict[str, list[dict[str, Any]]] = {}
    whole = served.text().rpartition("\n")[0].splitlines()
    for line in sorted(map(json.loads, whole), key=lambda line: line["time"]):
        if "job" in line:
            found.setdefault(line["job"], []).append(line)
    return found


def whole_stories(served: Serving, *jobs: str) -> dict[str, list[dict[str, Any]]]:
    """The same once these jobs are told of, and others, and each has come to its end and its sandbox has
    gone.  Lines of tgtd and of iosd-sandboxd come in different ways: either may be late."""

    def whole() -> dict[str, list[dict[str, Any]]] | None:
        found = stories(served)
        ends = ("ended ", "sandbox exit")
        told = found.keys() >= {*jobs} and len(found) >= len(jobs) + LOGGED_AT_LEAST
        return found if told and all(has_all(lines, ends) for lines in found.values()) else None

    return until(whole, lambda: f"a story without end: {stories(served)}")


def has_all(lines: list[dict[str, Any]], beginnings: tuple[str, ...]) -> bool:
    """Whether some line's message begins with each of these."""
    return all(any(line["message"].startswith(each) for line in lines) for each in beginnings)


def order(lines: list[dict[str, Any]], component: str) -> list[str]:
    return [
        " ".join(line["message"].split()[:2]) for line in lines if line["component"] == component
    ]


@pytest.mark.tgtd
@pytest.mark.sandbox
def test_one_job_id_gives_the_story() -> None:
    why = missing() or sandboxes_missing()
    if why:
        unavailable("sandbox", why)
    with Serving(*arguments(["--log-format", "json"])) as served, served.connect() as target:
        zone = target.partition(target.create_partition())
        good = target.exec("print(1)", zone=zone)
        good.result(timeout=60)
        killed = target.exec("while True: pass", zone=zone)
        while killed.status().state.name != "RUNNING":
            time.sleep(0.01)
        killed.kill()
        begun = time.monotonic()
        many = [target.exec("1", zone=zone) for _ in range(150)]
        seconds = int(time.monotonic() - begun) + 3  # those of the two jobs before, too
        for job in many:
            job.result(timeout=60)
        told = whole_stories(served, str(good.id), str(killed.id))
    lines = told.pop(str(good.id))
    assert order(lines, "iosd") == ["accepted, state", "started, attempt", "ended COMPLETED"]
    assert order(lines, "iosd-sandboxd")[-1] == "sandbox exit:"
    assert len({line["sandbox"] for line in lines if "sandbox" in line}) == 1
    assert {line["pool"] for line in lines if "pool" in line} == {"default"}
    lines = told.pop(str(killed.id))
    assert order(lines, "iosd")[0] == "accepted, state"
    assert order(lines, "iosd")[-2:] == ["is to", "ended CANCELLED:"]
    # More jobs than are logged one by one: each logged job is logged completely.
    assert LOGGED_AT_LEAST <= len(told) <= 20 * seconds
    for lines in told.values():
        assert order(lines, "iosd") == ["accepted, state", "started, attempt", "ended COMPLETED"]


@pytest.mark.tgtd
@pytest.mark.sandbox
def test_a_job_cancelled_before_its_start_has_an_end() -> None:
    why = missing() or sandboxes_missing()
    if why:
        unavailable("sandbox", why)
    with Serving(*arguments(["--log-format", "json"])) as served, served.connect() as target:
        zone = target.partition(target.create_partition())
        held = target.exec("1", zone=zone, hold=True)
        assert held.cancel()
        # The lines of the target come through a pipe.
        until(lambda: len(stories(served).get(str(held.id), [])) > 1)
        lines = stories(served)[str(held.id)]
    assert order(lines, "iosd") == ["accepted, state", "ended CANCELLED:"]

# SPDX-License-Identifier: GPL-2.0-or-later
"""The console in a real browser: its figures are those of /metrics, it lives, and lets only those change
something who may."""

from __future__ import annotations

import asyncio
import json
import math
import os
import re
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import ROUND_HALF_UP, Context, Decimal
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from iosd_host.http.console import Console, Sessions
from iosd_host.http.metrics import METRICS
from pyosd.types import ref
from tests.console.browser import Page
from tests.console.conftest import Observed
from tests.manager.fake_target import faked, pool
from tests.manager.snapshot import snapshot
from tests.manager.test_manager import managing, ready
from tests.waiting import until

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]

FIGURES = """
    const seen = [...document.querySelectorAll("[data-raw]")].filter((each) => each.offsetParent);
    return {serial: document.documentElement.dataset.serial,
            figures: seen.map((each) => ({...each.dataset, text: each.textContent}))};
"""
# Nothing has been retried, decided or called yet; and what targets do not say.
NOT_YET = {
    "iosd_jobs_retried_total",
    "iosd_scale_decisions_total",
    "iosd_proxy_calls_total",
    "iosd_function_calls_total",
    "iosd_proxy_call_seconds",
    "iosd_head_bytes",
    # of a store with checksums
    "iosd_checksum_blocks_total",
    "iosd_scrub_damaged_blocks",
    "iosd_scrub_ended_timestamp_seconds",
    "iosd_scrub_running",
    "iosd_scrub_unreadable_objects",
}
DEADLINE_S = 60.0
MARKUP = '<img src="/nothing" onerror="window.hacked = 1">&amp;'


# ---- what figures should say -----------------------------------------------------------------------


def three(value: float) -> str:
    """Three digits; halves go up, as JavaScript rounds."""
    digits = Context(prec=3, rounding=ROUND_HALF_UP).create_decimal(Decimal(value))
    return f"{float(digits):.15g}"


def as_count(value: float) -> str:
    return f"{value:,.0f}".replace(",", "\u202f") if value == int(value) else three(value)


def as_seconds(value: float) -> str:
    for least, name in ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"), (1e-3, "ms")):
        if value >= least:
            return f"{three(value / least)} {name}"
    return f"{three(value * 1e6)} µs" if value else "0 s"


def as_bytes(value: float) -> str:
    names = ["B", "KiB", "MiB", "GiB", "TiB"]
    step = next((step for step in range(5) if value < 1024 ** (step + 1)), 4)
    return f"{three(value / 1024**step)} {names[step]}"


def as_share(value: float) -> str:
    return f"{three(value * 100)} %"


def texts(metric: str, value: float) -> str:
    """As a person should read a sample of this name."""
    if metric.endswith("_seconds"):
        return as_seconds(value)
    return as_bytes(value) if metric.endswith("_bytes") else as_count(value)


def samples_of(text: str) -> Samples:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def named(text: str) -> tuple[str, frozenset[tuple[str, str]]]:
    """The name and labels of a sample, read as Prometheus reads them."""
    family = next(iter(text_string_to_metric_families(f"{text} 1\n")))
    return family.samples[0].name, frozenset(family.samples[0].labels.items())


def quantile(
    samples: Samples, metric: str, labels: frozenset[tuple[str, str]], part: float
) -> float:
    """As Prometheus' histogram_quantile."""
    steps = sorted(
        (float(dict(found)["le"]), value)
        for (name, found), value in samples.items()
        if name == f"{metric}_bucket" and labels == {pair for pair in found if pair[0] != "le"}
    )
    rank, lower, below = part * steps[-1][1], 0.0, 0.0
    for bound, count in steps:
        if count >= rank:
            if math.isinf(bound):
                return lower
            return lower + (bound - lower) * (rank - below) / (count - below)
        lower, below = bound, count
    raise AssertionError(steps)


def check_figure(figure: dict[str, str], samples: Samples, state: dict[str, Any]) -> None:
    """It is what was told at that moment, and is written so."""
    raw, text = float(figure["raw"]), figure["text"]
    if "status" in figure:
        found: Any = state["target"]
        for word in figure["status"].split("."):
            found = found[int(word) if word.isdigit() else word]
        share = figure["status"].startswith("pressure")
        assert raw == found, figure
        assert text == (as_share(found) if share else as_count(found)), figure
    elif "sum" in figure:
        wanted = set(json.loads(figure["labels"]).items())
        rows = [v for (name, at), v in samples.items() if name == figure["sum"] and wanted <= at]
        assert rows, figure
        assert raw == sum(rows), figure
        assert text == as_count(raw), figure
    elif "quantile" in figure:
        metric, labels = named(figure["metric"])
        found = quantile(samples, metric, labels, float(figure["quantile"]))
        assert math.isclose(raw, found, rel_tol=1e-9), figure
        assert text == as_seconds(raw), figure
    else:
        metric, labels = named(figure["metric"])
        assert raw == samples[metric, labels], figure
        assert text == texts(metric, raw), figure


def work(observed: Observed) -> None:
    """Something of everything that a page shows of jobs."""
    with observed.served.connect() as target:
        zone = target.partition(target.create_partition())
        for script in ("print(1)", "print(2)", "1 / 0"):
            job = target.exec(script, zone=zone)
            job.exception(timeout=60)
        killed = target.exec("while True: pass", zone=zone, pool="second")
        until(lambda: killed.status().state.name in ("RUNNING", "COMPLETING"))
        killed.kill()


def same_reading(
    page: Page, observed: Observed
) -> tuple[bytes, dict[str, Any], dict[str, Any]] | None:
    """Metrics, state and figures of one moment.  The target is stopped: it sends no later reading, and is
    not given up for some seconds.  None: the page had not come to it, or the target has been given up."""
    tgtd = observed.served.pids["tgtd"]
    os.kill(tgtd, signal.SIGSTOP)
    try:
        for _ in range(20):
            body, headers = observed.get("metrics")
            state, shown = observed.state(), page.run(FIGURES)
            same = headers["X-Iosd-Serial"] == shown["serial"] == state["serial"]
            if same and not state["stale"]:
                return body, state, shown
            time.sleep(0.05)
        return None
    finally:
        os.kill(tgtd, signal.SIGCONT)


def completed(page: Page) -> int:
    """Jobs that ended well, says the page."""
    found = page.run(
        "return document.querySelector('[data-metric*=\"COMPLETED\"]')?.dataset.raw ?? 0"
    )
    return int(found)


# ---- looking ---------------------------------------------------------------------------------------


def test_every_figure_equals_the_metrics_of_the_same_moment(page: Page, observed: Observed) -> None:
    work(observed)
    page.until(lambda: completed(page) >= 2, "jobs that ended")
    body, state, shown = until(lambda: same_reading(page, observed), "never the same reading")
    samples = samples_of(body.decode())
    for figure in shown["figures"]:
        check_figure(figure, samples, state)
    names = {
        figure.get("metric", figure.get("sum", "")).partition("{")[0] for figure in shown["figures"]
    }
    assert {
        "iosd_workers",
        "iosd_jobs",
        "iosd_jobs_finished_total",
        "iosd_queue_depth",
        "iosd_queue_oldest_age_seconds",
        "iosd_pool_target_size",
        "iosd_sandboxes",
        "iosd_job_run_seconds",
        "iosd_job_run_seconds_count",
        "iosd_osd_command_seconds",
    } <= names
    assert {"pools.0.max", "pools.1.min", "pools.0.ready"} <= {
        figure.get("status") for figure in shown["figures"]
    }
    assert len(shown["figures"]) > 50
    there = set(re.findall(r"^# TYPE (\w+) ", body.decode(), re.MULTILINE))
    assert {metric.name for metric in METRICS} - there <= NOT_YET


def test_it_lives_without_being_loaded_again(page: Page, observed: Observed) -> None:
    page.run("window.mine = true")
    before = completed(page)
    with observed.served.connect() as target:
        zone = target.partition(target.create_partition())
        target.exec("print(1)", zone=zone).result(timeout=60)
    page.until(lambda: completed(page) > before, "another job that ended")
    assert page.run("return window.mine === true")
    page.until(lambda: page.run("return document.querySelectorAll('#charts figure').length") >= 4)


def test_it_tells_when_the_target_has_gone_and_come_back(page: Page, observed: Observed) -> None:
    supervisor = observed.served.process
    supervisor.send_signal(signal.SIGSTOP)  # it starts tgtd again faster than a page can tell
    try:
        observed.served.kill("tgtd")
        page.until(
            lambda: (
                "no connection" in page.text("#notice") or "no connection" in page.text("#role")
            ),
            "no connection",
        )
    finally:
        supervisor.send_signal(signal.SIGCONT)
    observed.served.restarted()
    page.until(lambda: page.text("#role") == "managing", "managing again")
    page.until(lambda: page.text("#notice") == "", "no notice")


# ---- changing --------------------------------------------------------------------------------------


def mode(page: Page, name: str) -> str:
    """Of a pool, by the word that stands there."""
    return str(page.text(f'#pools tr[data-key="={name}"] .badge'))


def test_without_login_nothing_changes(page: Page) -> None:
    change = {
        "method": "POST",
        "body": json.dumps({"method": "pool.pause", "params": {"pool": "second"}}),
    }
    assert page.fetch("/api/change", **change) == 401
    assert [error for error in page.errors() if "401" not in error] == []
    assert page.run("return document.querySelectorAll('#pools button').length") == 0
    assert mode(page, "second") == "running"


def test_login_and_a_change(page: Page, observed: Observed) -> None:
    page.click("#enter")
    page.type("#token", "not-a-token-of-anybody")
    page.click("#login .main")
    page.until(lambda: "unknown" in page.text("#login .wrong"), "a refusal")
    assert all("403" in error for error in page.errors())
    page.type("#token", observed.token)
    page.click("#login .main")
    page.until(lambda: page.text("#who") == "admin", "a login")
    assert page.run("return document.cookie") == ""  # for scripts there is none

    why = f"upgrade {MARKUP}"
    for method, word in (("pool.pause", "paused"), ("pool.resume", "running")):
        page.click(f'#pools button[data-method="{method}"][data-pool="second"]')
        page.type("#why", why)
        page.click("#change-do")
        page.until(lambda word=word: mode(page, "second") == word, word)  # type: ignore[misc]
    rows = "return [...document.querySelectorAll('#changes tbody tr')].map((row) => row.innerText)"
    # The manager may have scaled a pool since.
    row = page.until(
        lambda: next((text for text in page.run(rows) if "resume" in text), ""), "the change"
    )
    assert "admin (console)" in row
    assert why in row
    assert (
        page.run("return document.querySelectorAll('main img').length + (window.hacked ?? 0)") == 0
    )

    page.click('#pools button[data-method="pool.scale"][data-pool="second"]')
    page.type("#size", "99")
    page.run("document.getElementById('size').removeAttribute('max')")
    page.type("#why", "too many")
    page.click("#change-do")
    page.until(lambda: page.text("#change .wrong"), "what is wrong")
    page.click("#change .cancel")
    assert all("409" in error for error in page.errors())
    page.click("#leave")
    page.until(lambda: page.find("#enter").is_displayed(), "logged out")
    page.until(lambda: page.run("return document.querySelectorAll('#pools button').length") == 0)
    assert all("401" in error for error in page.errors()), "a request was under way, at most"


# ---- jobs, space, and what is folded away -----------------------------------------------------------


def log_in(page: Page, observed: Observed) -> None:
    page.click("#enter")
    page.type("#token", observed.token)
    page.click("#login .main")
    page.until(lambda: page.text("#who") == "admin", "a login")


def test_jobs_are_for_those_who_have_logged_in(page: Page, observed: Observed) -> None:
    name = f"report {MARKUP}"
    with observed.served.connect() as target:
        zone = target.partition(target.create_partition())
        done = target.exec("print(1)", zone=zone, name=name)
        done.result(timeout=60)
        runs = target.exec("import time; time.sleep(600)", zone=zone, name="runs")
        until(lambda: runs.status().state.name == "RUNNING")
        assert page.fetch("/api/jobs") == 401
        assert [error for error in page.errors() if "401" not in error] == []
        assert "Log in to see jobs" in page.text("#jobs")
        assert name not in json.dumps(observed.state())
        log_in(page, observed)
        page.until(lambda: name in page.text("#jobs"), "the job's name")
        row = page.text(f'#jobs tr[data-key="={runs.id}"]')
        assert "RUNNING" in row and "runs" in row and time.strftime("%Y-%m-%d") in row
        assert "COMPLETED" in page.text(f'#jobs tr[data-key="={done.id}"]')
        assert page.run("return document.querySelectorAll('main img').length") == 0
        runs.kill()
    page.until(
        lambda: "CANCELLED" in page.text(f'#jobs tr[data-key="={runs.id}"]'), "the job's end"
    )
    page.click("#leave")
    page.until(lambda: name not in page.text("#jobs"), "no names any more")


def test_space_is_that_of_the_store(page: Page, observed: Observed) -> None:
    """With one device, too, where there are no heads."""
    with observed.served.connect() as target:
        obj = target.create(target.create_partition())
        target.write(obj, 0, bytes(3 << 20))
    cell = '#tiers [data-metric*="main"][data-metric*="data"]'
    kept = "return Number(document.querySelector(arguments[0])?.dataset.raw ?? 0)"
    page.until(lambda: page.run(kept, cell) >= 3 << 20, "the data")
    table = page.text("#tiers")
    assert "store" in table and str(ref(obj.partition_id)) in table


def test_changes_by_people_and_by_the_policy(page: Page, observed: Observed) -> None:
    log_in(page, observed)
    page.click('#pools button[data-method="pool.scale"][data-pool="second"]')
    page.type("#size", "1")
    page.type("#why", "for the filter")
    page.click("#change-do")
    page.until(lambda: "for the filter" in page.text("#changes"), "the change")
    assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", page.text("#changes"))
    makers = "document.getElementById('makers')"
    for maker, shown in (("policy", False), ("all", True), ("people", True)):
        page.run(f"{makers}.value = '{maker}'; {makers}.dispatchEvent(new Event('change'))")
        assert ("for the filter" in page.text("#changes")) == shown, maker


def test_long_tables_are_short_at_first(page: Page, observed: Observed) -> None:
    with observed.served.connect() as target:
        zone = target.partition(target.create_partition())
        for job in [target.exec("pass", zone=zone) for _ in range(15)]:
            job.result(timeout=60)
    log_in(page, observed)
    rows = "return [...document.querySelectorAll('#jobs tbody tr')].filter((r) => r.offsetParent).length"
    page.until(lambda: page.run(rows) == 10, "ten rows")
    page.click("#jobs + button.more")
    page.until(lambda: page.run(rows) >= 15, "all rows")
    page.click('details[data-fold="sandboxes"] summary')
    page.until(lambda: not page.find("#sandboxes").is_displayed(), "folded")
    page.open(observed.url)
    page.until(lambda: page.text("#serial"), "a reading")
    assert not page.find("#sandboxes").is_displayed(), "as the reader left it"
    page.click('details[data-fold="sandboxes"] summary')


# ---- whatever a target says ------------------------------------------------------------------------


def spoiled(node: Any) -> Any:
    """Words that are markup wherever a target may say a word."""
    if isinstance(node, dict):
        return {
            MARKUP if key in ("ready", "queue", "deadlock", "read") else key: (
                MARKUP
                if key in ("state", "reason", "tier", "command", "status")
                else spoiled(value)
            )
            for key, value in node.items()
        }
    return [spoiled(each) for each in node] if isinstance(node, list) else node


@contextmanager
def hostile(folder: Path) -> Iterator[str]:
    """A console over a target that says what it should not."""
    urls: list[str] = []
    up, over = threading.Event(), threading.Event()

    async def serve() -> None:
        async with faked(folder) as target, managing(folder, target.path) as desk:
            whole, plain = spoiled(snapshot()), target.snapshot
            words = {
                key: each for key, each in whole["pools"][0].items() if key not in target.pools[0]
            }
            target.pools = [{**words, **pool("default")}, pool(MARKUP, queued=3, serving=False)]
            target.snapshot = lambda: {**whole, **plain()}  # type: ignore[method-assign]
            await ready(desk)
            console = Console(desk.manager, desk.requests.answer, Sessions(None))
            urls.append(await console.start("127.0.0.1:0"))
            up.set()
            while not over.is_set():
                await asyncio.sleep(0.02)
            await console.close()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        assert up.wait(DEADLINE_S)
        yield urls[0]
    finally:
        over.set()
        thread.join()


def test_markup_of_a_target_is_text(browser: Page, tmp_path: Path) -> None:
    with hostile(tmp_path) as url:
        browser.open(url)
        for part in ("pools", "charts", "ended", "tiers", "latencies", "refused", "sandboxes"):
            browser.until(lambda part=part: MARKUP in browser.text(f"#{part}"), part)  # type: ignore[misc]
        assert browser.run("return document.querySelectorAll('main img').length") == 0
        assert browser.run("return window.hacked ?? 0") == 0
        assert not browser.errors()
        browser.open("about:blank")


# ---- how it looks ----------------------------------------------------------------------------------


PICTURE_S = 150.0  # of load, for curves to look at


def show(page: Page, request: pytest.FixtureRequest) -> None:
    """Something to look at: waves of jobs, once; then ten minutes of history."""
    observed: Observed = request.getfixturevalue("observed")
    if not completed(page) > 500:
        until = time.monotonic() + PICTURE_S
        with observed.served.connect() as target:
            zone = target.partition(target.create_partition())
            while (left := until - time.monotonic()) > 0:
                wave = 1 + int(25 * (1 + math.sin(left / 8)))
                jobs = [target.exec("sum(range(10**6))", zone=zone) for _ in range(wave)]
                jobs.append(target.exec("import time; time.sleep(.3)", zone=zone, pool="second"))
                for job in jobs:
                    job.exception(timeout=60)
        work(observed)
    with observed.served.connect() as target:
        zone = target.partition(target.create_partition())
        for _ in range(40):
            target.exec("sum(range(2 * 10**7))", zone=zone)
    page.look(1280, "light", phone=False)  # on a phone the history is folded
    page.run("location.reload()")
    page.until(lambda: page.run("return document.querySelectorAll('#charts figure').length") >= 4)
    page.click('#spans button[data-span="600"]')
    curve = "return document.querySelector('#charts svg.chart path.first').getAttribute('d')"
    first = page.until(lambda: page.run(curve))
    page.until(lambda: page.run(curve) != first, "a second reading")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("name", "width"), [("desktop", 1280), ("phone", 390)])
def test_looks(
    page: Page, name: str, width: int, scheme: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Fits, in the reader's colours; `--screenshots FOLDER` keeps the pictures for people to look at."""
    kept = request.config.getoption("--screenshots")
    folder = Path(kept or tmp_path)
    if kept:
        show(page, request)
    page.until(lambda: page.run("return document.querySelectorAll('#charts figure').length") >= 4)
    page.look(width, scheme, phone=name == "phone")
    page.run("location.reload()")  # at this width
    page.until(lambda: page.run("return document.querySelectorAll('#charts figure').length") >= 4)
    picture = page.look(width, scheme, phone=name == "phone")
    (folder / f"console-{name}-{scheme}.png").write_bytes(picture)
    assert len(picture) > 20_000
    assert page.run("return document.documentElement.scrollWidth") <= width
    assert page.run("return document.documentElement.scrollHeight") <= 4000
    bright = page.run(
        "return getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)"
    )
    assert (sum(bright[:3]) > 600) == (scheme == "light")
    # A sign and a word repeat the meaning of each colour. Every table has a name and headings.
    assert page.run(
        "return [...document.querySelectorAll('.badge')].every((b) => b.dataset.sign && b.textContent)"
    )
    assert page.run(
        "return [...document.querySelectorAll('table')].every((t) => t.getAttribute('aria-labelledby')"
        " && [...t.tHead.rows[0].cells].every((c) => c.scope === 'col'))"
    )

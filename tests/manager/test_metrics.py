# SPDX-License-Identifier: GPL-2.0-or-later
"""The exporter's text: names and labels as documented, what is not said is absent, whatever a target says.

And what is made for it: docs/metrics.md, the alert rules, the dashboard.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from iosd_host.http.exporter import exposition
from iosd_host.http.metrics import METRICS
from iosd_host.http.readings import Reading
from tests.manager.snapshot import snapshot
from tools.metricsdoc import page

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "packaging" / "prometheus" / "iosd.rules.yml"
DASHBOARD = ROOT / "packaging" / "grafana" / "iosd.json"
DECISIONS = {("default", "up"): 2}
LABELS = {"pool", "state", "reason", "command", "status", "tier", "direction", "version"}
LABELS |= {"kind", "cause", "partition", "signer", "outcome", "data"}

Values = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def scrape(reading: Reading | None) -> Values:
    text = exposition(reading)[0].decode()
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def whole() -> Values:
    return scrape(Reading(snapshot(), DECISIONS, up=True))


def value(values: Values, name: str, **labels: str) -> float | None:
    return values.get((name, tuple(sorted(labels.items()))))


def test_values() -> None:
    found = whole()
    assert value(found, "iosd_build_info", version="0.1.0") == 1
    assert value(found, "iosd_queue_depth", pool="numpy") == 3
    assert value(found, "iosd_jobs", pool="default", state="RUNNING") == 2
    ended = {"pool": "default", "state": "FAILED", "reason": "201"}
    assert value(found, "iosd_jobs_finished_total", **ended) == 10
    assert value(found, "iosd_sandbox_starts_total") == 214
    assert value(found, "iosd_sandbox_exits_total", reason="killed") == 2
    assert value(found, "iosd_osd_commands_total", command="READ", status="no_object") == 2
    assert value(found, "iosd_scale_decisions_total", pool="default", direction="up") == 2
    assert value(found, "iosd_fault_injection_enabled") == 0
    assert value(found, "iosd_target_up") == 1
    assert value(found, "iosd_capacity_bytes", kind="free") == 500
    assert value(found, "iosd_capacity_bytes", kind="used") == 400
    assert value(found, "iosd_store_bytes", tier="ssd", kind="used") == 8000
    assert value(found, "iosd_partition_bytes", partition="0x10000", kind="quota") == 256
    assert value(found, "iosd_partition_bytes", partition="0x10001", kind="quota") is None
    assert value(found, "iosd_partition_objects", partition="0x10001") == 2
    assert value(found, "iosd_no_space_total", cause="main") == 3
    assert value(found, "iosd_scrub_ended_timestamp_seconds") == 1_800_000_000
    assert value(found, "iosd_scrub_damaged_blocks") == 1
    assert value(found, "iosd_checksum_blocks_total", status="compared") == 1000


def test_partitions_are_bounded() -> None:
    """The number of a label's values is limited, whatever a target lists."""
    said = snapshot()
    said["store"]["largest"] = [
        {"partition": f"{pid:#x}", "objects": 1} for pid in range(0x10000, 0x10100)
    ]
    found = scrape(Reading(said))
    assert sum(name == "iosd_partition_objects" for name, _ in found) == 16


def test_histograms_add_up() -> None:
    found = whole()
    steps = [
        value(found, "iosd_job_queue_seconds_bucket", pool="default", le=le)
        for le in ("0.001", "0.01", "0.1", "1.0", "+Inf")
    ]
    assert steps == [50, 80, 95, 100, 100]
    assert value(found, "iosd_job_queue_seconds_count", pool="default") == 100
    assert value(found, "iosd_job_queue_seconds_sum", pool="default") == 5


def test_every_metric_is_there_with_help_and_kind() -> None:
    text = exposition(Reading(snapshot(), DECISIONS, up=True))[0].decode()
    for metric in METRICS:
        assert f"# HELP {metric.name} {metric.help}\n" in text
        assert f"# TYPE {metric.name} {metric.kind}\n" in text
        assert set(metric.labels) <= LABELS
    assert len({metric.name for metric in METRICS}) == len(METRICS)


def test_what_is_not_said_is_absent() -> None:
    assert scrape(None) == {}
    assert scrape(Reading({})) == {}
    for path in ("heads", "pools", "jobs", "transactions", "command_seconds", "bounds"):
        less = snapshot()
        del less[path]
        missing = {name for name, _ in whole()} - {
            name for name, _ in scrape(Reading(less, DECISIONS, up=True))
        }
        assert missing, path


def test_openmetrics_for_who_asks() -> None:
    body, kind = exposition(Reading(snapshot()), "application/openmetrics-text; version=1.0.0")
    assert kind.startswith("application/openmetrics-text")
    assert body.endswith(b"# EOF\n")


HOSTILE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.just('"} 1\niosd_workers 99\n# '),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=25)
@given(st.lists(st.tuples(st.integers(0, 200), HOSTILE), min_size=1, max_size=6))
def test_whatever_a_target_says(wrongs: list[tuple[int, Any]]) -> None:
    """Any value at any place: the text stays text, and the names ours."""
    said = snapshot()
    places: list[tuple[Any, Any]] = []

    def walk(node: Any) -> None:
        keys = (
            node if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
        )
        for key in list(keys):
            places.append((node, key))
            walk(node[key])

    walk(said)
    for where, wrong in wrongs:
        node, key = places[where % len(places)]
        node[key] = wrong
    found = scrape(Reading(said))
    known = {metric.name for metric in METRICS}
    for (name, _), number in found.items():
        assert re.sub("_(bucket|count|sum)$", "", name) in known
        assert number >= 0


def test_hostile_words_are_values() -> None:
    said = snapshot()
    name = 'x"} 1\niosd_workers 99\n<script>'
    said["pools"][0]["name"] = name
    found = scrape(Reading(said))
    assert value(found, "iosd_queue_depth", pool=name) == 3
    assert value(found, "iosd_workers") == 8


# ---- what is made for it ----


def test_page_equals_table() -> None:
    made = "run: .venv/bin/python -m tools.metricsdoc >docs/metrics.md"
    assert (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8") == page(), made


SELECTOR = re.compile(r"(iosd_[a-z_]+)(?:\{([^}]*)\})?")
MATCHER = re.compile(r'\s*([a-z_]+)\s*(=~|!~|!=|=)\s*"[^"]*"\s*')
GROUPED = re.compile(r"\b(?:by|without) \(([a-z_, ]*)\)")
SCRAPER = {"instance", "job", "le"}


def check_expression(text: str) -> None:
    """Each name is the exporter's, each label one that the name has; brackets close."""
    assert text.count("(") == text.count(")")
    assert text.count("{") == text.count("}")
    metrics = {metric.name: metric for metric in METRICS}
    samples = {name for name, _ in whole()}
    labels = set(SCRAPER)
    for name, matchers in SELECTOR.findall(text):
        assert name in samples, name
        metric = (
            metrics[name] if name in metrics else metrics[re.sub("_(bucket|count|sum)$", "", name)]
        )
        labels |= set(metric.labels)
        for matcher in filter(None, matchers.split(",")):
            found = MATCHER.fullmatch(matcher)
            assert found, matcher
            assert found[1] in {*metric.labels, *SCRAPER}, f"{name} has no label {found[1]}"
        if metric.kind == "counter":
            assert re.search(rf"(rate|increase)\({name}\b", text), f"{name} is a counter"
    for words in GROUPED.findall(text):
        assert {word.strip() for word in words.split(",")} <= labels, words


def test_rules() -> None:
    rules = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"][0]["rules"]
    assert len(rules) == 12
    for rule in rules:
        check_expression(rule["expr"])
        assert {"summary", "description"} == set(rule["annotations"])
    text = RULES.read_text(encoding="utf-8")
    for name in (
        "iosd_queue_oldest_age_seconds",
        'state="SANDBOX_LOST"',
        "iosd_jobs_refused_total",
        "iosd_head_errors_total",
        "iosd_target_up == 0",
        'up{job="iosd"} == 0',
        "predict_linear(iosd_capacity_bytes",
        'tier="ssd"',
        "iosd_no_space_total",
        "iosd_partition_bytes",
    ):
        assert name in text


def expressions(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("expr"), str):
            yield node["expr"]
        for inner in node.values():
            yield from expressions(inner)
    elif isinstance(node, list):
        for inner in node:
            yield from expressions(inner)


def test_dashboard() -> None:
    dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    found = list(expressions(dashboard))
    assert len(found) > 12
    for text in found:
        check_expression(text)
    samples = {name for name, _ in whole()}
    for variable in dashboard["templating"]["list"]:
        names = re.findall(r"iosd_\w+", json.dumps(variable))
        assert set(names) <= samples
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(ids)) == len(ids)

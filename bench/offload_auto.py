# SPDX-License-Identifier: GPL-2.0-or-later
"""Rows of `where="auto"`, from the outcomes that bench/offload_model.py measures."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench.stats import Row, at_least, row_of_pairs

__all__ = ["auto_rows"]

BUSY_AIM, WORST_AIM, RIGHT_AIM = at_least(1.9), at_least(0.95), at_least(0.95)
BUSY = ("words", "compress")  # that a busy target should leave to its client


def medians(pairs: Sequence[Sequence[float]]) -> tuple[float, float]:
    """Seconds near the data, and of fetching."""
    near, fetch = (statistics.median(each) for each in zip(*pairs, strict=True))
    return near, fetch


def is_right(each: Mapping[str, Any], place: str, close: float) -> bool:
    """Whether the place was, measured, as good as the other."""
    near, fetch = medians(each["pairs"])
    chosen, other = (near, fetch) if place == "near" else (fetch, near)
    return chosen <= close * other


def changing_row(found: Sequence[Mapping[str, Any]]) -> Row:
    """Against the better place for all runs, while the load changes before each: the worst script."""

    def pairs(each: Mapping[str, Any]) -> list[tuple[float, float]]:
        near, fetch = (sum(column) for column in list(zip(*each["sums"], strict=True))[:2])
        return [(auto, one[near > fetch]) for *one, auto in each["sums"]]

    def gain(each: Mapping[str, Any]) -> float:
        return statistics.median(best / auto for auto, best in pairs(each))

    worst = min(found, key=gain)
    method = (
        f"the better place for all runs / where=auto, load comes and goes, worst: {worst['name']}"
    )
    return row_of_pairs("offload_auto_changing", pairs(worst), WORST_AIM, method, speedup=True)


def auto_rows(found: Mapping[str, list[dict[str, Any]]], close: float) -> Iterator[Row]:
    """Against always sending, against the better place, and how many decisions were right."""
    cells = [each | {"mode": mode} for mode, all_of in found.items() for each in all_of]
    cells = [each for each in cells if each.get("auto")]
    if not cells:
        return
    for each in cells:
        if each["mode"] == "busy" and each["name"] in BUSY:
            near, _ = medians(each["pairs"])
            pairs = [(seconds, near) for seconds, _ in each["auto"]]
            places = ", ".join(place for _, place in each["auto"])
            yield row_of_pairs(
                f"offload_auto_busy_{each['name']}",
                pairs,
                BUSY_AIM,
                f"always near the data / where=auto: {places}",
                speedup=True,
            )

    def gain(each: Mapping[str, Any]) -> float:
        return min(medians(each["pairs"])) / float(statistics.median(s for s, _ in each["auto"]))

    worst = min(cells, key=gain)
    best = min(medians(worst["pairs"]))
    yield row_of_pairs(
        "offload_auto_worst",
        [(seconds, best) for seconds, _ in worst["auto"]],
        WORST_AIM,
        f"the better place / where=auto, worst of {len(cells)}: {worst['name']}, {worst['mode']}",
        speedup=True,
    )
    yield changing_row(found["changing"])
    decisions = [is_right(each, place, close) for each in cells for _, place in each["auto"]]
    share = [(float(sum(decisions)), float(len(decisions)))]
    method = "decisions of where=auto that were right, of all"
    yield row_of_pairs("offload_auto_right", share, RIGHT_AIM, method, unit="decisions")

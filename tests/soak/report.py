# SPDX-License-Identifier: GPL-2.0-or-later
"""Results of a soak, as text, in JSON, and as a plot."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import asdict
from pathlib import Path

from tests.soak.judge import Slope, Verdict, judge
from tests.soak.run import SHORT_S, Outcome, warm_up_of
from tests.soak.samples import Sample

SCHEMA = "iosd.soak/1"
BYTES = ("rss", "pss", "heap", "bytes")
PLOTTED = (
    ("memory, MiB (PSS)", ("tgtd.pss", "tgtd.heap", "sandboxd.pss", "zygote.pss"), 1 << 20),
    ("descriptors", ("tgtd.descriptors", "sandboxd.descriptors", "zygote.descriptors"), 1),
    ("threads", ("tgtd.threads", "sandboxd.threads", "zygote.threads"), 1),
    ("cgroups", ("sandboxd.cgroups",), 1),
    ("database", ("database.lockers", "database.locks", "database.transactions"), 1),
    ("store: files, logs", ("store.files", "store.logs"), 1),
)
TABLES = 11
"""Of the database, the directory of tables included."""
HIGH = 1.02
"""As much as what was highest before is no new high."""
FLAT, GROWS, NOTHING_SAID = 0, 1, 3
"""Exit codes: all is flat; something grows or went wrong; too short to say of some."""


def verdict(outcome: Outcome, slope: Slope) -> Verdict:
    """The verdict on a figure.

    A short run warms up still: growth there says nothing (what is open at rest does).  In a long one
    an interval that contains 0 is flat, however wide.  Pages that leak are resident and nobody
    else's, so a leak of memory grows in RSS and in PSS: RSS alone moves with pages of files, PSS
    alone with who else has them; and where the heap in use is known, in that: what was free again
    leaves holes, which stay.  Cursors keep their lockers for the next use: so many as were open
    at once, at most one in each table for each thread.  iosd-sandboxd keeps what slots need for the
    next use, too, and is often killed: of its own there may be no more in the second half than in the
    first.
    """
    found = slope.verdict
    short = outcome.seconds < SHORT_S
    name, _, what = slope.name.rpartition(".")
    if found is Verdict.GROWS and what in ("rss", "pss"):
        found = with_other(outcome, slope, f"{name}.{'pss' if what == 'rss' else 'rss'}")
    if found is Verdict.GROWS and what in ("rss", "pss"):
        found = with_other(outcome, slope, f"{name}.heap")
    if found is Verdict.GROWS and name == "sandboxd":
        high = has_new_high(outcome, f"{name}.{'rss' if what == 'pss' else what}")
        found = found if high else Verdict.FLAT
    if found is Verdict.GROWS and slope.name == "database.lockers":
        found = Verdict.FLAT if lockers_are_bounded(outcome) else found
    if found is Verdict.GROWS and short:
        return Verdict.UNKNOWN
    if found is Verdict.UNKNOWN and not short and slope.points and slope.low <= 0:
        return Verdict.FLAT
    return found


def with_other(outcome: Outcome, slope: Slope, name: str) -> Verdict:
    """Of a growing RSS with PSS, the reverse, or either with the heap: growth if that grows too or is not
    known, none if that does not grow so much, by its whole interval."""
    other = next((each for each in outcome.slopes if each.name == name), None)
    if other is None or other.verdict is Verdict.GROWS:
        return Verdict.GROWS
    less = other.high * other.mean < slope.low * slope.mean
    return Verdict.FLAT if less and other.points else Verdict.UNKNOWN


def has_new_high(outcome: Outcome, name: str) -> bool:
    """Whether there was more of it in the second half than ever in the first."""
    found = [(each.at, each.figures[name]) for each in outcome.samples if name in each.figures]
    middle = (outcome.warm_up + outcome.seconds) / 2
    before = max((value for at, value in found if at < middle), default=0.0)
    return max((value for at, value in found if at >= middle), default=0.0) > before * HIGH


def lockers_are_bounded(outcome: Outcome) -> bool:
    """Whether there never were more than cursors can be open at once."""
    return all(
        each.figures.get("database.lockers", 0) <= TABLES * each.figures["tgtd.threads"]
        for each in outcome.samples
        if "tgtd.threads" in each.figures
    )


def figure(slope: Slope) -> str:
    """The mean with its unit."""
    if slope.name.rpartition(".")[2] in BYTES:
        return f"{slope.mean / (1 << 20):.1f} MiB"
    return f"{slope.mean:.1f}"


def lines(outcome: Outcome) -> list[str]:
    """One line a figure, then what is wrong."""
    found = []
    for slope in outcome.slopes:
        found.append(
            f"{slope.name:24} {figure(slope):>12}  {100 * slope.slope:+8.2f} %/h "
            f"[{100 * slope.low:+.2f}, {100 * slope.high:+.2f}]  {verdict(outcome, slope).value}"
        )
    unknown = [each.name for each in outcome.slopes if verdict(outcome, each) is Verdict.UNKNOWN]
    if unknown:
        found.append(f"too short a run, or too much noise, to say of: {', '.join(unknown)}")
    found += [f"MORE AT REST {text}" for text in outcome.more_at_rest()]
    found += [f"FAILED {text}" for text in outcome.failures[:20]]
    return found


def code(outcome: Outcome) -> int:
    """The exit code."""
    verdicts = {verdict(outcome, each) for each in outcome.slopes}
    if outcome.failures or outcome.more_at_rest() or Verdict.GROWS in verdicts:
        return GROWS
    return NOTHING_SAID if Verdict.UNKNOWN in verdicts or not verdicts else FLAT


def write_json(outcome: Outcome, path: Path) -> None:
    """All of it; a figure that has no number is null."""
    found = {
        "schema": SCHEMA,
        "seed": outcome.seed,
        "seconds": outcome.seconds,
        "warm_up_seconds": outcome.warm_up,
        "steps": dict(outcome.done),
        "kills": dict(outcome.kills),
        "at_rest": outcome.rest,
        "failures": outcome.failures,
        "slopes": [
            asdict(each) | {"verdict": verdict(outcome, each).value} for each in outcome.slopes
        ],
        "samples": [asdict(each) for each in outcome.samples],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")


def read_json(path: Path) -> Outcome:
    """Readings of an earlier run, judged again."""
    found = json.loads(path.read_text())
    outcome = Outcome(found["seed"], found["seconds"], warm_up_of(found["seconds"]))
    outcome.samples = [Sample(**each) for each in found["samples"]]
    outcome.slopes = judge(outcome.samples, outcome.warm_up)
    outcome.rest, outcome.failures = found["at_rest"], found["failures"]
    outcome.done, outcome.kills = Counter(found["steps"]), Counter(found["kills"])
    return outcome


def plot(outcome: Outcome, path: Path) -> None:
    """Every figure over time; the warm-up is grey."""
    import matplotlib as mpl
    from matplotlib import pyplot

    mpl.use("Agg")
    page, axes = pyplot.subplots(3, 2, figsize=(10, 8), sharex=True, layout="constrained")
    for axis, (title, names, unit) in zip(axes.flat, PLOTTED, strict=True):
        common = title.partition(":")[0] in ("database", "store")
        for name in names:
            points = [(e.at / 60, e.figures.get(name, math.nan) / unit) for e in outcome.samples]
            process, _, what = name.partition(".")
            label = what if common else f"{process}, {what}" if what in BYTES else process
            axis.plot(*zip(*points, strict=True), label=label, linewidth=0.8)
        axis.axvspan(0, outcome.warm_up / 60, color="0.9")
        axis.set_title(title, fontsize=9)
        axis.set_ylim(bottom=0)
        axis.legend(fontsize=7)
    for axis in axes[-1]:
        axis.set_xlabel("minutes")
    page.suptitle(
        f"{outcome.seconds / 3600:.2f} h, {outcome.done.total()} steps, "
        f"{outcome.kills.total()} kills, seed {outcome.seed}",
        fontsize=10,
    )
    page.savefig(path, dpi=80)
    pyplot.close(page)

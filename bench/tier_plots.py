# SPDX-License-Identifier: GPL-2.0-or-later
"""Plots of the two tiers: figures 3.2 to 3.5 of Runde's thesis, and the ratios."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.plots import size
from bench.stats import bootstrap
from bench.tier_places import HDD, SSD, TIERS

Samples = dict[str, list[float]]
"""Of each place, one figure a round."""

TITLES = {
    SSD: "all on the SSD (figure 3.2)",
    HDD: "all on the hard disk (figure 3.3)",
    TIERS: "heads of 2 MiB on the SSD (figure 3.4)",
}
KIB, HEAD = 1 << 10, 2 << 20


@dataclass
class Found:
    """Data of plots: bytes per second of each place by direction and size, or offset of the
    step."""

    curves: dict[str, dict[int, Samples]] = field(default_factory=dict)
    steps: dict[str, dict[int, Samples]] = field(default_factory=dict)


def _sizes(axes: Any) -> None:
    """Sizes along the x axis, a power of 32 apart."""
    axes.set_xscale("log", base=2)
    axes.set_xticks([KIB << step for step in range(0, 21, 5)])
    axes.xaxis.set_major_formatter(size)
    axes.minorticks_off()
    axes.axvline(HEAD, color="grey", linewidth=0.8, linestyle=":")


def _throughput(pyplot: Any, curves: dict[str, dict[int, Samples]], path: Path) -> None:
    figure, panels = pyplot.subplots(
        1, 3, figsize=(13, 4.2), layout="constrained", sharey=True, sharex=True
    )
    for axes, (kind, title) in zip(panels, TITLES.items(), strict=True):
        for direction, by_size in curves.items():
            middles = [statistics.median(found[kind]) / 1e6 for found in by_size.values()]
            axes.plot(list(by_size), middles, "o-", markersize=4, label=direction)
        _sizes(axes)
        axes.set(title=title, xlabel="object size")
        axes.grid(alpha=0.3)
    panels[0].set(ylabel="MB/s, whole objects", ylim=(0, None))
    panels[0].legend()
    figure.suptitle("Simulated disks: 15 ms and 65 MB/s; 0.2 ms and 275/150 MB/s")
    figure.savefig(path, dpi=100)
    pyplot.close(figure)


def _ratios(pyplot: Any, curves: dict[str, dict[int, Samples]], path: Path) -> None:
    figure, panels = pyplot.subplots(1, 2, figsize=(11, 4.2), layout="constrained", sharex=True)
    for axes, baseline, aim in ((panels[0], SSD, 0.95), (panels[1], HDD, 0.98)):
        for direction, by_size in curves.items():
            ratios = {
                size: [a / b for a, b in zip(found[TIERS], found[baseline], strict=True)]
                for size, found in by_size.items()
            }
            middles = [statistics.median(each) for each in ratios.values()]
            ends = [bootstrap(each) for each in ratios.values()]
            below = [max(0.0, m - low) for m, (low, _) in zip(middles, ends, strict=True)]
            above = [max(0.0, high - m) for m, (_, high) in zip(middles, ends, strict=True)]
            axes.errorbar(
                list(ratios), middles, yerr=(below, above), fmt="o-", markersize=4, capsize=2,
                label=direction,
            )  # fmt: skip
        axes.axhline(aim, color="red", linewidth=0.8, linestyle="--", label=f"aim {aim}")
        _sizes(axes)
        axes.set(xlabel="object size")
        axes.grid(alpha=0.3)
    panels[0].set(title="two tiers / all on the SSD", ylim=(0, 1.5))
    panels[1].set(title="two tiers / all on the hard disk", yscale="log")
    panels[0].legend()
    figure.suptitle("Simulated disks: medians of interleaved pairs with 95 % intervals")
    figure.savefig(path, dpi=100)
    pyplot.close(figure)


def _steps(pyplot: Any, steps: dict[str, dict[int, Samples]], path: Path) -> None:
    figure, panels = pyplot.subplots(
        1, 2, figsize=(11, 4), layout="constrained", sharey=True, sharex=True
    )
    for axes, (direction, by_offset) in zip(panels, steps.items(), strict=True):
        for index, kind in enumerate(TITLES):
            middles = [statistics.median(found[kind]) / 1e6 for found in by_offset.values()]
            places = [number + 0.27 * (index - 1) for number in range(len(by_offset))]
            axes.bar(places, middles, 0.27, label=TITLES[kind].split(" (")[0])
        axes.set_xticks(range(len(by_offset)), [str(at // KIB) for at in by_offset])
        axes.set(title=direction, xlabel="offset, KiB")
    panels[0].set(ylabel="MB/s")
    panels[0].legend()
    figure.suptitle(
        "A 4 MiB object in steps of 512 KiB, written and read in turn (figure 3.5); simulated disks"
    )
    figure.savefig(path, dpi=100)
    pyplot.close(figure)


def draw(found: Found, folder: Path) -> None:
    """tiers-throughput.png, tiers-ratios.png and tiers-steps.png."""
    import matplotlib as mpl
    from matplotlib import pyplot

    mpl.use("agg")
    _throughput(pyplot, found.curves, folder / "tiers-throughput.png")
    _ratios(pyplot, found.curves, folder / "tiers-ratios.png")
    _steps(pyplot, found.steps, folder / "tiers-steps.png")

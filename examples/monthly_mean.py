# SPDX-License-Identifier: GPL-2.0-or-later
"""Monthly means of a gridded variable on several targets, by xarray and Dask, in three ways.

Usage: python3 monthly_mean.py TARGETS.toml [LATxLON] [POOL] [PLOT.png]

Each object has one month, four times a day.  The mean over the month is computed near the data, then at
home from fetched data, then in the place that is expected to be quicker.  Each way runs three times:
"auto" learns by the first ones.  The program prints how long the last run of each took.  LATxLON is the
grid, 45x90 by default; POOL a pool, best one with numpy.  Needs the extra `dask` of iosd, xarray, and
matplotlib for the plot.
"""

from __future__ import annotations

import base64
import calendar
import struct
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.array
import numpy as np
import xarray as xr
from dask.delayed import delayed

import pyosd
from pyosd.cluster.targets_file import read_targets
from pyosd.dask import Near

PARTITION = pyosd.PartitionId(0x41000)
YEAR = 2025
TIMES = 4  # of a day
WAIT_S = 60
SESSIONS: dict[str, pyosd.Target] = {}
OPENING = threading.Lock()
HEAD = "<3I"  # times, latitudes, longitudes; then float32, little-endian


def mean_of_month(obj: Any) -> str:
    """Run beside the data or at home: the mean over the month, for each place of the grid.

    Returns: float32, as text in base 64.
    """
    import base64
    import struct
    from array import array

    raw = obj.data.read()
    times, lats, lons = struct.unpack_from("<3I", raw)
    try:
        import numpy

        whole = numpy.frombuffer(raw, "<f4", offset=12).reshape(times, lats, lons)
        mean = whole.mean(axis=0).tobytes()
    except ImportError:
        values, cells = array("f", raw[12:]), lats * lons
        mean = array("f", (sum(values[cell::cells]) / times for cell in range(cells))).tobytes()
    return base64.b64encode(mean).decode()


AUTO = """#OSD --pure
from typing import Any

import osd

{source}

osd.result(mean_of_month(osd.zone))
"""


def month_of(month: int, lats: int, lons: int) -> bytes:
    """The bytes of a month's object: temperatures that depend on latitude, season and weather."""
    times = calendar.monthrange(YEAR, month)[1] * TIMES
    warm = 30 * np.cos(np.linspace(-np.pi / 2, np.pi / 2, lats))[None, :, None]
    season = 8 * np.sin(np.linspace(-np.pi / 2, np.pi / 2, lats))[None, :, None]
    season = season * np.cos((month - 7) * np.pi / 6)
    weather = np.random.default_rng(month).normal(0, 3, (times, lats, lons))
    degrees: bytes = (warm + season + weather).astype("<f4").tobytes()
    return struct.pack(HEAD, times, lats, lons) + degrees


def as_year(parts: list[Any], lats: int, lons: int) -> xr.DataArray:
    """Grids that are still to be computed, one for each month, as one variable."""
    grids = [dask.array.from_delayed(each, (1, lats, lons), "f4") for each in parts]
    coords = {
        "month": range(1, len(parts) + 1),
        "lat": np.linspace(-90, 90, lats),
        "lon": np.linspace(0, 360, lons, endpoint=False),
    }
    return xr.DataArray(dask.array.concatenate(grids), coords, name="temperature")


def as_grid(means: list[str], lats: int, lons: int) -> Any:
    """The only value of a leaf, which mean_of_month() returned, as an array of one month."""
    return np.frombuffer(base64.b64decode(means[0]), "<f4").reshape(1, lats, lons)


def at_home(url: str, obj: pyosd.ObjectRef) -> Any:
    """Fetch an object, and compute here."""
    with pyosd.connect(url) as target:
        raw = bytes(target.read_range(obj))
    return np.frombuffer(raw, "<f4", offset=12).reshape(struct.unpack_from(HEAD, raw)).mean(0)[None]


def session(url: str) -> pyosd.Target:
    """One for all threads: it keeps the process that runs scripts at this client."""
    with OPENING:
        if url not in SESSIONS:
            SESSIONS[url] = pyosd.connect(url)
        return SESSIONS[url]


def in_the_better_place(url: str, obj: pyosd.ObjectRef, code: str, pool: str) -> list[str]:
    """Let the target and this client decide; wait for the job with the command that submits it."""
    found = session(url).run(code, zone=obj, where="auto", pool=pool, wait=WAIT_S)
    return [found.result]


def plot(year: xr.DataArray, seconds: dict[str, float], file: str) -> None:
    """July, and how long each way took."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), width_ratios=(2, 1))
    year.sel(month=7).plot.imshow(ax=left)
    left.set_title("mean temperature of July")
    right.bar(list(seconds), list(seconds.values()))
    right.set_ylabel("seconds")
    figure.tight_layout()
    figure.savefig(file)


def main(
    targets: dict[str, str],
    lats: int = 45,
    lons: int = 90,
    pool: str = "",
    file: str = "",
    runs: int = 3,
) -> None:
    """Store the months, compute in three ways, compare, print, clean up."""
    from inspect import getsource

    with pyosd.many(targets) as cluster:
        for name in cluster.names:
            cluster.target(name).create_partition(PARTITION)
        copies = [cluster.put(PARTITION, month_of(month, lats, lons)) for month in range(1, 13)]
        urls = [targets[each.targets[0]] for each in copies]
        code = AUTO.format(source=getsource(mean_of_month))
        near = Near(targets)
        ways: dict[str, Callable[[], list[Any]]] = {
            "near": lambda: [
                delayed(as_grid)(each, lats, lons)
                for one in copies
                for each in near.delayed(mean_of_month, [one], pool=pool)
            ],
            "home": lambda: [
                delayed(at_home)(url, each.object) for url, each in zip(urls, copies, strict=True)
            ],
            "auto": lambda: [
                delayed(as_grid)(
                    delayed(in_the_better_place)(url, each.object, code, pool), lats, lons
                )
                for url, each in zip(urls, copies, strict=True)
            ],
        }
        seconds, years = {}, {}
        for name, parts in [*ways.items()] * runs:
            start = time.perf_counter()
            years[name] = as_year(parts(), lats, lons).compute()
            seconds[name] = time.perf_counter() - start
        for name, year in years.items():
            xr.testing.assert_allclose(year, years["home"], rtol=1e-4, atol=1e-4)
            print(
                f"{name}: {seconds[name]:.3f} s, mean of July {float(year.sel(month=7).mean()):.2f}"
            )
        if file:
            plot(years["near"], seconds, file)
        for name in cluster.names:
            cluster.target(name).remove_partition(PARTITION, contents=True)
    while SESSIONS:
        SESSIONS.popitem()[1].close()


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 5:
        sys.exit(__doc__)
    grid, where, picture = [*sys.argv[2:], *["45x90", "", ""][len(sys.argv) - 2 :]]
    height, width = map(int, grid.split("x"))
    main(read_targets(Path(sys.argv[1])), height, width, where, picture)

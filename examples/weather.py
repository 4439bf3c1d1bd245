# SPDX-License-Identifier: GPL-2.0-or-later
"""Files of weather stations on several targets, evaluated by Dask with jobs near the data.

Usage: python3 weather.py TARGETS.toml FOLDER

FOLDER has a CSV file for each station, with the columns month and degrees.  Each file is stored with two
copies.  Needs the extra `dask` of iosd.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pandas as pd

import pyosd
from pyosd.cluster.targets_file import read_targets
from pyosd.dask import Near

PARTITION = pyosd.PartitionId(0x40000)


def records(obj: Any) -> list[dict[str, Any]]:
    """Run beside the data: the lines of a file as records."""
    import csv
    import io

    text = io.StringIO(obj.data.read().decode())
    return [
        {"month": int(row["month"]), "degrees": float(row["degrees"])}
        for row in csv.DictReader(text)
    ]


def warmest(obj: Any) -> float:
    """Run beside the data: only one number of each file comes back."""
    lines = obj.data.read().decode().splitlines()[1:]
    return max(float(line.split(",")[1]) for line in lines)


def main(targets: dict[str, str], folder: Path) -> None:
    """Store the files, print the highest value and the mean of each month, clean up."""
    with pyosd.many(targets) as cluster:
        for name in cluster.names:
            cluster.target(name).create_partition(PARTITION)
        for file in sorted(folder.glob("*.csv")):
            cluster.put(PARTITION, file.read_bytes(), copies=2)
        near = Near(targets)
        copies = near.copies(PARTITION)
        print("warmest:", near.reduce(warmest, copies, "max").compute())
        meta = pd.DataFrame(
            {"month": pd.Series(dtype="int64"), "degrees": pd.Series(dtype="float64")}
        )
        frame = near.dataframe(records, copies, meta)
        for month, degrees in frame.groupby("month").degrees.mean().compute().sort_index().items():
            print(f"{month:2}: {degrees:.2f}")
        for name in cluster.names:
            cluster.target(name).remove_partition(PARTITION, contents=True)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(read_targets(sys.argv[1]), Path(sys.argv[2]))

# SPDX-License-Identifier: GPL-2.0-or-later
"""The demonstration: three scripts and a view meet their data in two ways, and nothing is taken on trust.

A log of the size of the iOSD paper's, and files of this machine, are stored as objects.  Each script
runs beside the data, and once more here on fetched data; the outputs must be equal byte for byte.
The log is counted a third time by awk.  Then a view shows one user's lines of the log (view.py).  The
last line on stdout is JSON.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from examples.demo.generate import LINES, SEED, write_log
from examples.demo.screen import heading, print_comparison, print_counts, working
from examples.demo.serving import osd, serving
from examples.demo.view import create_view, fetch_and_filter, first_user, read_view
from examples.demo.ways import Outcome, Task, fetch_and_compute, near_the_data
from pyosd.types import ROOT, ObjectRef

HERE = Path(__file__).resolve().parent
PARTITION = ObjectRef.parse("0x20000")  # Listing 1 makes and removes 0x10000
STATUS = Path("/var/lib/dpkg/status")
DPKG_LOG = Path("/var/log/dpkg.log")
SHOWN_COLUMNS = 100  # of a line of the log


@dataclass(frozen=True)
class Result:
    """The results of the two ways of a task."""

    name: str
    near: Outcome
    local: Outcome

    @property
    def equal(self) -> bool:
        """Whether both ways printed the same bytes."""
        return self.near.sha256 == self.local.sha256

    def record(self) -> dict[str, Any]:
        """Its part of the last line."""
        return {
            "name": self.name,
            "equal": self.equal,
            "near": figures(self.near),
            "local": figures(self.local),
        }


def figures(way: Outcome) -> dict[str, Any]:
    """The cost of one way."""
    return {
        "seconds": round(way.seconds, 4),
        "sent_bytes": way.sent_bytes,
        "received_bytes": way.received_bytes,
        "output_bytes": len(way.output),
        "output_sha256": way.sha256,
    }


@contextlib.contextmanager
def workspace() -> Iterator[Path]:
    """A folder for everything, taken away at the end; tgtd's own user passes through it."""
    with tempfile.TemporaryDirectory(prefix="iosd-demo-", dir="/var/tmp") as folder:
        path = Path(folder)
        path.chmod(0o711)
        yield path


def store(url: str, file: Path) -> ObjectRef:
    """`osd obj write`, which prints the id of the new object; its bar is for the person."""
    done = subprocess.run(
        osd("obj", "write", str(PARTITION), file, "--target", url),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return ObjectRef.parse(done.stdout.strip())


def tasks(url: str, log: Path, work: Path) -> list[Task]:
    """Store what the scripts work on, and say what they shall do."""
    create = osd("part", "create", str(PARTITION), "--target", url)
    subprocess.run(create, check=True, stdout=subprocess.DEVNULL)
    stored = store(url, log)
    status = store(url, STATUS)
    if not DPKG_LOG.exists():  # a machine made from an image may have none
        (work / "dpkg.log").touch()
    dpkg_log = store(url, DPKG_LOG if DPKG_LOG.exists() else work / "dpkg.log")
    return [
        Task("nfs log", HERE / "log.py", stored, ids(stored), (stored,)),
        Task("packages", HERE / "dpkg.py", PARTITION, ids(status, dpkg_log), (status, dpkg_log)),
        Task("listing 1", HERE.parent / "listing1.py", ROOT),
    ]


def ids(first: ObjectRef, *others: ObjectRef) -> tuple[str, ...]:
    """Partition id and object ids as a script's arguments."""
    return (
        hex(first.partition_id),
        *(hex(each.object_id) for each in (first, *others)),
    )


def run(url: str, task: Task, work: Path, plant: bool) -> Result:
    """Both ways, one after the other."""
    with working(f"{task.name}: near the data") as progress:
        near = near_the_data(url, task, progress)
    with working(f"{task.name}: fetch and compute") as progress:
        local = fetch_and_compute(url, task, work, progress)
    if plant:
        wrong = re.sub(
            rb"\d+$",
            lambda count: b"%d" % (int(count[0]) + 1),
            near.output,
            count=1,
            flags=re.MULTILINE,
        )
        near = Outcome(wrong, near.seconds, near.sent_bytes, near.received_bytes)
    return Result(task.name, near, local)


def run_view(url: str, log: ObjectRef, work: Path, counted: bytes) -> Result:
    """One user's lines of the log.  counted: what the script has counted in it."""
    user = first_user(counted)
    with working(f"user {user}: through a view"):
        near = read_view(url, create_view(url, log, user), work)
    with working(f"user {user}: fetch and filter"):
        local = fetch_and_filter(url, log, work, user)
    return Result("one user", near, local)


def counted_by_awk(log: Path, output: bytes) -> bool:
    """Whether an independent count of the log says the same as the script."""
    with working("nfs log: counted again by awk"):
        done = subprocess.run(
            ["awk", "-f", HERE / "count.awk", log], stdout=subprocess.PIPE, check=True
        )
    return sorted(done.stdout.splitlines()) == sorted(output.splitlines())


def show(results: list[Result], awk_equal: bool) -> None:
    """Print the tables."""
    log, packages, listing, lines = (result.near.output for result in results)
    print_counts(log, "user", ("USER", "REQUESTS"))
    print_counts(log, "operation", ("OPERATION", "REQUESTS"))
    print_counts(packages, "section", ("SECTION", "PACKAGES", "KIB"))
    print_counts(packages, "day", ("DAY", "INSTALLS"), last=True)
    heading("listing 1 of the iOSD paper")
    click.echo(listing.decode().rstrip())
    selected = lines.decode().splitlines()
    heading(f"user {first_user(log)} through a view, 3 of {len(selected)} lines")
    for line in selected[:3]:
        click.echo(line[:SHOWN_COLUMNS])
    print_comparison([(each.name, each.near, each.local) for each in results])
    click.echo(f"\nawk counts the log {'alike' if awk_equal else 'DIFFERENTLY'}")
    for each in results:
        if not each.equal:
            click.echo(f"{each.name}: THE OUTPUTS DIFFER")


@click.command()
@click.option("--lines", type=click.IntRange(1), default=LINES, help=f"Lines of log.  [{LINES}]")
@click.option(
    "--plant-error",
    is_flag=True,
    default=bool(os.environ.get("IOSD_DEMO_PLANT_ERROR")),
    help="Spoil one count, to see that it is noticed.",
)
def main(lines: int, plant_error: bool) -> None:
    """Show that scripts and views find the same as clients that fetch the data."""
    with workspace() as work:
        log = work / "nfs.log"
        with working(f"writing a log of {lines} lines, seed {SEED}"):
            size = write_log(log, lines)
        with serving(work / "store", work / "serve.log") as ready:
            url = ready["url"]
            click.echo(f"target {url}, isolation {ready['isolation']}", err=True)
            first, *others = tasks(url, log, work)
            results = [run(url, first, work, plant_error)]
            results += [run(url, each, work, False) for each in others]
            results.append(run_view(url, first.zone, work, results[0].near.output))
        awk_equal = counted_by_awk(log, results[0].near.output)
    show(results, awk_equal)
    equal = awk_equal and all(result.equal for result in results)
    last = {
        "schema": "iosd.demo/1",
        "equal": equal,
        "awk_equal": awk_equal,
        "isolation": ready["isolation"],
        "log": {"lines": lines, "bytes": size, "seed": SEED},
        "jobs": [result.record() for result in results],
    }
    click.echo(json.dumps(last))
    sys.exit(0 if equal else 1)


main()

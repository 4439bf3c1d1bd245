# SPDX-License-Identifier: GPL-2.0-or-later
"""Tables of the administrators' verbs on a terminal of 80 columns and on a pipe, and a pool's words."""

from __future__ import annotations

import subprocess
import sys

from iosd_host.cli import manager as manager_verbs
from iosd_host.cli import pool as pool_verbs
from iosd_host.cli.verb import differences, target_name
from iosd_host.config.live_keys import note_of
from pyosd.cli.host import pool
from pyosd.cli.jobs import top
from pyosd.cli.output.tables import LONGEST, Column, table_lines
from pyosd.commands.pool_status import decode_pool
from tests.cli.test_output import on_terminal_of

PROGRAM = """
import sys
from pyosd.cli.output.tables import colour_wanted, print_records
from iosd_host.cli import manager as manager_verbs
from iosd_host.cli import pool as pool_verbs
POOL = {"mode": "running", "min": 1, "max": 8, "active": 4, "busy": 3, "warm_spare": 5, "ready": 2,
        "warming": 0, "queued": 12, "oldest": 0.25, "auto": True, "ended": 4321,
        "why": "12 jobs wait 250 ms, so as many slots as would end them in a second"}
ONE = {"weight": 1, "running": 3, "queued": 990, "finished": 10_000, "refused": 17, "accepted": 11_010,
       "queue_seconds": 7322.5, "run_seconds": 123.4, "cpu_seconds": 99.0, "at_once": 0, "queue": 0,
       "bytes_read": 1 << 30, "bytes_written": 4096, "calls": 1234567}
CHANGE = {"at": 1760000000000, "by": "root (local)", "pool": "default", "what": "pool.set", "id": 7,
          "target": "iqn.2026-11.iosd:target", "was": {"max": "4"}, "is": {"max": "6"},
          "why": "more users in the afternoon, says the head of the department"}
LOAD = {"at": 1760000000000, "busy": 3, "active": 4, "queued": 12, "oldest": 0.25}
TABLES = {
    "status": (manager_verbs.STATUS_COLUMNS, [
        {"id": "default", "name": "default", **POOL},
        {"id": "numpy", "name": "numpy-with-a-long-name", **POOL, "mode": "draining", "auto": False,
         "why": ""}]),
    "usage": (pool_verbs.USAGE_COLUMNS, [
        {"id": "alice", **ONE},
        {"id": "iqn.1993-08.org.debian:01:4ad2e5a3b1c (10.0.0.17, not verified)", **ONE, "weight": 30}]),
    "changes": (manager_verbs.CHANGE_COLUMNS, [CHANGE, CHANGE | {
        "by": "policy", "what": "policy", "was": {"active": 2}, "is": {"active": 4}, "pool": None}]),
    "history": (pool_verbs.HISTORY_COLUMNS, [{"id": "1", "pool": "default", **LOAD}]),
}
for columns, rows in TABLES.values():
    print_records(rows, columns, colour=colour_wanted("auto", sys.stdout), output=sys.argv[1],
                  schema="x/1", name="rows")
    print()
"""

GOLDEN = """\
POOL               MODE      BUSY  ACTIVE  BOUNDS  READY  QUEUED    OLDEST  AUTO
default            running      3       4     1-8      2      12  250.0 ms  yes
numpy-with-a-lon…  draining     3       4     1-8      2      12  250.0 ms  no

PRINCIPAL                WEIGHT  RUN  QUEUE  ENDED  REFUSED   WAITED   RAN   CPU
alice                         1    3    990  10000       17  2:02:02  2:03  1:39
iqn.1993-08.org.debian…      30    3    990  10000       17  2:02:02  2:03  1:39

WHEN            WHO           POOL     WHAT      CHANGE         WHY
10-09 08:53:20  root (local)  default  pool.set  max 4 -> 6     more users in t…
10-09 08:53:20  policy        -        policy    active 2 -> 4  more users in t…

WHEN                 POOL     BUSY  ACTIVE  QUEUED    OLDEST
2025-10-09 08:53:20  default  3.00       4      12  250.0 ms

"""


def test_tables_at_80_columns() -> None:
    shown = on_terminal_of(PROGRAM, 80, "table", NO_COLOR="1", TZ="UTC")
    assert shown == GOLDEN and max(map(len, shown.splitlines())) <= 80


def test_nothing_is_cut_on_a_pipe_and_colour_is_not_the_only_sign() -> None:
    words = [sys.executable, "-c", PROGRAM, "wide"]
    wide = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout
    assert "numpy-with-a-long-name" in wide and "…" not in wide and "\x1b" not in wide
    assert (
        "4ad2e5a3b1c (10.0.0.17, not verified)" in wide
        and "says the head of the department" in wide
    )
    columns = [each for each in manager_verbs.STATUS_COLUMNS if each.header == "MODE"]
    for mode, shade in (("running", 32), ("draining", 33)):
        assert (
            table_lines(columns, [{"mode": mode}], colour=True)[1] == f"\x1b[{shade}m{mode}\x1b[0m"
        )


def test_what_a_pool_does() -> None:
    line = "a state=serving mode={} min=1 max=4 active=2 spare=1 busy=1 ready=0 queued=3 queue=9 "
    line += "idle_timeout=300000000 reuse=never engine=python set=-"
    found = {
        mode: pool.record_of_pool(decode_pool(line.format(mode)))
        for mode in ("running", "paused", "draining")
    }
    assert [pool.state_of(each) for each in found.values()] == ["serving", "paused", "draining"]
    assert found["paused"]["mode"] == "paused" and found["paused"]["idle_timeout"] == 300
    lines = [*pool.lines_of(found["draining"])]
    assert lines[0] == "a: serving, draining: it takes no more jobs, and runs those it has"
    assert "after 5:00 without a job it keeps 1 sandbox" in lines
    assert top.pool_words(found["paused"]) == "a paused 1/2 of 4, 3 queued"
    assert top.pool_words(found["running"] | {"active": 4}) == "a 1/4, 3 queued"


def test_a_change_in_words() -> None:
    assert differences({"max": "4", "min": "1"}, {"max": "6", "min": "1"}) == (
        "max 4 -> 6, min is 1 already"
    )
    assert differences({"active": "3"}, {"active": None}) == "active 3 -> as the load needs"
    assert differences({}, {}) == "done" and differences(None, None) == "done"
    for was, now, note in (
        ({"max": "4"}, {"max": "6"}, "takes effect as jobs arrive"),
        ({"max": "4"}, {"max": "4"}, ""),
        ({"active": "4"}, {"active": "2"}, "running jobs continue to their end"),
        ({"active": "4"}, {"active": None}, ""),
        ({"limits.mem": "1GiB"}, {"limits.mem": "2GiB"}, "for jobs that come from now on"),
        ({"mode": "running"}, {"mode": "paused"}, "running jobs continue, others wait"),
    ):
        assert note_of(was, now) == note
    assert target_name("iscsi://host:3260/iqn.2026-11.iosd:target/1") == "iqn.2026-11.iosd:target"
    assert target_name("iscsi://host/iqn.2026-11.iosd:target") == "iqn.2026-11.iosd:target"
    assert (target_name("lab"), target_name(None)) == ("lab", None)


def test_a_figure_that_a_principal_lacks() -> None:
    """That of functions of hooks, for example: it has no weight of its own."""
    row = {"id": "hook:1/10008", "weight": None}
    assert table_lines(pool_verbs.USAGE_COLUMNS[:2], [row])[1].split() == ["hook:1/10008", "-"]


def test_a_long_text_on_a_pipe_moves_its_own_line_alone() -> None:
    columns = (
        Column("VALUE", lambda row: row["value"], shrink=True),
        Column("NAME", lambda _: "n"),
    )
    long = "x" * 5 * LONGEST
    head, short, whole = table_lines(columns, [{"value": "a"}, {"value": long}])
    assert len(short) == LONGEST + 3 and head.index("NAME") == short.index("n")
    assert whole == f"{long}  n"

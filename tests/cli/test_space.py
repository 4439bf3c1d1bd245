# SPDX-License-Identifier: GPL-2.0-or-later
"""`osd target df`: what it shows is what there is."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.serving import Serving

pytestmark = pytest.mark.tgtd

QUOTA = 5 << 20


def space(osd: Run) -> dict[str, Any]:
    return dict(json.loads(osd("target", "df", "--partitions", "-o", "json").stdout))


def test_df(osd: Run, serving: Serving, pid: str) -> None:
    before = space(osd)
    osd("obj", "write", pid, data=bytes(3000))
    quota = ("obj", "attr", "set", pid, "0x30000002/0x10001", QUOTA)
    assert f"--int stores {QUOTA} as a number" in osd(*quota, code=1).stderr
    osd(*quota, "--int")
    after = space(osd)
    assert after["schema"] == "iosd.space/1"
    assert after["objects"] == before["objects"] + 1
    assert after["data_bytes"] == before["data_bytes"] + 3000
    assert after["used_bytes"] >= before["used_bytes"] + 3000
    assert 0 < after["free_bytes"] <= after["capacity_bytes"] - after["used_bytes"]
    [main] = after["devices"]
    found = os.statvfs(serving.data)
    assert main["id"] == "main"
    assert main["total_bytes"] <= found.f_blocks * found.f_frsize
    assert main["used_bytes"] == main["total_bytes"] - main["free_bytes"]
    assert main["data_bytes"] == after["data_bytes"]
    [mine] = [row for row in after["partition_list"] if row["id"] == pid]
    assert (mine["total_bytes"], mine["objects"], mine["data_bytes"]) == (QUOTA, 1, 3000)
    assert mine["free_bytes"] == QUOTA - mine["used_bytes"]
    other = osd("part", "create").stdout.strip()
    [without] = [row for row in space(osd)["partition_list"] if row["id"] == other]
    assert without["total_bytes"] is None


def test_df_for_people(osd: Run, pid: str) -> None:
    lines = osd("target", "df").stdout.splitlines()
    assert lines[0].split() == ["WHERE", "SIZE", "USED", "FREE", "USE%", "DATA", "OBJECTS", "NAME"]
    assert [line.split()[0] for line in lines[1:]] == ["main", "store"]
    assert osd("target", "df", "--partitions", "-o", "id").stdout.split()[:2] == ["main", "store"]
    assert pid in osd("target", "df", "--partitions", "--no-header").stdout

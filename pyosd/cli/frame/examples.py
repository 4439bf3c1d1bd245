# SPDX-License-Identifier: GPL-2.0-or-later
"""The examples below --help, by verb."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

__all__ = ["EXAMPLES"]

EXAMPLES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "osd exec": (
            "osd exec --zone 0x10000 count.py -- --column 3",
            "osd exec --limit-mem 256MiB --limit-wall 1h30m --no-wait train.py",
            "osd exec --array 0-99%8 --retries 3 --follow part.py",
        ),
        "osd run": ("osd run --zone 0x10000 count.py -- --column 3",),
        "osd submit": ("osd submit --limit-wall 1h30m train.py", "osd submit --array 0-99 part.py"),
        "osd ps": ("osd ps --state running", "osd ps --mine --since 1h -o json"),
        "osd top": ("osd top", "osd top --once -o json"),
        "osd put": ("osd put *.csv 0x10000", "osd put --prefix 2026/ logs/ 0x10000"),
        "osd get": ("osd get 0x10000 results/", "osd get --name 'logs/*.gz' 0x10000 ."),
        "osd job ls": (
            "osd job ls --state failed --since 1h",
            "osd job ls --pool default --tail 20",
        ),
        "osd job wait": ("osd job wait 0x10000/0x10001", "osd job wait --timeout 10min train.py"),
        "osd job logs": (
            "osd job logs -f 0x10000/0x10001",
            "osd job logs --stderr --tail 20 train.py",
        ),
        "osd job result": (
            "osd job result 0x10000/0x10001",
            "osd job result --raw 0x10000/0x10001 > image.png",
        ),
        "osd job kill": ("osd job kill 0x10000/0x10001", "osd job kill '0x10000/0x10001[7]'"),
        "osd job why": ("osd job why 0x10000/0x10001",),
        "osd job retry": ("osd job retry --failed 0x10000/0x10001",),
        "osd part create": ("osd part create --name photos", "osd part create 0x20000"),
        "osd mkdir": ("osd mkdir /photos", "osd mkdir -p /photos/2024/may"),
        "osd mv": ("osd mv /photos/a.jpg /photos/2024", "osd mv /0x10000 /photos"),
        "osd view create": ("osd view create /errors --of /logs 'lines:contains=ERROR'",),
        "osd part ls": ("osd part ls", "osd part ls -o json"),
        "osd part rm": ("osd part rm --contents --yes 0x10000",),
        "osd obj create": ("osd obj create 0x10000", "osd obj create -n 10 0x10000"),
        "osd obj ls": ("osd obj ls 0x10000", "osd obj ls -o id 0x10000"),
        "osd obj read": (
            "osd obj read 0x10000/0x10001 > copy.csv",
            "osd obj read --offset 1MiB --length 4KiB 0x10000/0x10001",
        ),
        "osd obj write": (
            "osd obj write 0x10000/0x10001 data.csv",
            "gzip -d < data.gz | osd obj write 0x10000/0x10001",
        ),
        "osd obj find": ("osd obj find 0x10000 '1/9 = data.csv'",),
        "osd obj attr set": ("osd obj attr set 0x10000/0x10001 1/9 data.csv",),
        "osd pool ls": ("osd pool ls",),
        "osd pool set": ("osd pool set default max=8", "osd pool set science limits.mem=1GiB"),
        "osd pool drain": ("osd pool drain --wait science",),
        "osd target info": (
            "osd target info --target iscsi://127.0.0.1/iqn.2026-11.iosd:target/1",
        ),
        "osd target check": ("osd target check --data /var/lib/iosd/store",),
        "osd manager status": ("osd manager status",),
    }
)

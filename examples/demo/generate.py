# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes a log as nfsdump prints it, of the size the iOSD paper worked on (section VI.C).

The same seed gives the same bytes everywhere.  Users and operations are drawn with weights, so that
a few users make most of the requests; lines that look almost like a request (replies, messages that
nfsdump could not parse, names that contain a request) are there to be told apart.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

__all__ = ["LINES", "SEED", "log_lines", "write_log"]

LINES = 503_937
SEED = 2009
USERS = 120

# number and name of NFS version 3 procedures, and how often each is asked for
OPERATIONS = (
    (1, "getattr", 300),
    (2, "setattr", 18),
    (3, "lookup", 190),
    (4, "access", 130),
    (5, "readlink", 6),
    (6, "read", 180),
    (7, "write", 90),
    (8, "create", 14),
    (9, "mkdir", 2),
    (10, "symlink", 1),
    (12, "remove", 12),
    (13, "rmdir", 1),
    (14, "rename", 5),
    (15, "link", 1),
    (16, "readdir", 9),
    (17, "readdirp", 16),
    (18, "fsstat", 8),
    (19, "fsinfo", 2),
    (21, "commit", 15),
)
NAMES = ("a.out", "Makefile", "core", "run.log", "input.dat", "C3 7 write euid 0", "paper.tex~")
START = 1_003_720_801.0
MEAN_GAP_S = 900 / LINES  # fifteen minutes in all


def call_arguments(draw: random.Random, name: str) -> str:
    """What a request of that name says about itself, behind the file handle."""
    if name in ("read", "write"):
        text = f" off {draw.randrange(0, 1 << 26) & ~0xFFF:x} count 2000"
        return text + (" stable U" if name == "write" else "")
    if name in ("lookup", "create", "mkdir", "symlink", "remove", "rmdir", "rename", "link"):
        return f' name "{draw.choice(NAMES)}"'
    if name in ("readdir", "readdirp"):
        return f" cookie {draw.randrange(1 << 16):x} verf 0 count 1000"
    return ""


def log_lines(count: int = LINES, seed: int = SEED) -> Iterator[str]:
    """Yield lines, each with its newline, about 194 bytes on average."""
    draw = random.Random(seed)
    weights = [weight for _, _, weight in OPERATIONS]
    users = [0, *draw.sample(range(500, 4000), USERS - 1)]
    user_weights = [1 / (rank + 1) for rank in range(USERS)]
    clients = [f"{number:02x}.{draw.randrange(600, 1024):04x}" for number in range(0x30, 0x70)]
    files = [f"{draw.getrandbits(256):064x}" for _ in range(2000)]
    now = START
    while True:
        batch = draw.choices(OPERATIONS, weights, k=4096)
        owners = draw.choices(users, user_weights, k=4096)
        for (number, name, _), user in zip(batch, owners, strict=True):
            now += draw.expovariate(1 / MEAN_GAP_S)
            client, transaction = draw.choice(clients), draw.getrandbits(32)
            handle = draw.choice(files)
            head = f"U C3 {transaction:08x} {number:x} {name} fh {handle}"
            call = (
                f"{now:.6f} {client} 20.0801 {head}{call_arguments(draw, name)} "
                f"euid {user:x} egid {user & 0xFF:x} con = 82 len = {draw.randrange(110, 190)}\n"
            )
            size, inode = draw.getrandbits(20), draw.getrandbits(32)
            reply = (
                f"{now + 0.0002:.6f} 20.0801 {client} U R3 {transaction:08x} {number:x} {name} OK "
                f"ftype 1 mode 1a4 nlink 1 uid {user:x} gid {user & 0xFF:x} size {size:x} "
                f"used {size | 0x3FFF:x} fsid 6189 fileid {inode:x} mtime {now - 86400:.6f} "
                f"ctime {now - 86400:.6f} status=0 con = 70 len = 128\n"
            )
            yield call
            count -= 1
            if count > 0 and draw.random() < 0.985:  # the sniffer loses some replies
                yield reply
                count -= 1
            if count > 0 and draw.random() < 0.002:
                yield f"{now:.6f} {client} 20.0801 U short packet, skipped\n"
                count -= 1
            if count <= 0:
                return


def write_log(path: Path, count: int = LINES, seed: int = SEED) -> int:
    """Write the log; return its size in bytes."""
    with path.open("w", encoding="ascii", newline="\n", buffering=1 << 20) as file:
        file.writelines(log_lines(count, seed))
    return path.stat().st_size

# SPDX-License-Identifier: GPL-2.0-or-later
"""The computations of bench/offload_model.py, beside the data and at the client: `compute(blocks)`
of each."""

from __future__ import annotations

KERNELS = {
    "lines": """
def compute(blocks):
    return sum(bytes(block).count(b"\\n") for block in blocks)
""",
    "sha256": """
import hashlib
def compute(blocks):
    digest = hashlib.sha256()
    for block in blocks:
        digest.update(block)
    return digest.hexdigest()
""",
    "log": """
import re
def compute(blocks):
    pattern = re.compile(rb"\\S+ \\S+ \\S+ [UT] C3 [0-9a-f]+ [0-9a-f]+ (\\w+) .* euid ([0-9a-f]+) egid ")
    users, rest = {}, b""
    for block in blocks:
        *lines, rest = (rest + block).split(b"\\n")
        for request in filter(None, map(pattern.match, lines)):
            user = request[2]
            users[user] = users.get(user, 0) + 1
    return sorted(users.values())
""",
    "words": """
import collections
def compute(blocks):
    lengths = collections.Counter()
    for block in blocks:
        lengths.update(map(len, bytes(block).split()))
    return sorted(list(pair) for pair in lengths.items())
""",
    "compress": """
import zlib
def compute(blocks):
    packer, length = zlib.compressobj(1), 0
    for block in blocks:
        length += len(packer.compress(block))
    return length + len(packer.flush())
""",
}
"""Python that both ends run, by weight."""

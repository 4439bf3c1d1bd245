# SPDX-License-Identifier: GPL-2.0-or-later
"""Listing 1 of the iOSD paper, as a function.  It makes a partition and a user object, uses both, and
removes them.

Access: write.  Zone: the root.  Result: the lines that it has read.
"""

import osd


def main(args):
    """The entry point."""
    p = osd.partition(65536, 0)
    if not p.exists():
        p.create()
    p.get()

    u = osd.userobject(65536, 65536)
    if not u.exists():
        u.create()
    u.get()

    u.setattr([(10, 3, "attribute"), (11, 3, 0xDEADBEEF)])
    print(u.getattr([(10, 3), (11, 3)]))

    u.data.write("Hello World\n")
    lines = [line.decode() for line in u.data]

    u.put()
    u.remove()
    p.put()
    p.remove()
    return lines

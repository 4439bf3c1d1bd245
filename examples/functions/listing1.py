# SPDX-License-Identifier: GPL-2.0-or-later
"""Listing 1 of the iOSD paper, as a function.  It makes a partition and a user object, uses both, and
removes them.  The paper's script has partition 0x10000, which may be yours: the function takes a free id.

Access: write.  Zone: the root.  Result: the lines that it has read.
"""

from itertools import count

import osd


def main(args):
    """The entry point."""
    pid = next(each for each in count(65536) if not osd.partition(each, 0).exists())
    p = osd.partition(pid, 0)
    p.create()
    p.get()

    u = osd.userobject(pid, 65536)
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

# SPDX-License-Identifier: GPL-2.0-or-later
"""A tour of the client: objects, attributes, a job.  Usage: python3 client.py iscsi://HOST/NAME/LUN"""

from __future__ import annotations

import sys

import pyosd
from pyosd import AttributeId, AttributeLists, AttributeValue, Limits, Page, requests

TITLE = AttributeId(Page.APPLICATION, 1)


def count_words(object_id: int) -> dict[str, int]:
    """Run beside the data: nothing of the object crosses the network."""
    import collections

    import osd

    text = osd.userobject(osd.zone.partition_id, object_id).data.read().decode()
    return dict(collections.Counter(text.split()).most_common(3))


def main(url: str) -> None:
    """Make a partition, store a text with a title, count its words in place, clean up."""
    with pyosd.connect(url) as target:
        partition = target.create_partition()
        text = target.create_and_write(
            partition,
            b"a rose is a rose is a rose",
            attributes=[AttributeValue(TITLE.page, TITLE.number, b"Sacred Emily")],
        )
        # Any command can set and get attributes: here a READ brings the title along.
        title = AttributeLists(get=(TITLE,))
        reply = target.call(requests.read(text, 0, 100, attributes=title))
        print(f"{reply.attribute(TITLE).text}: {bytes(reply.data).decode()}")

        zone = target.partition(partition)
        job = target.exec(count_words, zone=zone, args=[text.object_id], limits=Limits(wall="10s"))
        print(job.result(timeout=30))
        print(f"{job.status().state} after {job.status().run_time:.3f} s")

        target.remove_partition(partition, contents=True)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])

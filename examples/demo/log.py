# SPDX-License-Identifier: GPL-2.0-or-later
"""A job over an nfsdump log: requests per user and per operation (iOSD paper, section VI.C).

Arguments: partition and object id of the log.  Runs beside the data and at the client unchanged.
"""

import re

import osd

# time, source, destination, transport, "C3": a call of NFS version 3, transaction, number, name
REQUEST = re.compile(rb"\S+ \S+ \S+ [UT] C3 [0-9a-f]+ [0-9a-f]+ (\w+) .* euid ([0-9a-f]+) egid ")
REPORT_EVERY = 20_000  # lines

partition_id, object_id = (int(argument, 0) for argument in osd.args)
log = osd.userobject(partition_id, object_id)
log.get()
total = log.length()

users: dict[bytes, int] = {}
operations: dict[bytes, int] = {}
done = 0
for number, line in enumerate(log.data, 1):
    request = REQUEST.match(line)
    if request:
        operation, user = request.groups()
        users[user] = users.get(user, 0) + 1
        operations[operation] = operations.get(operation, 0) + 1
    done += len(line)
    if number % REPORT_EVERY == 0:
        osd.progress(done / total, f"{number} lines")
log.put()


def print_table(what: str, counts: dict[bytes, int]) -> None:
    """Print counts, largest first, equal ones in the order of their names."""
    for key, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        print(what, key.decode(), count)


print_table("user", users)
print_table("operation", operations)

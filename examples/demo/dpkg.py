# SPDX-License-Identifier: GPL-2.0-or-later
"""A job over files of a Debian machine: its packages by section and size, and installs per day.

Arguments: partition id, object id of the status file, object id of the log.
"""

import osd

partition_id, status_id, log_id = (int(argument, 0) for argument in osd.args)

packages: dict[str, int] = {}
kibibytes: dict[str, int] = {}
fields: dict[bytes, bytes] = {}


def count(paragraph: dict[bytes, bytes]) -> None:
    """Count one paragraph of the status file, if its package is installed."""
    if not paragraph.get(b"Status", b"").endswith(b" installed"):
        return
    section = paragraph.get(b"Section", b"unknown").decode().rpartition("/")[2]
    packages[section] = packages.get(section, 0) + 1
    kibibytes[section] = kibibytes.get(section, 0) + int(paragraph.get(b"Installed-Size", b"0"))


for line in osd.userobject(partition_id, status_id).data:
    if line == b"\n":
        count(fields)
        fields = {}
    elif line[:1] not in b" \t":
        name, _, value = line.partition(b":")
        fields[name] = value.strip()
count(fields)

installs: dict[str, int] = {}
for line in osd.userobject(partition_id, log_id).data:
    words = line.split()
    if len(words) > 2 and words[2] == b"install":
        day = words[0].decode()
        installs[day] = installs.get(day, 0) + 1

for section in sorted(packages, key=lambda each: (-kibibytes[each], each)):
    print("section", section, packages[section], kibibytes[section])
for day in sorted(installs):
    print("day", day, installs[day])

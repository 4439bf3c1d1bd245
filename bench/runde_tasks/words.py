# SPDX-License-Identifier: GPL-2.0-or-later
"""How often a byte occurs in an object, a space say (Runde's wordcount, section 2.6.3).

Arguments: partition, object.  Runs beside the data and at the client unchanged.
"""

import osd

CHUNK = 4 << 20

source = osd.userobject(*(int(argument, 0) for argument in osd.args)).data
count = 0
while chunk := source.read(CHUNK):
    count += chunk.count(b" ")
print(count)

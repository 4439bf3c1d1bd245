# SPDX-License-Identifier: GPL-2.0-or-later
"""The lines of an object with "the" in them, into another object (Runde's grep, section 2.6.3).

Arguments: partition, object, object for the result.  Prints how many there are.  Runs beside the data
and at the client unchanged.
"""

import osd

partition_id, source_id, result_id = (int(argument, 0) for argument in osd.args)
lines = [found.line for found in osd.userobject(partition_id, source_id).grep("the", literal=True)]
osd.userobject(partition_id, result_id).data.write(b"\n".join(lines))
print(len(lines))

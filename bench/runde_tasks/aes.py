# SPDX-License-Identifier: GPL-2.0-or-later
"""AES-256 in CBC mode over an object, into another, 4 MiB at a time (Runde, section 2.6.2).

Arguments: partition, object, object for the result, encrypt or decrypt.  Prints the last block: one of
encrypted data depends on all before it.  Runs beside the data and at the client unchanged.
"""

import osd
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

CHUNK, KEY, FIRST = 4 << 20, bytes(range(32)), bytes(16)

partition_id, source_id, result_id = (int(argument, 0) for argument in osd.args[:3])
source = osd.userobject(partition_id, source_id).data
result = osd.userobject(partition_id, result_id).data
cipher = Cipher(algorithms.AES(KEY), modes.CBC(FIRST))
step = cipher.encryptor() if osd.args[3] == "encrypt" else cipher.decryptor()
done = b""
while chunk := source.read(CHUNK):
    done = step.update(chunk)
    result.write(done)
print(done[-len(FIRST) :].hex())

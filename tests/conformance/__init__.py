# SPDX-License-Identifier: GPL-2.0-or-later
"""A conformance suite for any T10 OSD-2 target: every command x every condition, over the wire.

It takes a URL and knows nothing else about the target: CDBs, lists and expected answers are typed
from the standard's fields in this package, and pyosd serves as the iSCSI initiator only (raw CDB,
Data-Out and Data-In length in; status, sense and Data-In out).  How to run and read it:
docs/conformance.md.
"""

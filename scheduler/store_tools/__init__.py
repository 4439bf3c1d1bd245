# SPDX-License-Identifier: GPL-2.0-or-later
"""`osd target check`, `repair` and `dump`: a closed store examined, mended and printed.

From the bottom: format.py, superblock.py and job_format.py know the bytes, bdb.py the database,
folders.py the directories and their locks, store.py one opened store; check.py and its sections find
problems, repair.py mends them, dump.py prints; commands.py is what people type.
"""

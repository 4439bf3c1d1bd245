# SPDX-License-Identifier: GPL-2.0-or-later
"""Tools for a store that no target serves: check, repair, dump, back up, restore, calibrate.

format/ has the bytes on disk.  opening/ has the database, the directories and their locks, and the opened
store.  check/ finds problems, repair/ repairs them, backup/ copies stores.  The commands are in cli/.
"""

# SPDX-License-Identifier: GPL-2.0-or-later
"""Opens a store that no target serves: its folders, its database, its records."""

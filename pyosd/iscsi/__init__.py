# SPDX-License-Identifier: GPL-2.0-or-later
"""Sessions with a target over iSCSI: login, connection, reconnecting."""

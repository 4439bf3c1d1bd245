# SPDX-License-Identifier: GPL-2.0-or-later
"""The database: its records, their encryption at rest, and the audit log."""

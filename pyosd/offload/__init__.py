# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs scripts near the data or at the client: what both cost, the process at the client, the decision."""

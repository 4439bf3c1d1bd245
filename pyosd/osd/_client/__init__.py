# SPDX-License-Identifier: GPL-2.0-or-later
"""The transport of a script at a client: calls become commands of a session."""

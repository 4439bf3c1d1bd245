# SPDX-License-Identifier: GPL-2.0-or-later
"""The common part of our HTTP servers: crowd.py limits connections, body.py reads the body of a request."""

# SPDX-License-Identifier: GPL-2.0-or-later
"""What all our HTTP servers share: crowd.py limits connections, body.py reads the body of a request."""

# SPDX-License-Identifier: GPL-2.0-or-later
"""Reductionist's API: reductions of arrays that lie in objects, computed in the target.

checked.py: requests as JSON, checked.  reduce.py: the function that computes, which the target stores.
server.py: HTTP.
"""

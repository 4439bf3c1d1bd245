# SPDX-License-Identifier: GPL-2.0-or-later
"""The Python half of the engine `python` (sandbox/python/python_engine.c): runs scripts in sandboxes."""

# SPDX-License-Identifier: GPL-2.0-or-later
"""What runs beside the target: its supervisor (supervise.py) and the resource manager (manager.py)."""

# SPDX-License-Identifier: GPL-2.0-or-later
"""Files of a target for other programs' interfaces."""

# SPDX-License-Identifier: GPL-2.0-or-later
from pyosd.osd import *  # noqa: F403 -- it is that package
from pyosd.osd import __all__ as __all__

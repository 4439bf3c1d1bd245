# SPDX-License-Identifier: GPL-2.0-or-later
"""What `import osd` finds at a client: the package scripts import, one and the same as pyosd.osd.

Installed as the package osd.  A sandbox loads pyosd/osd itself under that name.
"""

import sys

import pyosd.osd

sys.modules[__name__] = pyosd.osd

# SPDX-License-Identifier: GPL-2.0-or-later
"""The package `osd` at a client. It is the same as pyosd.osd, which scripts import.

Installed as the package osd.  A sandbox loads pyosd/osd itself under that name.
"""

import sys

import pyosd.osd

sys.modules[__name__] = pyosd.osd

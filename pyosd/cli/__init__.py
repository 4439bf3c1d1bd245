# SPDX-License-Identifier: GPL-2.0-or-later
"""The command line program ``osd``: one file per noun; each verb parses, calls the API, prints."""

from pyosd.cli.main import main

__all__ = ["main"]

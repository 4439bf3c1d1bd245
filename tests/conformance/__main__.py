# SPDX-License-Identifier: GPL-2.0-or-later
"""The program: `python -m tests.conformance URL`; what its options do is in docs/conformance.md."""

from __future__ import annotations

import sys

from tests.conformance.program import main

if __name__ == "__main__":
    sys.exit(main())

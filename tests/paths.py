"""Folders that tests read: the checkout, its templates, and real data where they lie."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).parents[1]
TEMPLATES = ROOT / "data" / "templates"
REAL_DATA = Path(os.environ.get("SCANT_REAL_DATA", ROOT.parent / "shared" / "data"))

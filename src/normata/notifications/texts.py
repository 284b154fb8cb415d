"""The texts of notifications: a JSON object of each key with its text, in which ``{label}`` stands for a parameter."""

from __future__ import annotations

from pathlib import Path

ENGLISH = Path(__file__).parent / "texts.en.json"

"""What the command line is told when something cannot be done for a reason that it can pass on."""

from __future__ import annotations


class Refusal(Exception):
    """What was asked cannot be done; the message says why in one sentence, fit for whoever asked."""

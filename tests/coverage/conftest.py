"""What the tests of coverage share."""

from tests.coverage.stating import alpha, beta

__all__ = ["alpha", "beta"]

"""What the tests of adoption share."""

from tests.coverage.stating import alpha, beta

__all__ = ["alpha", "beta"]

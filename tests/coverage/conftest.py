"""What the tests of coverage share."""

from tests.coverage.assessing import alpha, beta

__all__ = ["alpha", "beta"]

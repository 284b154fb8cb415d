"""What the tests of adoption share."""

from tests.coverage.assessing import alpha, beta

__all__ = ["alpha", "beta"]

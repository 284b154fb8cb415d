"""Attacks on a running service, while honest clients use it."""

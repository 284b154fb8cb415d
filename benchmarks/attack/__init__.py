"""Attacks on a running service, beside clients that only want their work done."""

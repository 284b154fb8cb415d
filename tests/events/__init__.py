"""Tests of events, their history and their seals."""

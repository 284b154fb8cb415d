"""Tests of erasing a person."""

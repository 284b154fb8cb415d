"""Normata: a self-hosted compliance service."""

from importlib.metadata import version

__version__ = version("normata")

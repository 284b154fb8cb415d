"""Normata: a self-hosted compliance service."""

"""Retention: removing rows that are no longer needed after the number of days in the settings."""

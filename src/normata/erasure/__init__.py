"""Removing a person's name and email address from all data (GDPR, article 17)."""

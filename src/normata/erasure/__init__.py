"""Taking a person's name and e-mail address out of everything (GDPR, article 17)."""

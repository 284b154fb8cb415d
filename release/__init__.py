"""What ``make release`` runs."""

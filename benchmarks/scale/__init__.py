"""Times and query plans of lists, restores and sign-ins in large databases."""

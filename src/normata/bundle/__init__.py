"""Data in and out: organizations, catalogs and records as one JSON document in the shapes of the wire."""

"""Loading and dumping: organizations, catalogs and records as one JSON document in the shapes of the wire."""

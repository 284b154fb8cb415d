"""Frameworks and what an organization says of them as documents of OSCAL (NIST)."""

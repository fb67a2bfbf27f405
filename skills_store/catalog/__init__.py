"""Versions found and compared by what they say of themselves."""

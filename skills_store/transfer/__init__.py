"""Copies, exports and imports of versions. They never change a byte of a version."""

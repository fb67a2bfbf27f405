"""How a version leaves a store and enters another: copies, exports, imports. Never changes a byte
of it.
"""

"""How a store lies on a disk: blobs by digest, one record for each version, one file for each move
of an alias.

Whatever makes something exist is created once and never changed; every other file is garbage or a
cache.
"""

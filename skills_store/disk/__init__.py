"""A store on a disk: blobs by digest, one record for each version, one file for each move of an
alias.

Files that create a version, move, deletion, lease or signature are written once and never changed;
every other file is garbage or a cache.
"""

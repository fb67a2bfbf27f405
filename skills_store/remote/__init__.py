"""A store in a bucket, behind a cache of the same layout. It only grows: no object is ever replaced
or removed.
"""

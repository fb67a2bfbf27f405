"""The subcommands of `python -m skills_store`, a file each (registry.py). They call the store and
print.
"""

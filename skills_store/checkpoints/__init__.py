"""Peers' checkpoints -> published skill libraries. torch only reads the file; what it held is
checked, then drawn anew.
"""

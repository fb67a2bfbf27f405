"""What `python -m skills_store` understands, a file for each group of commands. They print; the store decides."""

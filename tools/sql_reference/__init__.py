"""Writes the reference of SQL in ``docs/sql``: statements, functions, and what stands in WITH and SET.

Syntax comes from the docstrings of the statements, functions from the registry, names and defaults from the code that
reads them. All examples are carried out, on a server in this process or by the test driver, and what they print is what
the pages show.
"""

"""Fuzzing with a budget: ``python -m tests.fuzz --seconds N``.

A part is a context manager that gives a function for one trial; the trial gets a source of random numbers of its own,
so what it finds is found again by ``--part``, ``--seed`` and ``--trial``.

| part | what is disturbed | what must hold |
|---|---|---|
| sql | text of statements | a statement or an error with its place; what is written again means the same |
| serdes | records of every serde and SQL format | a value or ``DeserializationError``; what was written is read again |
| http | requests to an application | answers that the description names |
| sql_http | requests to the SQL server | no failure of the server; errors of one shape; nothing stays open |
| websockets | sockets of the SQL server | a close code for everything; nothing stays open |
| log_files | bytes of the embedded log's files | see ``tests.fuzz.log_files`` |
"""

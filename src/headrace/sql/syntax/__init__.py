"""Text to statements: tokens and grammar (sqlglot with a dialect of ours), and the values they become.

| module | |
|---|---|
| ``parser``, ``token_reader``, ``dialect`` | from text to statements |
| ``command_grammar``, ``query_grammar``, ``source_grammar`` | the grammar of statements |
| ``expression_grammar``, ``type_grammar``, ``units`` | the grammar of expressions, types and units of time |
| ``statements``, ``nodes`` | statements and expressions as values |
| ``formatter``, ``variables`` | values to text again; ``${name}`` |
"""

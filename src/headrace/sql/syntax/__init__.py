"""Text to statements: tokens and grammar (sqlglot with a dialect of ours), and the values they become."""

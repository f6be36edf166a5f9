"""Functions and processors that run per record: a plan gives them to the DSL, and all of them pickle."""

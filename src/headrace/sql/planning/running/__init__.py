"""What runs per record: the functions and processors that a plan gives to the DSL. All of them pickle."""

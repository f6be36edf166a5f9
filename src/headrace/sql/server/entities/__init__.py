"""The answers to statements, as values; ``to_json`` gives the shape that clients know."""

"""Connectors: what a Connect worker is asked, and what a statement about a connector means to it."""

"""Cases of the HTTP API: statements and queries to a server, and what it has to answer."""

"""HTTP routes of the server, a file for each family of them."""

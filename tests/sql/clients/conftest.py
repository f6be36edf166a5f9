from tests.sql.server.conftest import client, place

__all__ = ["client", "place"]

from tests.sql.server.conftest import client

__all__ = ["client"]

"""HTTP that views, the console and the SQL server share.

| module | |
|---|---|
| ``server``, ``http2`` | the thread that serves an ASGI application, with HTTP/2 as clients of ksqlDB speak it |
| ``security`` | the token, the name of the host, the size of a request, headers for browsers |
| ``tls`` | the certificates that clients accept |
| ``limits``, ``handling`` | limits on clients; handlers with a time limit whose errors become answers |
| ``errors``, ``parameters`` | errors as answers; query parameters, read and checked |
| ``json_values``, ``streaming_response`` | keys and values as JSON; answers without an end |
"""

"""Web server of a running application: health, metrics, topology, and the console in a browser.

| module | |
|---|---|
| ``asgi_application``, ``view_server``, ``openapi``, ``assets`` | what an application serves, or a process of views |
| ``health``, ``console_routes``, ``topic_routes``, ``live_updates`` | addresses, and what is sent once a second |
| ``monitored_application``, ``recorder``, ``history`` | who is looked at, who looks, what is remembered |
| ``stall_detection``, ``node_metrics`` | what is made of it |
| ``dead_letter_queue``, ``dropped_records`` | records that were not processed |
| ``topic_browser``, ``topology_topics``, ``topology_json`` | topics and their records; the graph |

The page itself is in ``static``; ``headrace.http`` has the server.
"""

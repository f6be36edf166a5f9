"""What people see of a running application: health, metrics, its topology, and the console in a browser.

Start with ``application`` (what is served); ``headrace.http`` has the server. ``observed`` is all that is known of who
is looked at; ``recorder`` looks, ``history`` remembers, ``stall`` judges.
"""

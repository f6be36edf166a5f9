"""Web server of a running application: health, metrics, topology, and the console in a browser.

Start with ``application`` (what is served), then ``server`` (the thread that serves it) and ``security``. ``observed``
is all that is known of who is looked at; ``recorder`` looks, ``history`` remembers, ``stall`` judges.
"""

"""The stores of an application over HTTP: keys, ranges and windows, pages, and changes as they happen.

Start with ``routes`` (what can be asked), then ``answering`` (how this process answers) and ``forwarding`` (who is
asked when a partition is elsewhere). ``change_hub`` gives one reader of a changelog to any number of subscribers.
"""

"""The task: topology plus stores plus clocks; a record or a clock tick in, records out.

Hosts (the test driver, Spark) feed tasks and carry away what they wrote; what a record means is decided here.
"""

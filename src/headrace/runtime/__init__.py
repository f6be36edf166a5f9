"""The task: topology plus stores plus clocks; a record or a clock tick in, records out.

Hosts (the test driver, Spark) feed tasks and carry away what they wrote; what a record means is decided here.

| module | |
|---|---|
| ``task``, ``task_state``, ``task_memory``, ``task_clock`` | one task: records in, records out; what it remembers |
| ``global_task`` | the task of global stores |
| ``lowering``, ``stages``, ``waiting_calls`` | nodes to functions; the order of nodes around ``map_batches`` |
| ``queues``, ``tie_heap``, ``merging`` | the order of records: per partition, among partitions, of several senders |
| ``sources``, ``sinks``, ``serde_defaults``, ``output_collector`` | bytes to records, and records to bytes |
| ``context`` | the view that operators and user code have of the task |
| ``error_handling`` | calls of exception handlers, and the dead-letter queue |
| ``punctuation``, ``row_expiry`` | calls and deletions by time |
| ``measures``, ``debug_metrics``, ``late_samples`` | figures of a task |
| ``gc_pause`` | no garbage collection within a batch |
"""

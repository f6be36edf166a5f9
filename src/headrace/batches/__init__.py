"""Micro-batches: their plans, their tasks, and their commits. Nothing here knows of Spark.

| module | what it is about |
|---|---|
| `layout` | the tasks of a topology, their levels and inputs |
| `positions`, `admission`, `planner`, `plan` | what the next micro-batch reads, and when it starts |
| `readiness` | which tasks take part while others are being restored |
| `inputs` | topics of others: their partitions, and whether they are still the same ones |
| `unread_edges` | records of repartition topics that Kafka Streams has left unread |
| `change_plan` | a micro-batch that changes a stopped application |
| `application` | what processes that run tasks need of an application |
| `executor` | `Executor.run(plans) -> outcomes`: the seam to what runs tasks; and tasks in this process |
| `task_runner`, `live_task`, `task_host`, `global_tables` | one task in one process |
| `edges` | records from one task to another, page by page |
| `working_copy`, `restore` | a task's stores on the disk, and how changelogs bring them up to date |
| `standby` | a working copy that follows its changelogs while the task runs elsewhere, or not yet |
| `application_run`, `batch_engine`, `batch_thread` | the life of an application: plan, run, commit, report |
| `loop`, `shared_loop` | tick after tick, for one application or for many in one job |
| `reports`, `restore_events`, `failure_note` | what tasks and micro-batches tell |
| `bounded_input`, `bounded_rows`, `bounded_host`, `bounded_task`, `bounded_run` | backfills: input that ends |
"""

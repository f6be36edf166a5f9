"""Spark as the executor of micro-batches, and the only home of pyspark.

| module | what it is about |
|---|---|
| `engine` | the engine of an application, with a Spark context of its own, or one that many share |
| `executor`, `jobs`, `level` | a job per tick: its stages, what passes between them, the tasks of a slot |
| `payload`, `shipping`, `failures` | how applications get to the workers, and errors back |
| `affinity` | slots run in the process that has their tasks open |
| `assignment`, `placement`, `standby_job`, `cluster` | slots on executors, and copies on others |
| `context`, `masters`, `jvm`, `java`, `scratch`, `cache` | Spark itself: settings, Java, directories |
| `jvm_log`, `jvm_output` | what the JVM has to say, and who sees it |
| `daemon`, `worker_start` | Python workers, and what they are forked from |
| `class_archive`, `later_archive`, `prepare` | the archive that lets the JVM start fast |
"""

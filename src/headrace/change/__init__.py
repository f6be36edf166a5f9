"""Changes to a stopped application, each of them one micro-batch of the commit protocol.

| module | |
|---|---|
| ``stopped_application`` | an application at rest, and the micro-batch that changes it |
| ``changelog_rows`` | rows of changelogs as they lie in the log |
| ``grow`` | more partitions: the procedure |
| ``growth_plan`` | tasks before and after, and what stands in the way |
| ``growth_parts``, ``parallel_work`` | parts of it for any process, and the seam to what runs them |
| ``partition_keys``, ``row_moves`` | where rows have their partition key, and which row goes where |
| ``former_partitions`` | the log as it was before inputs have grown |
| ``snapshot``, ``snapshot_restore`` | a copy of an application under a name, and another one that goes on from it |
| ``verdicts``, ``comparison`` | another topology: what happens to each store and sub-topology |
| ``topology_change``, ``task_records`` | another topology: the procedure; records of the new tasks |
| ``copying`` | rows under other names and serdes |
| ``seeding`` | state, times and positions of a history that is not in the topics |
| ``takeover`` | from Kafka Streams to Headrace and back |
"""

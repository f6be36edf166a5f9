"""Engines: ordered maps of bytes below the stores.

| module | |
|---|---|
| ``engine``, ``changes`` | the seam, and what a batch has changed, as a value |
| ``memory``, ``lmdb``, ``rocksdb`` | committed rows, in memory and on disk |
| ``overlay``, ``lru`` | engines above others: the writes of a batch; only the rows used last |
| ``environment`` | the engines of a task in one directory, written together |
"""

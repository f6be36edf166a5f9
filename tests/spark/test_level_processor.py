from __future__ import annotations

import subprocess
import sys

from pyspark import cloudpickle

from headrace.spark.application import Payload
from headrace.spark.level_processor import LevelProcessor

SEEN = """
import pickle, sys
processor = pickle.load(sys.stdin.buffer)
declared = []

class Handle:
    def getMapState(self, name, key, value):
        declared.append((name, key.simpleString(), value.simpleString()))

processor.init(Handle())
print(declared, [name for name in sys.modules if name.split(".")[0] in ("headrace", "pandas", "lmdb")])
"""


def test_what_a_level_declares_is_seen_without_our_modules() -> None:
    """Spark starts a process for each level to see it; what it imports is waited for at every start."""
    data = cloudpickle.dumps(LevelProcessor(Payload(b"application", "digest"), 0))  # type: ignore[no-untyped-call]
    done = subprocess.run([sys.executable, "-c", SEEN], input=data, capture_output=True, check=True)
    assert done.stdout.decode().strip() == "[('chunks', 'struct<sequence:bigint>', 'struct<data:binary>')] []"

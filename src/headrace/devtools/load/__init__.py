"""Built-in load: streams of records that look like something, always the same for the same seed.

    from headrace.devtools.load import LOADS
    blocks = LOADS["purchases"].blocks(keys=1_000, seed=7)      # endless; lists of (key, value) as bytes

``headrace generate`` writes them to topics; benchmarks and the demo take them from here.
"""

from headrace.devtools.load.kinds import LOADS, Load, Pair
from headrace.devtools.load.stamping import stamped

__all__ = ["LOADS", "Load", "Pair", "stamped"]

"""Lines of words: the input of ``examples/word_count.py``."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from headrace.devtools.load.columns import Column

_TEXT = (
    "the of and to in is you that it he was for on are as with his they at be this have from or one had by word "
    "but not what all were we when your can said there use an each which she do how their if will up other about "
    "out many then them these so some her would make like him into time has look two more write go see number no "
    "way could people my than first water been call who oil its now find long down day did get come made may part "
    "stream table window join record topic river mill wheel channel gate head race stone bank flow spring rain "
    "cloud sea wave tide"
)


def word_lines(keys: int, seed: int, size: int) -> Iterator[list[tuple[bytes | None, bytes]]]:
    """Yields lines of three to nine words out of ``keys``, the first ones more often; records have no key."""
    words = [word.encode() for word in _TEXT.split()[:keys]]
    words += [b"word%d" % number for number in range(len(words), keys)]
    # As in a language, a word is the rarer the further back it stands.
    chosen = Column("word", words, seed=seed, weights=[1 + 1_000_000 // (position + 1) for position in range(keys)])
    lengths = Column("length", range(3, 10), seed=seed)
    while True:
        wanted = lengths.take(size)
        stock = iter(chosen.take(sum(wanted)))
        yield [(None, b" ".join(islice(stock, length))) for length in wanted]

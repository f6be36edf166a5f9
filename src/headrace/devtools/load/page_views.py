"""Page views, and the profiles of those who view: the inputs of ``examples/page_views_by_region.py``."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from headrace.devtools.load.columns import Column

_PAGES = ("index.html", "news.html", "shop.html", "cart.html", "help.html", "about.html", "search.html")
_REGIONS = ("africa", "america", "asia", "europe", "oceania")
_EXPERIENCE = ("beginner", "advanced", "expert")


def page_views(keys: int, seed: int, size: int) -> Iterator[list[tuple[bytes | None, bytes]]]:
    """Yields views of pages by ``keys`` users; the user is the key."""
    viewers = Column("viewer", [user(number) for number in range(keys)], seed=seed)
    pages = Column("page", [f'{{"page":"{page}"}}'.encode() for page in _PAGES], seed=seed, weights=range(7, 0, -1))
    while True:
        yield list(zip(viewers.take(size), pages.take(size), strict=True))


def user_profiles(keys: int, seed: int, size: int) -> Iterator[list[tuple[bytes | None, bytes]]]:
    """Yields the profile of each user in turn; after all of them it begins anew, and some have moved."""
    texts = [
        f'{{"region":"{region}","experience":"{experience}"}}'.encode()
        for region in _REGIONS
        for experience in _EXPERIENCE
    ]
    profiles = Column("profile", texts, seed=seed)
    numbers = count()
    while True:
        users = [user(next(numbers) % keys) for _ in range(size)]
        yield list(zip(users, profiles.take(size), strict=True))


def user(number: int) -> bytes:
    """Returns the key of a user."""
    return b"user-%d" % number

"""Crypto sentiment: what posts say about each cryptocurrency, averaged over ten minutes.

Reposts are dropped. English posts go on as they are, others are translated first (``split``), and both come
together again (``merge``). A post that names several currencies becomes several opinions (``flat_map``),
which are aggregated per currency in tumbling windows. The translator and the judge of moods are toys; in
their place would stand real ones.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta

from headrace import (
    Branched,
    Consumed,
    Grouped,
    Materialized,
    Produced,
    Serdes,
    StreamsBuilder,
    TimeWindows,
    TopologyTestDriver,
)

POSTS = "posts"
SENTIMENT = "crypto-sentiment"
SENTIMENT_STORE = "crypto-sentiment-store"

WINDOWS = TimeWindows.of_size_and_grace(timedelta(minutes=10), grace=timedelta(minutes=1))
CURRENCIES = ("bitcoin", "ethereum")
MOODS = {"love": 1.0, "great": 1.0, "good": 0.5, "risky": -0.5, "bad": -1.0, "hate": -1.0}
DICTIONARY = {"liebe": "love", "hasse": "hate", "gut": "good", "ist": "is", "ich": "i", "me": "i", "encanta": "love"}


@dataclass(frozen=True, slots=True)
class Post:
    text: str
    language: str = "en"
    repost: bool = False

    def words(self) -> list[str]:
        return re.findall(r"\w+", self.text.lower())


@dataclass(frozen=True, slots=True)
class Sentiment:
    opinions: int = 0
    total: float = 0.0

    def add(self, score: float) -> "Sentiment":
        return Sentiment(self.opinions + 1, self.total + score)

    @property
    def average(self) -> float:
        return self.total / self.opinions


STRING, POST = Serdes.string(), Serdes.json(Post)
CURRENCY_IN_WINDOW = Serdes.time_windowed(STRING, WINDOWS.size_ms)


def translate(post: Post) -> Post:
    return replace(post, text=" ".join(DICTIONARY.get(word, word) for word in post.words()), language="en")


def opinions_of(_author: str, post: Post) -> Iterator[tuple[str, float]]:
    """Gives a score from -1 (hates it) to 1 (loves it) for each currency that the post names."""
    words = post.words()
    moods = [MOODS[word] for word in words if word in MOODS]
    score = sum(moods) / len(moods) if moods else 0.0
    return ((currency, score) for currency in CURRENCIES if currency in words)


def build(builder: StreamsBuilder) -> None:
    posts = builder.stream(POSTS, Consumed(STRING, POST, name="posts-source"))
    languages = (
        posts.filter_not(lambda _author, post: post.repost, name="drop-reposts")
        .split(name="language-")
        .branch(lambda _author, post: post.language == "en", Branched("english"))
        .default_branch(Branched("other"))
    )
    translated = languages["language-other"].map_values(translate, name="translate")
    sentiment = (
        languages["language-english"]
        .merge(translated, name="all-posts")
        .flat_map(opinions_of, name="find-opinions")
        .group_by_key(Grouped("by-currency", STRING, Serdes.double()))
        .windowed_by(WINDOWS)
        .aggregate(
            Sentiment,
            lambda _currency, score, sentiment: sentiment.add(score),
            materialized=Materialized(SENTIMENT_STORE, key_serde=STRING, value_serde=Serdes.json(Sentiment)),
            name="average-sentiment",
        )
    )
    sentiment.to_stream(name="sentiment-changes").to(
        SENTIMENT, Produced(CURRENCY_IN_WINDOW, Serdes.json(Sentiment), name="sentiment-sink")
    )


def main() -> None:
    builder = StreamsBuilder()
    build(builder)
    with TopologyTestDriver(builder.build()) as driver:
        posts = driver.create_input_topic(POSTS, STRING, POST, start_ms=0, auto_advance=timedelta(minutes=4))
        sentiment = driver.create_output_topic(SENTIMENT, CURRENCY_IN_WINDOW, Serdes.json(Sentiment))
        for post in (
            Post("I love bitcoin and ethereum"),
            Post("Ich hasse bitcoin", language="de"),
            Post("I love bitcoin and ethereum", repost=True),
            Post("ethereum is risky"),
        ):
            posts.pipe_input("someone", post)
            for currency, value in sentiment.read_key_values():
                since = currency.window.start_time
                print(f"since {since:%H:%M}  {currency.key:8}  {value.average:+.2f} of {value.opinions} opinions")


if __name__ == "__main__":
    main()

from collections.abc import Iterator

import pytest

from examples.crypto_sentiment import CURRENCY_IN_WINDOW, POST, POSTS, SENTIMENT, STRING, Post, Sentiment, build
from headrace import Serdes, StreamsBuilder, TopologyTestDriver

MINUTE_MS = 60_000


@pytest.fixture
def driver() -> Iterator[TopologyTestDriver]:
    builder = StreamsBuilder()
    build(builder)
    with TopologyTestDriver(builder.build()) as driver:
        yield driver


def publish(driver: TopologyTestDriver, post: Post, *, at_ms: int = 0) -> None:
    driver.create_input_topic(POSTS, STRING, POST).pipe_input("someone", post, timestamp_ms=at_ms)


def sentiments(driver: TopologyTestDriver) -> list[tuple[str, int, Sentiment]]:
    """Reads the results: currency, start of the window in minutes, and sentiment."""
    topic = driver.create_output_topic(SENTIMENT, CURRENCY_IN_WINDOW, Serdes.json(Sentiment))
    return [(key.key, key.window.start_ms // MINUTE_MS, value) for key, value in topic.read_key_values()]


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("I love bitcoin!", 1.0),
        ("bitcoin is risky", -0.5),
        ("I love bitcoin, but it is risky", 0.25),
        ("What is bitcoin?", 0.0),
    ],
)
def test_post_is_judged_by_its_words(driver: TopologyTestDriver, text: str, score: float) -> None:
    publish(driver, Post(text))
    assert sentiments(driver) == [("bitcoin", 0, Sentiment(1, score))]


def test_post_about_two_currencies_gives_two_opinions(driver: TopologyTestDriver) -> None:
    publish(driver, Post("Ethereum and Bitcoin are great"))
    assert sentiments(driver) == [("bitcoin", 0, Sentiment(1, 1.0)), ("ethereum", 0, Sentiment(1, 1.0))]


@pytest.mark.parametrize("post", [Post("I love my dog"), Post(""), Post("I love bitcoin", repost=True)])
def test_post_without_an_opinion_of_its_own_gives_nothing(driver: TopologyTestDriver, post: Post) -> None:
    publish(driver, post)
    assert sentiments(driver) == []


@pytest.mark.parametrize(
    ("post", "score"),
    [
        (Post("Ich hasse Bitcoin", language="de"), -1.0),
        (Post("Me encanta bitcoin", language="es"), 1.0),
        (Post("Ich hasse Bitcoin", language="en"), 0.0),
    ],
)
def test_posts_in_other_languages_are_translated_first(driver: TopologyTestDriver, post: Post, score: float) -> None:
    publish(driver, post)
    assert sentiments(driver) == [("bitcoin", 0, Sentiment(1, score))]


def test_both_branches_meet_in_one_aggregate(driver: TopologyTestDriver) -> None:
    publish(driver, Post("I love bitcoin"))
    publish(driver, Post("Ich hasse Bitcoin", language="de"))
    publish(driver, Post("good old bitcoin"))
    *_, (_, _, last) = sentiments(driver)
    assert last == Sentiment(opinions=3, total=0.5)
    assert last.average == pytest.approx(1 / 6)


def test_each_ten_minutes_start_anew(driver: TopologyTestDriver) -> None:
    publish(driver, Post("great bitcoin"), at_ms=10 * MINUTE_MS - 1)
    publish(driver, Post("bad bitcoin"), at_ms=10 * MINUTE_MS)
    assert sentiments(driver) == [("bitcoin", 0, Sentiment(1, 1.0)), ("bitcoin", 10, Sentiment(1, -1.0))]


def test_late_post_counts_while_its_window_has_grace(driver: TopologyTestDriver) -> None:
    publish(driver, Post("great bitcoin"), at_ms=9 * MINUTE_MS)
    publish(driver, Post("great ethereum"), at_ms=11 * MINUTE_MS - 1)
    publish(driver, Post("great bitcoin"), at_ms=5 * MINUTE_MS)
    assert sentiments(driver)[-1] == ("bitcoin", 0, Sentiment(2, 2.0))


def test_post_after_the_grace_is_dropped_and_counted(driver: TopologyTestDriver) -> None:
    publish(driver, Post("great ethereum"), at_ms=11 * MINUTE_MS)
    publish(driver, Post("great bitcoin"), at_ms=5 * MINUTE_MS)
    assert sentiments(driver) == [("ethereum", 10, Sentiment(1, 1.0))]
    assert driver.metrics()["dropped-records-total"] == 1

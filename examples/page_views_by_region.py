"""Page views by region: how many pages were viewed from each region in the last five minutes, minute by minute.

Shows a stream joined with a table (views with the profiles of their users, which may change or be deleted at
any time), and a count in hopping windows: a window of five minutes starts every minute, so a view counts in
up to five of them. The key of the result is the region with its window.
"""

from dataclasses import dataclass
from datetime import timedelta

from headrace import (
    Consumed,
    Grouped,
    Joined,
    Materialized,
    Produced,
    Serdes,
    StreamsBuilder,
    TimeWindows,
    TopologyTestDriver,
)

PAGE_VIEWS = "page-views"
USER_PROFILES = "user-profiles"
VIEWS_BY_REGION = "views-by-region"
PROFILE_STORE = "user-profile-store"
VIEW_STORE = "views-by-region-store"

UNKNOWN_REGION = "unknown"
WINDOWS = TimeWindows.of_size_and_grace(timedelta(minutes=5), grace=timedelta(minutes=1)).advance_by(
    timedelta(minutes=1)
)


@dataclass(frozen=True, slots=True)
class PageView:
    page: str


@dataclass(frozen=True, slots=True)
class UserProfile:
    region: str
    experience: str


STRING, LONG = Serdes.string(), Serdes.long()
VIEW, PROFILE = Serdes.json(PageView), Serdes.json(UserProfile)
REGION_IN_WINDOW = Serdes.time_windowed(STRING, WINDOWS.size_ms)


def region_of(_view: PageView, profile: UserProfile | None) -> str:
    return UNKNOWN_REGION if profile is None else profile.region


def build(builder: StreamsBuilder) -> None:
    views = builder.stream(PAGE_VIEWS, Consumed(STRING, VIEW, name="page-views-source"))
    profiles = builder.table(
        USER_PROFILES,
        Consumed(STRING, PROFILE, name="user-profiles"),
        Materialized(PROFILE_STORE, key_serde=STRING, value_serde=PROFILE),
    )
    # Only a view makes a result: a user who moves changes the region of later views, not of those already counted.
    regions = views.left_join(profiles, region_of, joined=Joined(STRING, VIEW, PROFILE, name="find-region"))
    counts = (
        regions.group_by(lambda _user, region: region, Grouped("by-region", STRING, STRING))
        .windowed_by(WINDOWS)
        .count(materialized=Materialized(VIEW_STORE, key_serde=STRING, value_serde=LONG), name="count-views")
    )
    counts.to_stream(name="count-changes").to(
        VIEWS_BY_REGION, Produced(REGION_IN_WINDOW, LONG, name="views-by-region-sink")
    )


def main() -> None:
    builder = StreamsBuilder()
    build(builder)
    with TopologyTestDriver(builder.build()) as driver:
        profiles = driver.create_input_topic(USER_PROFILES, STRING, PROFILE)
        views = driver.create_input_topic(PAGE_VIEWS, STRING, VIEW)
        profiles.pipe_key_values(
            [("ada", UserProfile("europe", "expert")), ("bob", UserProfile("asia", "beginner"))], start_ms=0
        )
        views.pipe_key_values(
            [(user, PageView("index.html")) for user in ("ada", "bob", "eve", "ada")],
            start_ms=0,
            advance=timedelta(minutes=1),
        )
        counts = driver.create_output_topic(VIEWS_BY_REGION, REGION_IN_WINDOW, LONG)
        latest = counts.read_key_values_to_map()
        for region in sorted(latest, key=lambda region: (region.window.start_ms, region.key)):
            window, count = region.window, latest[region]
            print(f"{window.start_time:%H:%M} to {window.end_time:%H:%M}  {region.key:8} {count}")


if __name__ == "__main__":
    main()

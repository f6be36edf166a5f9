"""Arguments of public calls: checks of values, durations and functions, and hints for those who know Kafka Streams.

| module | |
|---|---|
| ``values`` | numbers, flags, texts, settings of topics, serdes |
| ``durations`` | ``timedelta`` outside, milliseconds inside |
| ``signatures`` | functions of the user: how many arguments they take, and where they are defined |
| ``hints`` | what to call instead of a name of Java that does not exist here |
"""

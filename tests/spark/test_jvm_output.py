"""Of what comes out of the JVM, a user sees what the application wrote."""

from headrace.spark.jvm_output import of_the_application

STOPPED = """\
Traceback (most recent call last):
  File "/lib/pyspark/daemon.py", line 264, in manager
    code = worker(sock, authenticated)
           ^^^^^^^^^^^^^^^^^^^^^^^^^^^
BrokenPipeError: [Errno 32] Broken pipe
"""
OWN = """\
Traceback (most recent call last):
  File "/app/orders.py", line 3, in parse
    return int(value)
ValueError: x
"""
WARNING = "WARNING: Using incubator modules: jdk.incubator.vector\n"


def shown(text: str) -> str:
    return "".join(of_the_application(text.splitlines(keepends=True)))


def test_lines_of_functions_are_shown() -> None:
    assert shown("[orders]: a, 1\n\n[orders]: b, 2\n") == "[orders]: a, 1\n\n[orders]: b, 2\n"


def test_lines_of_spark_are_not() -> None:
    assert shown(WARNING + "mine\n" + STOPPED + "mine too\n") == "mine\nmine too\n"


def test_tracebacks_of_the_application_are_shown() -> None:
    assert shown(STOPPED + OWN + STOPPED) == OWN


def test_workers_that_are_stopped_at_once_are_not() -> None:
    mixed = "".join(line for pair in zip(*[STOPPED.splitlines(keepends=True)] * 2, strict=True) for line in pair)
    assert shown("mine\n" + mixed + "mine too\n" + OWN) == "mine\nmine too\n" + OWN


def test_worker_that_is_stopped_while_another_one_says_so_is_not() -> None:
    first, second = STOPPED.splitlines(keepends=True), STOPPED.splitlines(keepends=True)
    assert shown("".join([*first[:2], second[0], *first[2:], *second[1:], "mine\n"])) == "mine\n"


def test_worker_that_is_stopped_while_a_function_prints_is_not() -> None:
    lines = STOPPED.splitlines(keepends=True)
    assert shown("".join([lines[0], "mine\n", *lines[1:]])) == "mine\n"
    # It may be killed before it has said more.
    assert shown(lines[0] + "mine\n") == "mine\n"
    own = OWN.splitlines(keepends=True)
    assert shown("".join([own[0], "mine\n", *own[1:]])) == "mine\n" + OWN

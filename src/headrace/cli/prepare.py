"""``headrace prepare``: preparation of a machine or a container image, so that the first start is fast."""

from __future__ import annotations

import time

import click

from headrace.cli.common_options import common_options
from headrace.cli.printing import note
from headrace.errors import MissingDependencyError, StateDirectoryError


@click.command(short_help="Make the class archive with which Spark starts faster.")
@click.option(
    "--class-path", default="", metavar="JARS", help="spark.driver.extraClassPath of the application, if any."
)
@common_options()
def prepare(class_path: str) -> None:
    """Make the class archive with which Spark's Java starts twice as fast.

    An application that finds none has it made in the background when it has run for a while. Call this where nothing
    runs that long: in the build of a container image, with HEADRACE_CACHE_DIR in the image. An archive belongs to one
    Java and one Spark; if it is there already, nothing is done.

    \b
      headrace prepare
      RUN HEADRACE_CACHE_DIR=/opt/headrace headrace prepare     # in a Dockerfile
    """
    try:
        from headrace.spark.prepare import prepare as make_archive
    except ImportError as error:
        message = (
            f"the class archive is for Apache Spark, and the package '{error.name}' is not installed; "
            "run `pip install 'headrace[spark]'`"
        )
        raise MissingDependencyError(message) from error
    note("running Spark once, to see which classes it needs")
    begun = time.monotonic()
    archive = make_archive(class_path)
    if archive is None:
        message = (
            "the class archive cannot be made: the cache directory must belong to this user, and nobody else may write "
            "there; set HEADRACE_CACHE_DIR to another one"
        )
        raise StateDirectoryError(message)
    size = archive.stat().st_size / 1e6
    note(f"class archive of {size:.0f} MB is there, after {time.monotonic() - begun:.0f} s: {archive}")

"""Log configuration of Spark's JVMs: files of bounded size in the application's directory, never the terminal."""

from __future__ import annotations

from pathlib import Path

DRIVER_CONFIGURATION = "spark-log.properties"
EXECUTOR_CONFIGURATION = "spark-log-executor.properties"
EXECUTOR_PROPERTY = "headrace.executor"
"""A system property of an executor: its id. The files of several must not be one."""

_SIZE = "10MB"
_KEPT_FILES = 3

_CONFIGURATION = """\
status = off
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
# There is never such a library in a pip installation.
logger.native.name = org.apache.hadoop.util.NativeCodeLoader
logger.native.level = error
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {path}
appender.file.filePattern = {path}.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{yyyy-MM-dd HH:mm:ss.SSS}} %p [%t] %c{{1}}: %m%n%ex
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = {size}
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = {kept}
"""


def write_log_configurations(directory: Path) -> None:
    """Writes what the JVMs read at their start into ``directory``.

    The driver's log is ``spark.log`` there, and those of executors on this machine are ``spark-executor-<id>.log``.
    """
    executor = f"spark-executor-${{sys:{EXECUTOR_PROPERTY}:-unknown}}.log"
    for name, log in ((DRIVER_CONFIGURATION, "spark.log"), (EXECUTOR_CONFIGURATION, executor)):
        # $ and \\ mean something in the file: a directory may have them in its name.
        path = str(directory).replace("\\", "\\\\").replace("${", "$${")
        text = _CONFIGURATION.format(path=f"{path}/{log}", size=_SIZE, kept=_KEPT_FILES)
        (directory / name).write_text(text, encoding="utf-8")

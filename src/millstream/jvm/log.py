"""The JVM's own log: `jvm.log`, at most five files of 10 MB, in the format of the run's log.

Log4j's pattern layout writes JSON as well: its JSON layouts would load hundreds of classes more at each start.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal

Format = Literal["text", "json"]

_TIME = "%d{yyyy-MM-dd'T'HH:mm:ss.SSS}{UTC}Z"
_JSON = (
    f'{{"time":"{_TIME}","level":"%level{{WARN=warning,ERROR=error,FATAL=error,INFO=info,DEBUG=info,TRACE=info}}","event":"jvm",'
    '"pipeline":"PIPELINE","logger":"%enc{%c{1}}{JSON}","message":"%enc{%m}{JSON}"%notEmpty{,"stack":"%enc{%ex}{JSON}"}}%n%ex{none}'
)
# `%ex{none}`: without it Log4j would write the stack again, as text
_TEXT = f"{_TIME} %-7level{{WARN=WARNING,FATAL=ERROR}} PIPELINE jvm %c{{1}}: %m%n%ex"
_PROPERTIES = """\
rootLogger.level = warn
rootLogger.appenderRef.out.ref = out
appender.out.type = RollingFile
appender.out.name = out
appender.out.fileName = ${sys:millstream.logs}/jvm.log
appender.out.filePattern = ${sys:millstream.logs}/jvm.%i.log
appender.out.policies.type = SizeBasedTriggeringPolicy
appender.out.policies.size = 10MB
appender.out.strategy.type = DefaultRolloverStrategy
appender.out.strategy.max = 4
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = PATTERN
logger.native.name = org.apache.hadoop.util.NativeCodeLoader
logger.native.level = error
"""


@dataclass(frozen=True, slots=True)
class JvmLog:
    """How the JVM writes its log."""

    format: Format = "text"
    pipeline: str = "millstream"
    """The name in each line."""

    def log4j_properties(self) -> str:
        pattern = _JSON if self.format == "json" else _TEXT
        return _PROPERTIES.replace("PATTERN", pattern).replace("PIPELINE", self.pipeline)


def without_stacks(text: str) -> list[str]:
    """The lines of a log in either format, as messages for people."""
    return [_message(line) for line in text.splitlines() if not line.startswith("\t")]


def _message(line: str) -> str:
    if not line.startswith('{"time"'):
        return line
    try:
        found = json.loads(line)
    except ValueError:  # cut off
        return line
    return f"{found['time']} {found['level'].upper()} {found['logger']}: {found['message']}"

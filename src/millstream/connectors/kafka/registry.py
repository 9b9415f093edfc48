"""Schema registries: the options that the source and the sink share, and their subjects.

A subject is the name under which a registry stores the versions of one schema. Clients have three naming strategies; the default, and the
most common one, is the topic followed by `-value` or `-key`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from millstream.clients.schema_registry import SchemaRegistry
from millstream.errors import Diagnostic, SetupError
from millstream.plan.components import Component, Problem
from millstream.secrets import Secret, TextOrSecret

What = Literal["value", "key"]
REGISTERED = frozenset({"avro", "json_schema", "protobuf"})
"""Formats whose schemas are in a registry."""
SECONDS = 20.0
"""How long to wait for a registry."""
AGAIN_SECONDS = 3.0
"""… when it is no longer needed."""
LOOK_SECONDS = 2.0
"""… in a check."""


class RegistryOptions(BaseModel):
    """A schema registry, and how to log in to it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: Annotated[str, Field(min_length=1)]
    """Its address, or several addresses of the same registry, separated by commas."""
    username: TextOrSecret | None = None
    """The user."""
    password: Secret | None = None
    """The password."""
    ca: Path | None = None
    """A PEM file with the authorities that sign its certificate. Default: those that Python trusts."""


def _to_map(value: Any) -> Any:
    return {"url": value} if isinstance(value, str) else value


_Given = Annotated[RegistryOptions | None, BeforeValidator(_to_map, json_schema_input_type=str | RegistryOptions | None)]


class RegistryComponent(Component):
    """Options of components whose schemas may be in a registry."""

    schema_registry: _Given = None
    """The schema registry (Confluent's, or one with the same interface): its address, or `{url, username, password, ca}`. Needed for
    `avro`, `json_schema` and `protobuf`."""
    subject_strategy: Literal["topic", "record", "topic_record"] = "topic"
    """The naming strategy of subjects: `topic` is `<topic>-value` and `<topic>-key`, `record` is the name of the record, `topic_record`
    is `<topic>-<record>`."""
    record: str | None = None
    """The full name of the value's record or message, such as `com.acme.Order`. The strategies `record` and `topic_record` need it; in a
    Protobuf file it selects the message, by default the first one."""
    subject: str | None = None
    """The subject of the values; overrides the strategy."""

    def registry(self, seconds: float = 0) -> SchemaRegistry:
        """A client of the registry, with a time limit."""
        options = self.schema_registry
        if options is None:
            raise SetupError(Diagnostic("MS007", "`schema_registry` is not given"))
        urls = tuple(filter(None, (url.strip() for url in options.url.split(","))))
        password = options.password.reveal() if options.password else ""
        user = options.username.reveal() if isinstance(options.username, Secret) else options.username or ""
        return SchemaRegistry(urls, user, password, read_text(options.ca) if options.ca else "", seconds or SECONDS)

    def subjects(self, topics: Sequence[str], what: What) -> tuple[str, ...]:
        """The subjects of messages in these topics."""
        if what == "value" and self.subject:
            return (self.subject,)
        if what == "key" or self.subject_strategy == "topic":
            return tuple(f"{topic}-{what}" for topic in topics)
        return (self.record or "",) if self.subject_strategy == "record" else tuple(f"{topic}-{self.record}" for topic in topics)

    def registry_problems(self, format_: str, key_format: str, reading: bool) -> list[Problem]:
        """Missing or unused options of the registry."""
        given = {"format": format_, "key_format": key_format}
        used = [option for option, value in given.items() if value in REGISTERED]
        if used and self.schema_registry is None:
            help_ = "such as `schema_registry: http://localhost:8081`, here or under `connections: {kafka: {…}}`"
            return [Problem("MS007", f"`{used[0]}: {given[used[0]]}` needs `schema_registry`", used[0], help_)]
        if reading and used and self.subject_strategy != "topic" and not (self.record or self.subject):
            message = f"`subject_strategy: {self.subject_strategy}` needs `record`: the message type is not known in advance"
            return [Problem("MS007", message, "subject_strategy", "such as `record: com.acme.Order`")]
        return []


def read_text(path: Path) -> str:
    """The text of a file that an option names."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise SetupError(Diagnostic("MS001", f"`{path}` cannot be read: {(error.strerror or str(error)).lower()}")) from None

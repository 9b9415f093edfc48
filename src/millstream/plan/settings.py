"""The settings of a pipeline: its checkpoint, its trigger, its Spark."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from millstream.plan.labels import Labels
from millstream.plan.option_mistakes import Checked
from millstream.plan.options import Columns, Duration, Size
from millstream.secrets import TextOrSecret, mask_option

_SHORTEST_MS = 5000
"""Spark's minimum for epochs in real-time mode."""


class _Block(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


def _not_too_short(every: Duration) -> Duration:
    if every.milliseconds < _SHORTEST_MS:
        raise ValueError(f"real-time mode needs at least `{_SHORTEST_MS // 1000}s`")
    return every


def _not_in_a_flood(every: Duration) -> Duration:
    if every.milliseconds < 100:
        raise ValueError("the shortest time between two messages is `100ms`")
    return every


def _collector_address(url: str) -> str:
    path = urlsplit(url).path.rstrip("/")
    for signal in ("/v1/metrics", "/v1/traces"):
        if path.endswith(signal):
            raise ValueError(f"`{signal}` is added to the address: leave it out")
    return url


def _http_address(url: str | None) -> str | None:
    if url is None:
        return None
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("an address begins with `http://` or `https://`, such as `http://collector:4318`")
    if parts.username or parts.password:
        raise ValueError("no password belongs in an address: `headers: {authorization: secret://env/NAME}`")
    return url


class Continuous(_Block):
    """Start the next epoch as soon as the last one is done and there are new rows."""

    type: Literal["continuous"] = "continuous"


class Interval(_Block):
    """Start an epoch every so often."""

    type: Literal["interval"]
    every: Duration
    """Time from one start to the next, such as `10s`."""


class AvailableNow(_Block):
    """Read the rows that are there now, then stop."""

    type: Literal["available_now"]


class RealTime(_Block):
    """Pass on every message within milliseconds: plain Kafka → Kafka pipelines, at least once."""

    type: Literal["real_time"]
    every: Annotated[Duration, AfterValidator(_not_too_short)] = Duration("30s")
    """How often progress is written, at least `5s`. After a failure, the rows since then are written again."""


Trigger = Annotated[Continuous | Interval | AvailableNow | RealTime, Field(discriminator="type")]


class RestartPolicy(_Block):
    """What happens after a temporary failure."""

    limit: int = Field(default=5, ge=0)
    """Restarts in a row before the pipeline gives up."""
    backoff: Duration = Duration("1s")
    """Pause before the first restart; doubles with each."""
    max_backoff: Duration = Duration("1m")
    """The longest pause."""


class Otlp(_Block):
    """A collector of OpenTelemetry."""

    endpoint: Annotated[str, AfterValidator(_http_address), AfterValidator(_collector_address)]
    """Its address, such as `http://collector:4318`; OTLP over HTTP, the paths `/v1/metrics` and `/v1/traces` are added."""
    headers: dict[str, TextOrSecret] = {}
    """Headers of every request, for authentication."""
    metrics_every: Annotated[Duration, AfterValidator(_not_in_a_flood)] = Duration("15s")
    """How often metrics are sent, at least `100ms`."""


class Lineage(_Block):
    """A receiver of OpenLineage events: what the pipeline reads and writes, and which columns its columns are made of."""

    url: Annotated[str | None, AfterValidator(_http_address)] = None
    """The address that events are posted to, such as `http://marquez:5000/api/v1/lineage`."""
    file: str | None = None
    """Or a file that events are appended to, one JSON object per line."""
    headers: dict[str, TextOrSecret] = {}
    """Headers of every request, for authentication."""
    namespace: str = "millstream"
    """The namespace of the pipeline, as a job."""
    every: Annotated[Duration, AfterValidator(_not_in_a_flood)] = Duration("1m")
    """How often a running pipeline says that it still runs, at least `100ms`."""

    @model_validator(mode="after")
    def _one_receiver(self) -> Lineage:
        if (self.url is None) == (self.file is None):
            raise ValueError("lineage goes to a `url` or to a `file`: name one of them")
        return self


class Telemetry(_Block):
    """What the run reports, and to whom."""

    labels: Labels = {}
    """Labels that every reported fact carries. Those that metrics have anyway, such as `pipeline` and `node`, are taken."""
    otlp: Otlp | None = None
    """The collector that metrics and traces are sent to. Needs the extra `otlp`."""
    lineage: Lineage | None = None
    """Where OpenLineage events are sent."""


class StoreSettings(_Block):
    """Where named values are stored: metadata, state of plugins, ledgers of targets that cannot store their own."""

    backend: Literal["sqlite", "postgres"] = "sqlite"
    """`sqlite`: a file in the checkpoint; `postgres`: the table `store` in a database, for machines without a disk of their own."""
    connection: str = "postgres"
    """The connection that `postgres` uses."""
    db_schema: str = Field(default="millstream", alias="schema")
    """The schema of the table; both are created if missing."""


class PreprocessorUse(BaseModel):
    """A preprocessor and its options."""

    model_config = ConfigDict(frozen=True, extra="allow")

    type: str
    """The name of the plugin; its options stand beside."""

    @model_serializer(mode="wrap")
    def _without_secrets(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """What is shown and stored: options that hold secrets are hidden. The loader reads them in the file."""
        shown: dict[str, Any] = mask_option("", write(self))
        return shown


class Settings(_Block, metaclass=Checked):
    """How the pipeline runs."""

    checkpoint: str | None = None
    """Where progress is kept: a local path (a relative one starts at the working directory) or a Hadoop file system's URL. Default:
    `.millstream/<name>` beside the pipeline's file, or beside the Python script.
    """
    trigger: Trigger = Continuous()
    """When epochs start. A pipeline whose sources are all bounded runs to their end, whatever stands here."""
    master: str = "local[*]"
    """Spark's master: `local[*]` uses every core of this machine."""
    profile: Literal["auto", "short", "long", "small"] = "auto"
    """How the JVM is tuned. `short`: quick start, for small bounded work; `long`: throughput; `small`: little memory and few threads;
    `auto`: `short` for bounded pipelines with small inputs, else `long`."""
    driver_memory: Size | None = None
    """The JVM's heap, such as `2GB`. Default: a share of the machine's memory that fits the profile."""
    spark: dict[str, TextOrSecret] = {}
    """Settings for Spark itself, by their full name."""
    state_partitions: int | None = Field(default=None, ge=1)
    """Number of state partitions; fixed by a query's first epoch. Default: the number of cores."""
    retain_epochs: int | None = Field(default=None, ge=2)
    """How many epochs back offsets, commits and state are kept in the checkpoint. Default: 100."""
    durability: Literal["fsync", "process"] = "fsync"
    """What a committed epoch survives on local disks. `fsync`: a power cut; files and their names reach the disk, in order, before a
    sink commits. `process`: the death of the process, but not of the machine; some milliseconds faster per epoch. See
    `docs/exactly-once.md`, "A power cut"."""
    restart: RestartPolicy = RestartPolicy()
    """What happens after a temporary failure."""
    store: StoreSettings = StoreSettings()
    """Where named values are stored; `millstream store` shows them."""
    telemetry: Telemetry = Telemetry()
    """What the run reports, and to whom."""
    plugins: Columns = ()
    """Python files with plugins, relative to the pipeline's file: `my_sink.py`; or modules. Installed packages need no entry."""
    preprocessors: tuple[PreprocessorUse, ...] = ()
    """What rewrites the pipeline's text before it is parsed, in this order. In `millstream.yaml`, or in the pipeline itself if its text
    is YAML as it stands."""

    @property
    def durable(self) -> bool:
        """Whether committed data must survive a power cut."""
        return self.durability == "fsync"

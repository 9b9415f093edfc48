"""Connections and settings come from several places; the stronger one wins, and `origins` says which it was."""

from pathlib import Path

import pytest

from millstream.spec.loader import Loaded, load

PIPELINE = """
name: p
sources:
  orders: {type: generator, rows: 3, fields: {id: {type: sequence}}}
sinks:
  out: {type: blackhole, from: orders}
connections:
  kafka: {brokers: from-pipeline, client_id: from-pipeline, group: from-pipeline}
settings: {master: "local[1]", checkpoint: from-pipeline, restart: {limit: 1, backoff: 2s}}
"""
CONFIG = """
connections:
  kafka: {brokers: from-config, client_id: from-config}
settings: {checkpoint: from-config}
"""


@pytest.fixture
def pipeline(tmp_path: Path) -> Path:
    (tmp_path / "millstream.yaml").write_text(CONFIG)
    path = tmp_path / "p.yaml"
    path.write_text(PIPELINE)
    return path


def loaded(path: Path, flags: dict[str, str] | None = None, config: Path | None = None, **environ: str) -> Loaded:
    return load(path, environ=environ, flags=flags or {}, config=config)


def test_each_layer_beats_the_one_below(pipeline: Path) -> None:
    topology = loaded(pipeline, MILLSTREAM__CONNECTIONS__KAFKA__BROKERS="from-environment").require()
    (kafka,) = topology.connections
    assert kafka.options == {"brokers": "from-environment", "client_id": "from-config", "group": "from-pipeline"}
    assert kafka.origins == {"brokers": "environment", "client_id": "millstream.yaml", "group": "pipeline"}


def test_settings_follow_the_same_order(pipeline: Path) -> None:
    topology = loaded(pipeline, {"restart.limit": "9"}, MILLSTREAM__SETTINGS__MASTER="local[2]").require()
    assert topology.settings.restart.limit == 9
    assert topology.settings.restart.backoff == "2s"
    assert (topology.settings.master, topology.settings.checkpoint) == ("local[2]", "from-config")
    assert topology.origins == {
        "master": "environment",
        "checkpoint": "millstream.yaml",
        "restart.limit": "flag",
        "restart.backoff": "pipeline",
    }


def test_a_connection_can_be_made_by_the_environment_alone(pipeline: Path) -> None:
    topology = loaded(pipeline, MILLSTREAM__CONNECTIONS__PG__HOST="db").require()
    assert {connection.name for connection in topology.connections} == {"kafka", "pg"}


def test_a_wrong_value_in_the_environment_names_the_variable(pipeline: Path) -> None:
    (error,) = loaded(pipeline, MILLSTREAM__SETTINGS__RESTART__LIMIT="many").errors
    assert error.code == "MS008"
    assert error.span.file == "$MILLSTREAM__SETTINGS__RESTART__LIMIT"


def test_a_config_file_that_is_named_must_exist(pipeline: Path) -> None:
    (error,) = loaded(pipeline, config=pipeline.parent / "nowhere.yaml").errors
    assert error.code == "MS001"


def test_a_component_without_connections_refuses_one(pipeline: Path) -> None:
    pipeline.write_text(PIPELINE.replace("type: blackhole,", "type: blackhole, connection: kafka,"))
    assert [error.code for error in loaded(pipeline).errors] == ["MS006"]

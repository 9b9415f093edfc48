"""The schema that editors get accepts what is right and refuses what is misspelt."""

from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from millstream.registry import Registry
from millstream.spec.json_schema import pipeline_schema

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*/*.yaml"))


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    return pipeline_schema()


@pytest.mark.parametrize("path", [path for path in EXAMPLES if path.name != "millstream.yaml"], ids=lambda path: path.parent.name)
def test_every_example_is_accepted(path: Path, schema: dict[str, Any]) -> None:
    document = yaml.load(path.read_text().replace("${ROWS:-5000}", "5000"), yaml.BaseLoader)
    if plugins := document.get("settings", {}).get("plugins"):  # files beside the pipeline have types of their own
        schema = pipeline_schema(Registry.installed().with_files([plugins], path.parent))
    jsonschema.validate(_typed(document), schema)


@pytest.mark.parametrize(
    "change",
    [
        {"sourcs": {}},
        {"sources": {"a": {"type": "generator", "feilds": {}}}},
        {"sources": {"a": {"type": "nosuch"}}},
        {"settings": {"chekpoint": "x"}},
    ],
    ids=["section", "field", "type", "setting"],
)
def test_a_mistake_is_refused(change: dict[str, Any], schema: dict[str, Any]) -> None:
    good = {"sources": {"a": {"type": "memory", "rows": [{"id": 1}]}}, "sinks": {"b": {"type": "print", "from": "a"}}}
    jsonschema.validate(good, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(good | change, schema)


def test_options_carry_their_texts(schema: dict[str, Any]) -> None:
    members = schema["properties"]["sinks"]["additionalProperties"]["oneOf"]
    file = next(member for member in members if member["properties"]["type"]["const"] == "file")
    assert "directory" in file["properties"]["path"]["description"].lower() or file["properties"]["path"]["description"]


def _typed(value: Any) -> Any:
    """Scalars as the product reads them."""
    from millstream.spec.tree import resolve

    if isinstance(value, dict):
        return {key: _typed(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_typed(inner) for inner in value]
    return resolve(value)

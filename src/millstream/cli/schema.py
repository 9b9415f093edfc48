"""`millstream schema`: the JSON Schema of pipeline files, for editors."""

from __future__ import annotations

import json


def schema() -> None:
    """Print the JSON Schema of pipeline files."""
    from millstream.spec.json_schema import pipeline_schema

    print(json.dumps(pipeline_schema(), indent=2))

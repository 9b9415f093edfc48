"""The events of OpenLineage for a run: what it reads and writes, with columns, and which columns they are made of.

A node without a place outside (generated rows, `memory`, `print`) is no dataset. A schema or a lineage that is not known is left out.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from importlib.metadata import version
from typing import Any, Literal

import pyarrow as pa

from millstream.inspector.attended import AttendedRun
from millstream.plan.column_lineage import Columns, column_lineage
from millstream.plan.components import Dataset
from millstream.plan.nodes import AnyNode, SourceNode
from millstream.plan.schemas import propagate
from millstream.plan.types import UNKNOWN, name_of

Kind = Literal["START", "RUNNING", "COMPLETE", "FAIL", "ABORT"]
_SPEC = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
_FACETS = "https://openlineage.io/spec/facets"


@dataclass(frozen=True)
class LineageEvents:
    """Makes the events of one run."""

    run: AttendedRun
    namespace: str

    def event(self, kind: Kind, error: str = "") -> dict[str, Any]:
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return {
            "eventType": kind,
            "eventTime": now,
            "producer": self._producer,
            "schemaURL": _SPEC,
            "run": {"runId": str(uuid.uuid5(uuid.NAMESPACE_OID, self.run.run)), "facets": self._run_facets(error)},
            "job": {"namespace": self.namespace, "name": self.run.name, "facets": {"jobType": self._job_type}},
            "inputs": [dataset for node in self._sources for dataset in self._datasets(node)],
            "outputs": [self._output(node, dataset) for node in self._sinks for dataset in self._datasets(node)],
        }

    def _run_facets(self, error: str) -> dict[str, Any]:
        engine = {"version": version("pyspark"), "name": "Spark", "openlineageAdapterVersion": version("millstream")}
        found = {"processing_engine": self._facet("1-1-1/ProcessingEngineRunFacet.json", **engine)}
        if error:
            found["errorMessage"] = self._facet("1-0-1/ErrorMessageRunFacet.json", message=error, programmingLanguage="PYTHON")
        return found

    @cached_property
    def _job_type(self) -> dict[str, Any]:
        processing = "BATCH" if all(node.component.bounded for node in self._sources) else "STREAMING"
        return self._facet("2-0-4/JobTypeJobFacet.json", processingType=processing, integration="MILLSTREAM", jobType="PIPELINE")

    def _datasets(self, node: AnyNode) -> Iterable[dict[str, Any]]:
        for dataset in node.component.datasets():
            schema = self._schemas.get(node.name) if isinstance(node, SourceNode) else self._written(node)
            facets = {} if schema is None else {"schema": self._facet("1-2-0/SchemaDatasetFacet.json", fields=_fields(schema))}
            yield {"namespace": dataset.namespace, "name": dataset.name, "facets": facets}

    def _written(self, node: AnyNode) -> pa.Schema | None:
        """The columns of a sink's target, if they are those of its input."""
        if len(node.inputs) != 1 or node.name not in self._unchanged:
            return None
        return self._schemas.get(node.inputs[0])

    def _output(self, node: AnyNode, dataset: dict[str, Any]) -> dict[str, Any]:
        if lineage := self._fields_of(self._columns.get(node.name, {})):
            dataset["facets"]["columnLineage"] = self._facet("1-2-0/ColumnLineageDatasetFacet.json", fields=lineage)
        facts = self.run.recorder.snapshot().nodes.get(node.name)
        if facts is not None and facts.rows_in is not None:
            statistics = self._facet("1-0-2/OutputStatisticsOutputDatasetFacet.json", rowCount=facts.rows_in)
            dataset["outputFacets"] = {"outputStatistics": statistics}
        return dataset

    def _fields_of(self, columns: Columns) -> dict[str, Any]:
        return {name: {"inputFields": fields} for name, parts in columns.items() if (fields := self._input_fields(parts)) is not None}

    def _input_fields(self, parts: Iterable[Any]) -> list[dict[str, Any]] | None:
        """None when a part does not come from a dataset outside."""
        found = []
        for part in sorted(parts):
            datasets = self._of_source[part.source]
            if not datasets:
                return None
            how = {"field": part.column, "transformations": [{"type": "DIRECT", "subtype": part.how}]}
            found += [{"namespace": each.namespace, "name": each.name, **how} for each in datasets]
        return found

    def _facet(self, schema: str, **values: Any) -> dict[str, Any]:
        return {"_producer": self._producer, "_schemaURL": f"{_FACETS}/{schema}", **values}

    @cached_property
    def _producer(self) -> str:
        return f"urn:millstream:{version('millstream')}"

    @cached_property
    def _sources(self) -> list[SourceNode]:
        return [node for node in self.run.topology.nodes if isinstance(node, SourceNode)]

    @cached_property
    def _sinks(self) -> list[AnyNode]:
        return [node for node in self.run.topology.nodes if node.kind == "sink"]

    @cached_property
    def _schemas(self) -> Mapping[str, pa.Schema | None]:
        return propagate(self.run.topology)

    @cached_property
    def _columns(self) -> Mapping[str, Columns]:
        return column_lineage(self.run.topology, self._schemas)

    @cached_property
    def _unchanged(self) -> frozenset[str]:
        """The sinks whose target has the columns of the rows."""
        found = []
        for node in self._sinks:
            schema = self._schemas.get(node.inputs[0]) if len(node.inputs) == 1 else None
            origins = node.component.origins({node.inputs[0]: schema}) if schema is not None else None  # type: ignore[union-attr]  # a sink
            if schema is not None and origins is not None and list(origins) == schema.names:
                found.append(node.name)
        return frozenset(found)

    @cached_property
    def _of_source(self) -> Mapping[str, tuple[Dataset, ...]]:
        return {node.name: node.component.datasets() for node in self._sources}


def _fields(schema: pa.Schema) -> list[dict[str, Any]]:
    """Name and type of each column; a type that is not certain is left out."""
    return [{"name": field.name, **({} if field.type == UNKNOWN else {"type": name_of(field.type)})} for field in schema]

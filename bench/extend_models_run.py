"""Scores rows with the transform `onnx`, and by hand with `mapInArrow`, in turns in one session; then batches of Arrow in one process, with
the transform's runner and with the runtime alone. Prints the seconds of each.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pyarrow as pa
from onnx import TensorProto, helper

from millstream.clients.storage import LocalStorage
from millstream.jvm.session import SessionOptions, begin
from millstream.plan.components import NodeContext
from millstream.transforms.onnx import Onnx
from millstream.worker.scoring import ModelRunner

ROWS, BATCH = 1_000_000, 10_000
_TURNS = 6
"""The first turn is not counted."""
_FIELDS = [f"f{number}" for number in range(8)]
_LAYERS = [8, 64, 32, 1]


def main() -> None:
    with TemporaryDirectory() as folder:
        make_model(Path(folder) / "m.onnx")
        found = {"in Spark": _in_spark(Path(folder)), "in one process": _in_one_process(Path(folder))}
    print(json.dumps(found))


def make_model(path: Path) -> None:
    """A dense network of three layers."""
    random, nodes, constants = np.random.default_rng(7), [], []
    for layer, (width, height) in enumerate(pairwise(_LAYERS)):
        weights = random.normal(size=(width, height)).astype(np.float32)
        constants.append(helper.make_tensor(f"w{layer}", TensorProto.FLOAT, weights.shape, weights.ravel()))
        last = height == 1
        nodes.append(helper.make_node("MatMul", [f"x{layer}" if layer else "x", f"w{layer}"], [f"m{layer}"]))
        nodes.append(helper.make_node("Sigmoid" if last else "Relu", [f"m{layer}"], ["y" if last else f"x{layer + 1}"]))
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", _LAYERS[0]])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["rows", 1])
    graph = helper.make_graph(nodes, "dense", [x], [y], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)


def _in_spark(folder: Path) -> dict[str, list[float]]:
    session = begin(SessionOptions(master="local[2]", profile="long")).finish()
    rows = session.spark.range(ROWS, numPartitions=2).selectExpr(*(f"CAST(rand({n}) AS FLOAT) AS {name}" for n, name in enumerate(_FIELDS)))
    rows = rows.persist()
    rows.count()
    context = NodeContext("scored", folder, LocalStorage(folder / "ck"))
    ours = _transform().open(context).apply({"rows": rows}, context)
    content = (folder / "m.onnx").read_bytes()

    def by_hand(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        direct = _direct(content)
        for batch in batches:
            yield batch.append_column("y", pa.array(direct(batch)))

    theirs = rows.mapInArrow(by_hand, f"{', '.join(f'{name} float' for name in _FIELDS)}, y float")
    times = _in_turns({"ours": lambda: _write(ours), "theirs": lambda: _write(theirs)})
    session.close()
    return times


def _in_one_process(folder: Path) -> dict[str, list[float]]:
    random = np.random.default_rng(1)
    columns = {name: pa.array(random.random(ROWS, np.float32)) for name in _FIELDS}
    batches = pa.table(columns).to_batches(BATCH)
    content, transform = (folder / "m.onnx").read_bytes(), _transform()
    direct = _direct(content)
    runner = ModelRunner(
        "scored",
        "m",
        _Content(content),
        (("x", tuple(_FIELDS)),),
        tuple(transform.scores()),
        pa.schema([pa.field("y", pa.float32())]),
        None,
        1,
        isolate=False,
        op="",
        hidden=(),
    )
    return _in_turns(
        {"ours": lambda: sum(batch.num_rows for batch in runner.run(batches)), "theirs": lambda: [direct(each) for each in batches]}
    )


class _Content:
    def __init__(self, value: bytes) -> None:
        self.value = value


def _transform() -> Onnx:
    return Onnx(model="m.onnx", inputs={"x": tuple(_FIELDS)}, outputs={"y": "y"})


def _direct(content: bytes) -> Callable[[pa.RecordBatch], Any]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(content, options)
    return lambda batch: session.run(["y"], {"x": np.column_stack([batch.column(name).to_numpy() for name in _FIELDS])})[0][:, 0]


def _write(frame: Any) -> None:
    frame.write.format("noop").mode("overwrite").save()


def _in_turns(works: dict[str, Callable[[], object]]) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(_TURNS):
        for name, work in works.items():
            started = time.perf_counter()
            work()
            if turn:
                times[name].append(time.perf_counter() - started)
    return times


if __name__ == "__main__":
    main()

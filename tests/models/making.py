"""Small models, made with the library of the format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
from onnx import TensorProto, helper

FLOAT = TensorProto.FLOAT


def save(path: Path, nodes: list[Any], inputs: list[Any], outputs: list[Any], constants: tuple[Any, ...] = ()) -> Path:
    graph = helper.make_graph(nodes, "graph", inputs, outputs, list(constants))
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), path)
    return path


def value(name: str, shape: list[Any], kind: int = FLOAT) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


def linear(path: Path, weights: tuple[float, ...] = (1.0, 10.0), rows: Any = "rows") -> Path:
    """score = w1 * x1 + w2 * x2 + …"""
    constant = helper.make_tensor("w", FLOAT, [len(weights), 1], list(weights))
    node = helper.make_node("MatMul", ["features", "w"], ["score"])
    return save(path, [node], [value("features", [rows, len(weights)])], [value("score", [rows, 1])], (constant,))


def logarithm(path: Path) -> Path:
    """Not a number below 0."""
    return save(path, [helper.make_node("Log", ["x"], ["y"])], [value("x", ["rows"])], [value("y", ["rows"])])


def shares(path: Path) -> Path:
    """The softmax of three numbers, and the largest one's place."""
    nodes = [helper.make_node("Softmax", ["x"], ["p"]), helper.make_node("ArgMax", ["x"], ["label"], axis=1, keepdims=0)]
    return save(path, nodes, [value("x", ["rows", 3])], [value("label", ["rows"], TensorProto.INT64), value("p", ["rows", 3])])


def total(path: Path) -> Path:
    """The sum of a vector of any length, and the vector."""
    axes = helper.make_tensor("axes", TensorProto.INT64, [1], [1])
    nodes = [helper.make_node("ReduceSum", ["x", "axes"], ["sum"], keepdims=0), helper.make_node("Identity", ["x"], ["same"])]
    return save(path, nodes, [value("x", ["rows", "n"])], [value("sum", ["rows"]), value("same", ["rows", "n"])], (axes,))


def same(path: Path, kind: int) -> Path:
    """Returns what it gets."""
    return save(path, [helper.make_node("Identity", ["x"], ["y"])], [value("x", ["rows"], kind)], [value("y", ["rows"], kind)])


def same_vector(path: Path, kind: int) -> Path:
    """Returns the two values that it gets."""
    return save(path, [helper.make_node("Identity", ["x"], ["y"])], [value("x", ["rows", 2], kind)], [value("y", ["rows", 2], kind)])


def place(path: Path) -> Path:
    """The value at a place of a table of three; it fails at other places."""
    table = helper.make_tensor("table", FLOAT, [3], [10.0, 20.0, 30.0])
    node = helper.make_node("Gather", ["table", "id"], ["value"])
    return save(path, [node], [value("id", ["rows"], TensorProto.INT64)], [value("value", ["rows"])], (table,))

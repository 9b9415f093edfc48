"""Makes `fraud.onnx`, a logistic regression with three weights. It needs the package `onnx`; libraries export trained models."""

import onnx
from onnx import TensorProto, helper

WEIGHTS = {"amount": 0.004, "hour": -0.1, "new_customer": 2.0}

nodes = [
    helper.make_node("MatMul", ["features", "weights"], ["weighted"]),
    helper.make_node("Add", ["weighted", "bias"], ["sum"]),
    helper.make_node("Sigmoid", ["sum"], ["risk"]),
]
constants = [
    helper.make_tensor("weights", TensorProto.FLOAT, [len(WEIGHTS), 1], list(WEIGHTS.values())),
    helper.make_tensor("bias", TensorProto.FLOAT, [1], [-2.0]),
]
features = helper.make_tensor_value_info("features", TensorProto.FLOAT, ["rows", len(WEIGHTS)])
risk = helper.make_tensor_value_info("risk", TensorProto.FLOAT, ["rows", 1])
graph = helper.make_graph(nodes, "fraud", [features], [risk], constants)
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), "fraud.onnx")

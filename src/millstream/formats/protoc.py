"""Compiles Protobuf schemas once, on the driver. The result is a descriptor set with all imports, so that neither a restart nor a worker
needs the compiler.
"""

from __future__ import annotations

import base64
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_MAIN = "millstream_main.proto"


def compile_schema(text: str, imports: Mapping[str, str]) -> bytes:
    """The descriptor set of a schema: a `.proto` text, or a file's descriptor in base64, as some clients register it.

    ValueError with a sentence when it is neither, ImportError without a compiler.
    """
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    given = _from_base64(text)
    if given is None:
        return _protoc(text, imports)
    whole = FileDescriptorSet()
    for name in given.dependency:
        stub = f'syntax = "proto3"; import "{name}";'
        own = imports.get(name)
        files = FileDescriptorSet.FromString(compile_schema(own, imports) if own is not None else _protoc(stub, {})).file
        if own is not None:
            files[-1].name = name
        whole.file.extend(each for each in (files if own is not None else files[:-1]) if each.name not in {old.name for old in whole.file})
    whole.file.append(given)
    data: bytes = whole.SerializeToString()
    return data


def _from_base64(text: str) -> Any:
    """A file's descriptor in base64; None when the text is not one."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from google.protobuf.message import DecodeError

    try:
        return FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
    except (ValueError, DecodeError):
        return None


def _protoc(text: str, imports: Mapping[str, str]) -> bytes:
    from grpc_tools import _protoc_compiler, protoc

    with tempfile.TemporaryDirectory() as folder:
        for name, each in {**imports, _MAIN: text}.items():
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(each, encoding="utf-8")
        known = Path(protoc.__file__).parent / "_proto"
        words = ["protoc", f"-I{folder}", f"-I{known}", "--include_imports", f"--descriptor_set_out={folder}/out", _MAIN]
        if _protoc_compiler.run_main([word.encode() for word in words]):
            raise ValueError("the Protobuf compiler does not accept the schema")
        return Path(folder, "out").read_bytes()

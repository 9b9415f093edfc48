"""The stripper of `quickjs-rs`, a WebAssembly module, with wasmtime's cache on disk: without it every process compiles for seconds.

Only this file uses a name that the package does not promise: the engine that its modules share (`tests/scripts/test_guest_names.py`).
"""

from __future__ import annotations

from contextlib import suppress


class DeepError(RuntimeError):
    """The stripper has met the end of its stack."""


def transform(text: str) -> str:
    """The TypeScript as JavaScript; RuntimeError when it is none."""
    import quickjs_rs
    import wasmtime
    from quickjs_rs import _wasmtime as shared

    if shared._SHARED_ENGINE is None:
        config = wasmtime.Config()
        with suppress(wasmtime.WasmtimeError):  # a machine without a home: it compiles in each process
            config.cache = True
        shared._SHARED_ENGINE = wasmtime.Engine(config)
    try:
        return quickjs_rs.transform_source("script.ts", text)
    except (wasmtime.Trap, wasmtime.WasmtimeError):
        raise DeepError("it is nested too deeply") from None

"""QuickJS in WebAssembly: the guest module of the package `quickjs-rs`, run by wasmtime in this process.

Only this file uses names that the package does not promise: its file `_guest.wasm` and the functions that the module exports
(`tests/scripts/test_guest_names.py` says when they change). The package's own `Context` is not used, since wasmtime's epochs stop every
loop, also those in built-in functions that never ask whether to stop, and a store's own limit bounds the memory whatever is counted
inside. The guest has no system calls but those of an empty WASI, which has a clock: the prelude takes it away from the script.
"""

from __future__ import annotations

import secrets
import struct
import threading
from contextlib import suppress
from importlib import resources
from typing import Any

from millstream.worker.scripts.engines import LimitError, Limits, MissingEngineError, StartError, keep, kept

GUEST_FILE = "_guest.wasm"
EXPORTS = (
    *("memory", "qjs_alloc", "qjs_free", "qjs_last_len", "qjs_last_ptr", "qjs_result_free", "set_memory_limit", "eval_code"),
    *("call_function", "new_string", "new_undefined", "get_string", "get_prop", "last_exception", "free_value"),
)
_IMPORTS = """(module
  (func (export "host_interrupt") (result i32) i32.const 0)
  (func (export "host_call") (param i32 i32 i32 i32 i32) (result i32) i32.const -1)
  (func (export "host_module_normalize") (param i32 i32 i32 i32 i32) (result i32) i32.const 0)
  (func (export "host_module_load") (param i32 i32 i32) (result i32) i32.const 0))"""
_STACK = 2 << 20
_LEAST, _MOST = 8 << 20, (2 << 30) - 1
"""What a guest can be given: it does not start with less, and has 32 bits."""
_ROOMY = 64 << 20
"""Memory of WebAssembly never shrinks: a guest that has grown beyond this is replaced after its batch."""
_MARK_WORDS = 8


class Compiled:
    """The guest module as machine code. Wasmtime keeps that on disk, so that only the first process of a machine compiles."""

    def __init__(self) -> None:
        try:
            import wasmtime

            code = bytes((resources.files("quickjs_rs") / GUEST_FILE).read_bytes())
        except ImportError as error:
            raise MissingEngineError(str(error)) from None
        config = wasmtime.Config()
        with suppress(wasmtime.WasmtimeError):  # a machine without a home: it compiles in each process
            config.cache = True
        config.epoch_interruption = True
        config.max_wasm_stack = _STACK
        self.engine = wasmtime.Engine(config)
        self.module = wasmtime.Module(self.engine, code)
        self.imports = wasmtime.Module(self.engine, bytes(wasmtime.wat2wasm(_IMPORTS)))


def compiled() -> Compiled:
    found: Compiled = kept("guest") or keep("guest", Compiled())
    return found


class Guest:
    """One instance of the guest with a script in it."""

    def __init__(self, prelude: str, options: str, limits: Limits) -> None:
        import wasmtime

        self._trap, self._wasm_error = wasmtime.Trap, wasmtime.WasmtimeError
        self._code = compiled()
        self._store = wasmtime.Store(self._code.engine)
        self._store.set_wasi(wasmtime.WasiConfig())
        self._store.set_limits(memory_size=min(max(limits.memory, _LEAST), _MOST))
        linker = wasmtime.Linker(self._code.engine)
        linker.define_wasi()
        self._store.set_epoch_deadline(1)
        linker.define_instance(self._store, "env", wasmtime.Instance(self._store, self._code.imports, []))
        self._exports = linker.instantiate(self._store, self._code.module).exports(self._store)
        self._memory: Any = self._exports["memory"]
        self._slot = self._c("qjs_alloc", 4)
        self._c("set_memory_limit", min(max(limits.memory, _LEAST), _MOST))
        self._mark, self._limit = 0, limits.memory
        self._run = self._start(prelude, options, limits)

    def call(self, request: str, limits: Limits, *, traced: bool = False) -> str:
        """The answer of the script's `run`. The row is always known: the script's prelude writes it where it can be read."""
        self._limit = limits.memory
        answer: str = self._timed(limits, lambda: self._text(self._call(self._run, request)))
        if self._memory.data_len(self._store) > _ROOMY:
            self._run = 0
        return answer

    @property
    def spent(self) -> bool:
        """Whether it holds so much memory that the next batch needs another one."""
        return self._run == 0

    @property
    def full(self) -> bool:
        """Whether the script has come near the end of its memory: QuickJS then throws null where it cannot make an error."""
        return bool(self._memory.data_len(self._store) > self._limit // 2)

    @property
    def alive(self) -> bool:
        """Nothing ends a guest from outside."""
        return True

    def close(self) -> None:
        self._store.close()

    def _start(self, prelude: str, options: str, limits: Limits) -> int:
        words = struct.unpack(f"<{_MARK_WORDS}I", secrets.token_bytes(4 * _MARK_WORDS))
        hooks = f"(() => {{ const at = new Uint32Array({list(words)}); return {{ mark(row) {{ at[0] = row; }}, at }}; }})()"
        code = f"(() => {{ const start = {prelude}; const hooks = {hooks}; return (options) => start(JSON.parse(options), hooks); }})()"
        run: int = self._timed(limits, lambda: self._call(self._evaluate(code), options))
        self._mark = self._find(struct.pack(f"<{_MARK_WORDS}I", *words))
        return run

    def _timed(self, limits: Limits, work: Any) -> Any:
        self._store.set_epoch_deadline(1)
        timer = threading.Timer(limits.seconds, self._code.engine.increment_epoch)
        timer.start()
        try:
            return work()
        except (self._trap, self._wasm_error) as error:
            raise LimitError(_limit_of(str(error)), self._row()) from None
        finally:
            timer.cancel()

    def _row(self) -> int | None:
        return int(struct.unpack("<I", self._read(self._mark, 4))[0]) if self._mark else None

    def _find(self, pattern: bytes) -> int:
        whole = bytes(self._memory.read(self._store, 0, self._memory.data_len(self._store)))
        return max(whole.find(pattern), 0)

    def _c(self, name: str, *args: int) -> int:
        function: Any = self._exports[name]
        result = function(self._store, *args)
        return int(result) if result is not None else 0

    def _read(self, at: int, size: int) -> bytes:
        return bytes(self._memory.read(self._store, at & 0xFFFFFFFF, (at & 0xFFFFFFFF) + size))

    def _write(self, data: bytes) -> int:
        at = self._c("qjs_alloc", max(1, len(data))) & 0xFFFFFFFF
        if not at:
            raise LimitError("memory", self._row())
        self._memory.write(self._store, data, at)
        return at

    def _result(self, status: int) -> int:
        """The handle that a call has left in the slot; an exception that the prelude did not catch is the end of the memory."""
        handle = int(struct.unpack("<i", self._read(self._slot, 4))[0])
        if status == 0:
            return handle
        self._c("last_exception", self._slot)
        message = self._message(int(struct.unpack("<i", self._read(self._slot, 4))[0]))
        if "out of memory" in message or not message:
            raise LimitError("memory", self._row())
        raise StartError(message)

    def _message(self, error: int) -> str:
        parts = []
        for name in (b"message", b"stack"):
            at = self._write(name)
            self._c("get_prop", error, at, len(name), self._slot)
            parts.append(self._text(int(struct.unpack("<i", self._read(self._slot, 4))[0]), default=""))
        return "\n".join(part for part in parts if part)

    def _evaluate(self, code: str) -> int:
        data = code.encode()
        at = self._write(data)
        handle = self._result(self._c("eval_code", at, len(data), self._slot))
        self._c("qjs_free", at, len(data))
        return handle

    def _call(self, function: int, argument: str) -> int:
        data = argument.encode()
        at = self._write(data)
        text = self._c("new_string", at, len(data))
        self._c("qjs_free", at, len(data))
        arguments, this = self._write(struct.pack("<i", text)), self._c("new_undefined")
        handle = self._result(self._c("call_function", function, this, arguments, 1, self._slot))
        self._c("qjs_free", arguments, 4)
        self._c("free_value", text)
        return handle

    def _text(self, handle: int, default: str | None = None) -> str:
        if self._c("get_string", handle):
            if default is None:
                raise LimitError("memory", self._row())
            return default
        size = self._c("qjs_last_len")
        text = self._read(self._c("qjs_last_ptr"), size).decode()
        self._c("qjs_result_free")
        self._c("free_value", handle)
        return text


def _limit_of(trap: str) -> Any:
    if "call stack exhausted" in trap:
        return "stack"
    return "time" if "interrupt" in trap else "memory"

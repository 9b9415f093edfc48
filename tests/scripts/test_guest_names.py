"""The names that the package `quickjs-rs` does not promise: a new version that lacks one is noticed here."""

import subprocess
import sys
from importlib import resources

from millstream.scripts.guest_cache import transform
from millstream.worker.scripts.guest import EXPORTS, GUEST_FILE


def test_the_guest_has_what_is_called() -> None:
    import wasmtime

    engine = wasmtime.Engine()
    config = wasmtime.Config()
    config.cache = True
    engine = wasmtime.Engine(config)
    module = wasmtime.Module(engine, bytes((resources.files("quickjs_rs") / GUEST_FILE).read_bytes()))
    assert set(EXPORTS) <= {export.name for export in module.exports}
    asked = {(each.module, each.name) for each in module.imports if each.module != "wasi_snapshot_preview1"}
    assert asked == {("env", name) for name in ("host_interrupt", "host_call", "host_module_normalize", "host_module_load")}


def test_the_stripper_takes_our_engine() -> None:
    from quickjs_rs import _wasmtime

    assert "number" not in transform("const x: number = 1;")
    assert _wasmtime._SHARED_ENGINE is not None


def test_nothing_is_imported_before_it_is_needed() -> None:
    """A check of a pipeline without scripts must not pay for them."""
    code = "import sys, millstream.transforms.script; print([name for name in ('wasmtime', 'quickjs_rs', 'deno') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

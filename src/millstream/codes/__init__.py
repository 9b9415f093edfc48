"""Every diagnostic code, what it means and what to do: the text behind `millstream explain` and `docs/errors.md`.

A code is never reused for another meaning. Up to 139 the tens say where it comes from: 0–1 the file, 2–3 the plan, 4 the machine,
5 the checkpoint, 6–7 the run, 8 functions, 9–10 Kafka, 109–139 databases; later ones were given in order; 200–209 plugins.
"""

from __future__ import annotations

from millstream.codes.code import Code
from millstream.codes.databases import DATABASES
from millstream.codes.files import FILES
from millstream.codes.kafka import KAFKA
from millstream.codes.machines import MACHINES
from millstream.codes.models import MODELS
from millstream.codes.plans import PLANS
from millstream.codes.plugins import PLUGINS
from millstream.codes.replays import REPLAYS
from millstream.codes.running import RUNNING
from millstream.codes.runs import RUNS
from millstream.codes.scripts import SCRIPTS

__all__ = ["CODES", "Code"]

CODES: dict[str, Code] = FILES | PLANS | MACHINES | RUNS | KAFKA | DATABASES | REPLAYS | RUNNING | SCRIPTS | PLUGINS | MODELS

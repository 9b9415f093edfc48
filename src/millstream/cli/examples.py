"""Examples for `--help`, by command."""

from __future__ import annotations

EXAMPLES: dict[str, tuple[str, ...]] = {
    "run": (
        "millstream run orders.yaml",
        "millstream run orders.yaml --trigger available_now",
        "millstream run orders.yaml --inspect    with a page in the browser",
        "millstream run orders.yaml clicks.yaml    both in one Spark",
        "millstream run orders.yaml --set master=yarn --log-format json",
    ),
    "check": (
        "millstream check orders.yaml",
        "millstream check pipelines/    all pipelines in a folder and below it",
        "millstream check orders.yaml --format json",
    ),
    "plan": ("millstream plan orders.yaml", "millstream plan orders.yaml --offline    fast, without Spark"),
    "preview": ("millstream preview orders.yaml", "millstream preview orders.yaml big --rows 5"),
    "graph": ("millstream graph orders.yaml", "millstream graph orders.yaml --format mermaid > orders.mmd"),
    "test": ("millstream test orders.yaml", "millstream test orders.yaml clicks.yaml --format json"),
    "init": ("millstream init shop", "millstream init --list", "millstream init alerts --template kafka"),
    "doctor": ("millstream doctor",),
    "fetch": ("millstream fetch kafka    for machines without a network",),
    "schema": ("millstream schema > schema.json    for editors",),
    "functions": ("millstream functions", "millstream functions keccak256"),
    "types": ("millstream types orders.yaml priced > row.d.ts",),
    "plugin new": ("millstream plugin new sink my_sink", "millstream plugin new transform acme.mask --folder mask"),
    "plugin list": ("millstream plugin list", "millstream plugin list sink --all"),
    "docs": ("millstream docs kafka", "millstream docs my.sink --plugin my_sink.py"),
    "explain": ("millstream explain MS012", "millstream explain 12"),
    "list": ("millstream list", "millstream list --format json"),
    "top": ("millstream top orders", "millstream top orders --once"),
    "tap": ("millstream tap orders big", "millstream tap orders big --limit 100 --format json | jq .amount"),
    "inspect": ("millstream inspect orders",),
    "stop": ("millstream stop orders",),
    "pause": ("millstream pause orders",),
    "resume": ("millstream resume orders",),
    "savepoint": ("millstream savepoint orders before-v2",),
    "checkpoint list": ("millstream checkpoint list orders.yaml",),
    "checkpoint verify": ("millstream checkpoint verify orders.yaml",),
    "checkpoint copy": ("millstream checkpoint copy orders.yaml before-v2",),
    "state show": ("millstream state show orders.yaml totals --key ann",),
    "store list": ("millstream store list orders.yaml",),
    "store get": ("millstream store get orders.yaml NAMESPACE KEY",),
    "store rm": ("millstream store rm orders.yaml NAMESPACE KEY",),
    "table list": ("millstream table list alerts.yaml watched",),
    "table get": ("millstream table get alerts.yaml watched ann",),
    "table put": ("millstream table put alerts.yaml watched ann tier=gold",),
    "table delete": ("millstream table delete alerts.yaml watched ann bob",),
    "table load": ("millstream table load alerts.yaml watched watched.csv",),
    "dev kafka": ("millstream dev kafka    Ctrl-C stops it and deletes its data",),
    "dev postgres": ("millstream dev postgres    Ctrl-C stops it and deletes its data",),
}


def epilog(command: str) -> str | None:
    """The text below the help of a command. Empty lines keep the examples on separate lines."""
    lines = EXAMPLES.get(command)
    return "\n\n".join(["Examples:", *lines]) if lines else None

"""Pins the ids of the cluster and of its topics at the first start: offsets are valid only in one cluster, and in one topic until it is
deleted. So an address that leads to another cluster is detected before a message is lost or repeated.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Literal

from millstream.clients.kafka import KafkaAdmin, Topic
from millstream.errors import Diagnostic, RunError
from millstream.plan.components import NodeContext

_FILE = "cluster.json"


def was_reached(context: NodeContext) -> bool:
    """Whether the cluster has answered at an earlier start."""
    return context.storage.exists(_FILE)


def require_same(admin: KafkaAdmin, topics: Mapping[str, Topic], context: NodeContext, on_data_loss: Literal["fail", "continue"]) -> None:
    """Refuse another cluster, and topics that were created again."""
    ids = {name: topic.id for name, topic in topics.items()}
    now, data = admin.cluster(), context.storage.read(_FILE)
    if data is None:
        context.storage.put(_FILE, json.dumps({"cluster": now, "topics": ids}).encode())
        return
    pinned = json.loads(data)
    if pinned["cluster"] != now:
        message = f"`{context.name}` has read the Kafka cluster `{pinned['cluster']}` until now, and this one is `{now}`"
        raise RunError(
            Diagnostic("MS094", message, help="correct `bootstrap_servers`, or `--reset QUERY` reads the new one from the start")
        )
    anew = [name for name, id_ in ids.items() if pinned["topics"].get(name, id_) != id_]
    if anew and on_data_loss == "fail":
        message = f"topic `{anew[0]}` was deleted and created again since `{context.name}` read it: its offsets refer to other messages"
        raise RunError(Diagnostic("MS093", message, help="`--reset QUERY` reads it from the start; `on_data_loss: continue` continues"))
    context.storage.put(_FILE, json.dumps({"cluster": now, "topics": {**pinned["topics"], **ids}}).encode())

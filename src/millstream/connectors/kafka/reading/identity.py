"""Offsets mean something in one cluster, and in one topic as long as it is not deleted and made again. Both have ids: they are pinned
at the first start, so that an address which leads elsewhere is found before it loses or repeats a message.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Literal

from millstream.clients.kafka import KafkaAdmin, Topic
from millstream.errors import Diagnostic, RunError
from millstream.plan.components import NodeContext

_FILE = "cluster.json"


def known(context: NodeContext) -> bool:
    """Whether the cluster has answered at an earlier start."""
    return context.storage.exists(_FILE)


def require_same(admin: KafkaAdmin, topics: Mapping[str, Topic], context: NodeContext, on_data_loss: Literal["fail", "continue"]) -> None:
    """Refuse another cluster, and topics that were made anew."""
    ids = {name: topic.id for name, topic in topics.items()}
    now, data = admin.cluster(), context.storage.read(_FILE)
    if data is None:
        context.storage.put(_FILE, json.dumps({"cluster": now, "topics": ids}).encode())
        return
    pinned = json.loads(data)
    if pinned["cluster"] != now:
        message = f"`{context.name}` has read another Kafka cluster until now: `{pinned['cluster']}`, and this one is `{now}`"
        raise RunError(
            Diagnostic("MS094", message, help="correct `bootstrap_servers`, or `--reset QUERY` reads the new one from the start")
        )
    anew = [name for name, id_ in ids.items() if pinned["topics"].get(name, id_) != id_]
    if anew and on_data_loss == "fail":
        message = f"topic `{anew[0]}` was deleted and made again since `{context.name}` read it: its offsets mean other messages"
        raise RunError(Diagnostic("MS093", message, help="`--reset QUERY` reads it from the start; `on_data_loss: continue` goes on"))
    context.storage.put(_FILE, json.dumps({"cluster": now, "topics": {**pinned["topics"], **ids}}).encode())

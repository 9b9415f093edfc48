"""Recognises failures of Spark's Kafka connector: messages, topics and brokers."""

from __future__ import annotations

import re

from millstream.formats.malformed import ADVICE, is_malformed
from millstream.plan.components.failure import Failure

_TOO_LARGE = "raise `max_message_size` and the topic's `max.message.bytes`; or `on_error: drop` or `{dead_letter: SINK}` for such rows"


_OUTAGE = re.compile(r"kafka\.common\.errors\.(?:Timeout|Disconnect)Exception([^\n]*)")
_READING = re.compile(r"before the position for partition|KafkaOffsetReader|KafkaDataConsumer|InternalKafkaConsumer")
"""Only a source reads positions and offsets."""


def recognise_source(failure: str, address: str) -> Failure | None:
    """Lost messages, a deleted topic, missing permissions, and brokers that do not answer."""
    if "KAFKA_DATA_LOSS" in failure or "Some data may have been lost" in failure:
        said = re.search(r"\[KAFKA_DATA_LOSS\S*\]\s*([^\n]*?)(?:\s*SQLSTATE|\n|$)", failure)
        help_ = "`on_data_loss: continue` continues with the remaining messages"
        detail = said[1][:1].lower() + said[1][1:].rstrip(".") if said else ""
        return Failure("MS093", "messages that {node} has not read yet were deleted", detail=detail, help=help_)
    refused = re.search(r"(?:Topic|Group|Cluster)AuthorizationException: ([^\n]+)", failure)
    if refused:
        return Failure("MS092", f"Kafka refuses access to {{node}}: {refused[1].lower()}", help="ask for the permission to read")
    if "UnknownTopicOrPartitionException" in failure:
        return Failure("MS091", "a topic that {node} reads no longer exists", help="it may have been deleted while the pipeline ran")
    if is_malformed(failure):
        return Failure("MS062", "a message of {node} does not fit its format or schema", "schema", help=ADVICE)
    said = _OUTAGE.search(failure)
    if said is None:
        return None
    message = f"Kafka at `{address}` does not answer, so {{node}} cannot be read"
    return Failure("MS090", message, detail=said[1].strip(" :"), help="see that its brokers run and can be reached", temporary=True)


def recognise_outage(failure: str) -> Failure | None:
    """A broker that does not answer a sink."""
    said = _OUTAGE.search(failure)
    own = said is not None and not _READING.search(failure)
    return Failure("MS069", f"{{node}} had a temporary failure: {said[0]}", temporary=True) if said and own else None


def refusal_help(code: str) -> str:
    """Advice for a row that the sink's expressions refuse."""
    return _TOO_LARGE if code == "MS097" else ""

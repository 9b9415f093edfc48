"""The Python front door: an environment, streams, and the flow that they become once they end in a sink."""

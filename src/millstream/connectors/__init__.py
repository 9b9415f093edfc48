"""Sources and sinks, one package per system."""

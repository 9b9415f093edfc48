"""Where the time of epochs goes: spans on the driver, the JVM's own counters, and sampled stacks. Nothing of it is in the product."""

"""From plan to Spark: Java and the JVM, the session, jars, lowering, queries, epochs, checkpoints."""

"""Java, the JVM and the Spark session: found, started, tuned, stopped."""

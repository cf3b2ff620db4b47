"""Streams on Apache Kafka, for several machines. The only home of kafka-python, which is loaded at its first use."""

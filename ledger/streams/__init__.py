"""How frames travel between processes: one small interface, a local stream, Kafka, and a spool before it."""

"""The SQL side of the store: engine, tables and leases."""

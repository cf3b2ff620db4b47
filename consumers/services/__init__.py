"""The consumers as services: members of a group that share partitions, one lease each, until they are stopped."""

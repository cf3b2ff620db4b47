"""Commands about this installation: demo, servers, settings, health."""

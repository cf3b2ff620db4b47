"""Questions over many criteria, models or draws: sweeps, matrices, robustness, curves, and the simulator."""

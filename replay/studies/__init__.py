"""Questions over many criteria, makers or draws: sweeps, matrices, robustness, curves, and the simulator."""

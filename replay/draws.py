"""Where random numbers come from: a generator for each problem, so that nothing depends on who draws first."""

import hashlib

import numpy as np


def generator(seed: int, problem: str) -> np.random.Generator:
    """The random numbers of one problem under a seed, 0 or larger: its own, whoever draws them and in what order."""
    words = np.frombuffer(hashlib.sha256(problem.encode()).digest(), dtype="<u4")
    return np.random.Generator(np.random.PCG64([seed, *words.tolist()]))

"""Random numbers: each problem has its own."""

import hashlib

import numpy as np

from lapledger.replay.devices.questions import generator


def test_a_problem_has_numbers_of_its_own():
    """Two seeds and two names: four streams, each the same whenever it is asked for."""
    drawn = [tuple(generator(seed, name).random(3)) for seed in (0, 1) for name in ("a", "b", "a")]
    assert drawn[0] == drawn[2] != drawn[3] == drawn[5]
    assert len(set(drawn)) == 4


def test_the_stream_is_numpys_over_seed_and_digest():
    """PCG64 seeded with the seed and the eight words of the id's SHA-256: the draws that users have seen stay."""
    digest = hashlib.sha256(b"two sum").digest()
    key = [int.from_bytes(digest[at : at + 4], "little") for at in range(0, 32, 4)]
    expected = np.random.Generator(np.random.PCG64([7, *key])).random(5)
    assert generator(7, "two sum").random(5).tolist() == expected.tolist()

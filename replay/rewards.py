"""Rewards in [-1, 1] from the gates c and g.

The same function serves the online rewarder and the offline replay. No measurement or threshold is looked at here.
"""

import numpy as np

from replay.criteria import Criterion
from replay.measurements import Bytes, Floats


def reward(c: Bytes, g: Bytes, criterion: Criterion) -> Floats:
    """Rewards in [-1, 1], shape of c and g (gates: 1, 0, or -1 undecided); nan where undecided.

    With signed gates c~, g~ in {-1, +1}: `collapsed-binary` is min(c~, g~), so one gate known to fail settles it;
    `correctness-only` is c~ whatever g.
    """
    c = np.asarray(c)
    gates = [c] if criterion.reward == "correctness-only" else [c, np.asarray(g)]
    failed = np.any([gate == 0 for gate in gates], axis=0)
    open_ = np.any([gate == -1 for gate in gates], axis=0)
    return np.where(failed, -1.0, np.where(open_, np.nan, 1.0))

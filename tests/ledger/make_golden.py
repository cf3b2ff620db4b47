"""Writes the golden sample of each event type that has none yet: `python -m tests.ledger.make_golden`.

A sample that exists is a contract and is never written again.
"""

import json

from lapledger.ledger.events import EVENTS
from lapledger.ledger.frames.frame import encode
from tests.ledger.facts import GOLDEN, sample_frame


def main() -> None:
    """Makes the missing samples."""
    for (name, version), declared in EVENTS.items():
        path = GOLDEN / f"{name}.v{version}.arrow"
        if not path.exists():
            record = encode(sample_frame(declared))
            path.write_bytes(record.payload)
            path.with_suffix(".json").write_text(json.dumps(dict(record.headers), indent=1, sort_keys=True) + "\n")
            print(path.name)


if __name__ == "__main__":
    main()

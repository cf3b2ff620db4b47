"""Whether a bundle is made of the parts that it names, and whether bundle.json says only what is known or recomputed.

Each check yields one line for everything that does not hold.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator

from lapledger.consumers.exports.replayer.facts import PROGRAMS, Bundle
from lapledger.consumers.exports.replayer.known import ABOUT, FORMAT, KERNEL, is_part

ALONE = "bundle.json"
"""The one part that no digest in the bundle covers: what it says is recomputed, or printed to be compared."""


def check_about(bundle: Bundle) -> Iterator[str]:
    """bundle.json says all that it must and nothing else, in the format and by the kernel that are known here."""
    about = bundle.about
    for name in sorted({*ABOUT} ^ {*about}):
        yield f"{ALONE}: {name} is {'missing' if name in ABOUT else 'not known here'}"
    for name, known in (("format", FORMAT), ("kernel", KERNEL)):
        if name in about and about[name] != known:
            yield f"{ALONE}: its {name} is {about[name]}, and this verifier knows {known}"
    opened = bundle.first("campaign.opened", ("campaign_id",), "campaign_id")
    if "campaign" in about and about["campaign"] not in opened:
        yield f"{ALONE}: its campaign {about['campaign']} is not in the bundle"


def check_parts(bundle: Bundle) -> Iterator[str]:
    """Every file is there once with the bytes that bundle.json names, and none that a bundle does not have."""
    counts = Counter(bundle.zip.namelist())
    told, names = bundle.about["parts"], {*counts} - {ALONE}
    yield from (f"{name}: it is in the bundle {count} times" for name, count in counts.items() if count > 1)
    for name in sorted({*told} ^ names):
        yield f"{name}: {'lost' if name in told else 'not a part of the bundle'}"
    for name in sorted({*told} & names):
        if not is_part(name):
            yield f"{name}: no part that a bundle has"
        if hashlib.sha256(bundle.zip.read(name)).hexdigest() != told[name]:
            yield f"{name}: its bytes are not those that {ALONE} names"


def check_blobs(bundle: Bundle) -> Iterator[str]:
    """Every text has the bytes that its name says, and an event names it."""
    replays = bundle.events("replay.completed", ("verdicts_blob", "flips_blob"))
    columns = [bundle.events("program.added", PROGRAMS)["source_blob"], replays["verdicts_blob"], replays["flips_blob"]]
    named = {f"blobs/{digest}" for column in columns for digest in column.to_pylist()}
    for name in bundle.zip.namelist():
        if name.startswith("blobs/"):
            if f"blobs/{hashlib.sha256(bundle.zip.read(name)).hexdigest()}" != name:
                yield f"{name}: its bytes are not those that its name says"
            if name not in named:
                yield f"{name}: no event in the bundle names it"

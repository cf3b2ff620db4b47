"""Whether a bundle holds what its ledger held: parts, frames, chains, cut, head and timings, all recomputed.

Each check yields one line for everything that does not hold.
"""

import argparse
import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from lapledger.ledger.proof.bundles.verifier.bundle_file import BundleFile, Partition, counts_of
from lapledger.ledger.proof.bundles.verifier.canonical import frame_digest, plain, rows_bytes, sha
from lapledger.ledger.proof.bundles.verifier.known import ABOUT, COLUMNS, FORMAT, is_part

MANIFEST = "bundle.json"
"""The part that no digest in the bundle covers: its values are recomputed, or printed to be compared."""
_ENDS = ("attempt_id", "timings", "timings_digest")


def check_about(bundle: BundleFile, keys: Sequence[str]) -> Iterator[str]:
    """bundle.json has the keys that it must have and no others, and a known format; `keys` are those of its kind."""
    known = {*ABOUT, *keys}
    for name in sorted(known ^ {*bundle.about}):
        yield f"{MANIFEST}: {name} is {'missing' if name in known else 'not known here'}"
    if bundle.about.get("format", FORMAT) != FORMAT:
        yield f"{MANIFEST}: its format is {bundle.about['format']}; this verifier knows {FORMAT}"


def check_parts(bundle: BundleFile, patterns: Sequence[str]) -> Iterator[str]:
    """Every file is there once with the digest in bundle.json, and none that a bundle of this kind does not have."""
    counts = Counter(bundle.zip.namelist())
    named, names = bundle.about["parts"], {*counts} - {MANIFEST}
    yield from (f"{name}: it is in the bundle {count} times" for name, count in counts.items() if count > 1)
    for name in sorted({*named} ^ names):
        yield f"{name}: {'missing' if name in named else 'not a part of the bundle'}"
    for name in sorted({*named} & names):
        if not is_part(name, patterns):
            yield f"{name}: not a part that a bundle has"
        if hashlib.sha256(bundle.zip.read(name)).hexdigest() != named[name]:
            yield f"{name}: its bytes do not match {MANIFEST}"


def check_blobs(bundle: BundleFile, required: set[str], allowed: set[str]) -> Iterator[str]:
    """Every blob gives the digest that it is named by, none that is required is missing, and an event names each."""
    blobs = {name.removeprefix("blobs/") for name in bundle.names("blobs")}
    for name in sorted(blobs):
        if hashlib.sha256(bundle.zip.read(f"blobs/{name}")).hexdigest() != name:
            yield f"blobs/{name}: its bytes do not match its name"
        if name not in required | allowed:
            yield f"blobs/{name}: no event in the bundle names it"
    for name in sorted(required - blobs):
        yield f"blobs/{name}: it is missing, and an event names it"


def check_frames(bundle: BundleFile) -> Iterator[str]:
    """Every frame is there once, its rows give its digest, and it is in its partition's chain."""
    chains, numbers_seen = chains_of(bundle), []
    frames = bundle.frames.to_pylist()
    for name in bundle.names("events"):
        kind, version = name.split("/")[1].removesuffix(".parquet").rsplit(".v", 1)
        table = bundle.table(name).combine_chunks()
        numbers = table["_frame"].to_numpy()
        bounds = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]
        columns = table.drop_columns(["_frame", "_row"])
        if columns_digest(kind, columns) != COLUMNS[f"{kind}.v{version}"]:
            yield f"{name}: its columns are not those of {kind}"
        lengths = np.diff(bounds)
        if not np.array_equal(table["_row"].to_numpy(), np.arange(len(numbers)) - np.repeat(bounds[:-1], lengths)):
            yield f"{name}: its rows are not in the order of their frames"
        for start, end in pairwise(bounds):
            numbers_seen.append(int(numbers[start]))
            rows = columns.slice(start, end - start)
            yield from _check_frame(frames[int(numbers[start])], rows, chains, (kind, version))
    if sorted(numbers_seen) != list(range(len(frames))):
        yield (
            f"frames.parquet: {len(frames)} frames are named, {len({*numbers_seen})} have rows,"
            f" {len(numbers_seen)} times in all"
        )
    if len({(frame["stream"], frame["partition"], frame["admission"]) for frame in frames}) != len(frames):
        yield "frames.parquet: two frames have the same position"


def columns_digest(kind: str, rows: pa.Table) -> str:
    """The digest of the names and types of columns; Parquet has its own name for the items of a list."""
    return sha(kind, *(f"{field.name} {field.type}".replace("<element:", "<item:") for field in rows.schema))


def _check_frame(
    frame: Mapping[str, Any], rows: pa.Table, chains: Mapping[Partition, list[str]], kind: tuple[str, str]
) -> Iterator[str]:
    names = {"lapversion": kind[1], "lapepoch": frame["epoch"], "lapprevious": frame["previous"]}
    headers = {f"ce_{name}": value for name, value in names.items()}
    headers |= {"ce_type": kind[0], "ce_subject": frame["key"], "ce_lapsequence": str(frame["sequence"])}
    batch = rows.combine_chunks().to_batches()[0]
    partition, admission = (frame["stream"], frame["partition"]), frame["admission"]
    where = f"{kind[0]} {partition[0]}/{partition[1]} admission {admission}"
    if (frame["type"], str(frame["version"])) != kind or rows.num_rows != frame["rows"]:
        yield f"{where}: its rows are not those of one complete frame"
    elif frame_digest(headers, batch) != frame["digest"]:
        yield f"{where}: its rows do not give its digest"
    chain = chains.get(partition, [])
    if admission < 1 or chain[admission - 1 : admission] != [frame["digest"]]:
        yield f"{where}: the chain has another digest at its position"


def chains_of(bundle: BundleFile) -> dict[Partition, list[str]]:
    """The digests of all frames of each partition up to the cut, of frames that are not in the bundle too."""
    chains = {}
    for name in bundle.names("chains"):
        stream, partition, _ = name.split("/")[1].split(".")
        chains[stream, int(partition)] = bundle.zip.read(name).decode().split()
    return chains


def check_cut(bundle: BundleFile) -> Iterator[str]:
    """The cut is as long as the chains, and the one that the bundle's head names."""
    cut, cut_of_head = bundle.about["cut"], bundle.about["head"].partition("@")[2]
    lengths = {partition: len(chain) for partition, chain in chains_of(bundle).items()}
    if dict.fromkeys(lengths, 0) | counts_of(cut) != lengths:
        yield f"{MANIFEST}: its cut {cut} is not that of its chains"
    if cut != cut_of_head:
        yield f"{MANIFEST}: its cut {cut} is not that of its head, {cut_of_head}"


def check_own_head(bundle: BundleFile) -> Iterator[str]:
    """The bundle's head follows from its chains and all of its manifests."""
    return check_head(bundle, bundle.about["head"], all_manifests=True)


_HEAD = re.compile(r"[0-9a-f]{64}@[a-z]+=[0-9]+(\.[0-9]+)*(,[a-z]+=[0-9]+(\.[0-9]+)*)*")


def head_text(text: str) -> str:
    """A head as a person gives it; ArgumentTypeError when it is none, so that no bundle is blamed for a slip."""
    if not _HEAD.fullmatch(text.strip()):
        raise argparse.ArgumentTypeError(f"{text[:80]!r} is not a head; copy what `lap verify --print-head` printed")
    return text.strip()


def check_head(bundle: BundleFile, written: str, *, all_manifests: bool = False) -> Iterator[str]:
    """A head, HASH@CUT, follows from the chains at its cut with some prefix of the chain of manifests, or with all."""
    head, _, cut = written.partition("@")
    chains = chains_of(bundle)
    counts = dict.fromkeys(chains, 0) | counts_of(cut)
    values: list[object] = []
    for partition, count in sorted(counts.items()):
        running = sha("head", bundle.about["ledger"], *partition)
        for digest in chains[partition][:count]:
            running = sha("head", running, digest)
        values += [*partition, count, running]
    if any(counts[partition] > len(chain) for partition, chain in chains.items()):
        yield f"the head {head} is of a later cut than the bundle: {cut}"
        return
    links = list(enumerate(["", *bundle.about["manifests"]]))
    links = links[-1:] if all_manifests else links
    if head not in [sha("ledger", number, link, *values) for number, link in links]:
        yield f"the head {head} at {cut} does not follow from the chains"
    for frame in bundle.frames.to_pylist():
        if frame["admission"] > counts[frame["stream"], frame["partition"]]:
            yield f"{frame['type']} {frame['stream']} admission {frame['admission']}: it was admitted after the head"
            return


def timings_digest(rows: pa.Table) -> str:
    """The digest of the timings of one attempt, in the order of their repetitions."""
    columns = [plain(column.combine_chunks()) for column in rows.columns]
    return hashlib.sha256(rows_bytes(columns, rows.num_rows)).hexdigest()


def check_timings(bundle: BundleFile) -> Iterator[str]:
    """Every attempt has exactly the timings that its end names."""
    ends = {row["attempt_id"]: row for row in bundle.events("execution.finished", _ENDS).to_pylist()}
    timed: set[str] = set()
    for version in bundle.tables("timing.measured"):
        table = version.drop_columns(["_frame", "_row"]).combine_chunks()
        ids = np.asarray(table["attempt_id"].to_pylist(), dtype=object)
        order = np.lexsort((table["repetition"].to_numpy(), ids.astype(str)))
        table, ids = table.take(order).combine_chunks(), ids[order]
        bounds = [0, *(np.flatnonzero(ids[1:] != ids[:-1]) + 1).tolist(), len(ids)] if len(ids) else [0]
        for start, end in pairwise(bounds):
            timed.add(ids[start])
            yield from _check_attempt(ends.get(ids[start]), table.slice(start, end - start), ids[start])
    for attempt, finished in ends.items():
        if finished["timings"] and attempt not in timed:
            yield f"attempt {attempt}: its timings are not in the bundle"


def _check_attempt(finished: Mapping[str, Any] | None, rows: pa.Table, attempt: str) -> Iterator[str]:
    if finished is None:
        return  # it never finished, and counts for nothing
    if (finished["timings"], finished["timings_digest"]) != (rows.num_rows, timings_digest(rows)):
        yield f"attempt {attempt}: its timings do not match the digest in its end"

"""Whether a bundle is what it says: parts, frames, chains, the head, timings and criteria, all recomputed.

Each check yields one line for everything that does not hold; nothing in the bundle is believed.
"""

import hashlib
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from consumers.exports.portable.facts import Bundle, counts_of
from ledger.proof.bundle_verifier import frame_digest, place_of, plain, rows_bytes, sha

ALONE = "bundle.json"
"""The one part that no digest in the bundle covers: what it says is recomputed, or printed to be compared."""


def check_parts(bundle: Bundle) -> Iterator[str]:
    """Every file is there with the bytes that `bundle.json` names, and no other."""
    told, names = bundle.about["parts"], {*bundle.zip.namelist()} - {ALONE}
    for name in sorted({*told} ^ names):
        yield f"{name}: {'lost' if name in told else 'not a part of the bundle'}"
    for name in sorted({*told} & names):
        if hashlib.sha256(bundle.zip.read(name)).hexdigest() != told[name]:
            yield f"{name}: its bytes are not those that bundle.json names"


def check_blobs(bundle: Bundle) -> Iterator[str]:
    """Every text has the bytes that its name says; events name texts by their SHA-256."""
    for name in bundle.zip.namelist():
        if name.startswith("blobs/") and f"blobs/{hashlib.sha256(bundle.zip.read(name)).hexdigest()}" != name:
            yield f"{name}: its bytes are not those that its name says"


def check_frames(bundle: Bundle) -> Iterator[str]:
    """Every frame's rows give its digest, and it has its place in its partition's chain."""
    chains = chains_of(bundle)
    frames = bundle.frames.to_pylist()
    seen = 0
    for name in bundle.kinds():
        kind, version = name.split("/")[1].removesuffix(".parquet").rsplit(".v", 1)
        table = bundle.table(name).combine_chunks()
        numbers = table["_frame"].to_numpy()
        edges = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]
        columns = table.drop_columns(["_frame", "_row"])
        for start, end in pairwise(edges):
            seen += 1
            yield from _check_frame(
                frames[int(numbers[start])], columns.slice(start, end - start), chains, (kind, version)
            )
    if seen != len(frames):
        yield f"frames.parquet: {len(frames)} frames are named, {seen} have rows"


def _check_frame(
    frame: Mapping[str, Any], rows: pa.Table, chains: Mapping[tuple[str, int], list[str]], kind: tuple[str, str]
) -> Iterator[str]:
    names = {"lapversion": kind[1], "lapepoch": frame["epoch"], "lapprevious": frame["previous"]}
    headers = {f"ce_{name}": value for name, value in names.items()}
    headers |= {"ce_type": kind[0], "ce_subject": frame["key"], "ce_lapsequence": str(frame["sequence"])}
    batch = rows.combine_chunks().to_batches()[0]
    place = frame["stream"], frame["partition"]
    where = f"{kind[0]} {place[0]}/{place[1]} admission {frame['admission']}"
    if (frame["type"], str(frame["version"])) != kind or rows.num_rows != frame["rows"]:
        yield f"{where}: its rows are not those of one whole frame"
    elif frame_digest(headers, batch) != frame["digest"]:
        yield f"{where}: its rows do not give its digest"
    if chains.get(place, [])[frame["admission"] - 1 : frame["admission"]] != [frame["digest"]]:
        yield f"{where}: it is not in the chain at its place"


def chains_of(bundle: Bundle) -> dict[tuple[str, int], list[str]]:
    """The digests of all frames of each partition up to the cut, those of frames that are not in the bundle too."""
    names = [name for name in bundle.zip.namelist() if name.startswith("chains/")]
    return {place_of(name): bundle.zip.read(name).decode().split() for name in names}


def check_head(bundle: Bundle, word: str) -> Iterator[str]:
    """The head follows from the chains at its cut, with some length of the chain of manifests."""
    head, _, cut = word.partition("@")
    chains = chains_of(bundle)
    counts = dict.fromkeys(chains, 0) | counts_of(cut)
    words: list[object] = []
    for place, count in sorted(counts.items()):
        running = sha("head", bundle.about["ledger"], *place)
        for digest in chains[place][:count]:
            running = sha("head", running, digest)
        words += [*place, count, running]
    if any(counts[place] > len(chain) for place, chain in chains.items()):
        yield f"the head {head} is of a later cut than the bundle: {cut}"
        return
    links = ["", *bundle.about["manifests"]]
    if head not in [sha("ledger", number, link, *words) for number, link in enumerate(links)]:
        yield f"the head {head} at {cut} does not follow from the chains"
    for frame in bundle.frames.to_pylist():
        if frame["admission"] > counts[frame["stream"], frame["partition"]]:
            yield f"{frame['type']} {frame['stream']} admission {frame['admission']}: it was admitted after the head"
            return


def check_timings(bundle: Bundle) -> Iterator[str]:
    """Every attempt has exactly the timings that its end names."""
    ends = {row["attempt_id"]: row for row in bundle.events("execution.finished", _ENDS).to_pylist()}
    found: set[str] = set()
    for name in bundle.kinds():
        if name.startswith("events/timing.measured."):
            table = bundle.table(name).drop_columns(["_frame", "_row"]).combine_chunks()
            attempts = np.asarray(table["attempt_id"].to_pylist(), dtype=object)
            order = np.lexsort((table["repetition"].to_numpy(), attempts.astype(str)))
            sorted_ = table.take(order).combine_chunks()
            words = attempts[order]
            edges = [0, *(np.flatnonzero(words[1:] != words[:-1]) + 1).tolist(), len(words)] if len(words) else [0]
            for start, end in pairwise(edges):
                found.add(words[start])
                yield from _check_attempt(ends.get(words[start]), sorted_.slice(start, end - start), words[start])
    for attempt, end in ends.items():
        if end["timings"] and attempt not in found:
            yield f"attempt {attempt}: its timings are not in the bundle"


_ENDS = ("attempt_id", "timings", "timings_digest")


def _check_attempt(end: Mapping[str, Any] | None, rows: pa.Table, attempt: str) -> Iterator[str]:
    if end is None:
        return  # it never finished, and counts for nothing
    columns = [plain(column.combine_chunks()) for column in rows.columns]
    digest = hashlib.sha256(rows_bytes(columns, rows.num_rows)).hexdigest()
    if end["timings"] != rows.num_rows or end["timings_digest"] != digest:
        yield f"attempt {attempt}: its timings are not those that its end names"

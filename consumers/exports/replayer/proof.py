"""Whether the facts of a bundle are what its ledger held: frames, chains, cut, head and timings, all recomputed.

Each check yields one line for everything that does not hold; nothing in the bundle is believed.
"""

import hashlib
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from lapledger.consumers.exports.replayer.facts import Bundle, counts_of
from lapledger.consumers.exports.replayer.known import COLUMNS
from lapledger.ledger.proof.bundles.bundle_verifier import frame_digest, place_of, plain, rows_bytes, sha


def check_frames(bundle: Bundle) -> Iterator[str]:
    """Every frame is there once, its rows give its digest, and it has its place in its partition's chain."""
    chains, seen = chains_of(bundle), []
    frames = bundle.frames.to_pylist()
    for name in bundle.kinds():
        kind, version = name.split("/")[1].removesuffix(".parquet").rsplit(".v", 1)
        table = bundle.table(name).combine_chunks()
        numbers = table["_frame"].to_numpy()
        edges = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]
        columns = table.drop_columns(["_frame", "_row"])
        if _columns(kind, columns) != COLUMNS[f"{kind}.v{version}"]:
            yield f"{name}: its columns are not those of {kind}"
        lengths = np.diff(edges)
        if not np.array_equal(table["_row"].to_numpy(), np.arange(len(numbers)) - np.repeat(edges[:-1], lengths)):
            yield f"{name}: its rows are not in the order of their frames"
        for start, end in pairwise(edges):
            seen.append(int(numbers[start]))
            yield from _check_frame(
                frames[int(numbers[start])], columns.slice(start, end - start), chains, (kind, version)
            )
    if sorted(seen) != list(range(len(frames))):
        yield f"frames.parquet: {len(frames)} frames are named, {len({*seen})} have rows, {len(seen)} times in all"
    if len({(one["stream"], one["partition"], one["admission"]) for one in frames}) != len(frames):
        yield "frames.parquet: two frames are named at one place"


def _columns(kind: str, rows: pa.Table) -> str:
    """The digest of the names and types of columns; Parquet has a word of its own for what a list is made of."""
    return sha(kind, *(f"{field.name} {field.type}".replace("<element:", "<item:") for field in rows.schema))


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
    before = max(frame["admission"] - 1, 0)
    if chains.get(place, [])[before : frame["admission"]] != [frame["digest"]]:
        yield f"{where}: it is not in the chain at its place"


def chains_of(bundle: Bundle) -> dict[tuple[str, int], list[str]]:
    """The digests of all frames of each partition up to the cut, those of frames that are not in the bundle too."""
    names = [name for name in bundle.zip.namelist() if name.startswith("chains/")]
    return {place_of(name): bundle.zip.read(name).decode().split() for name in names}


def check_cut(bundle: Bundle) -> Iterator[str]:
    """The cut is as long as the chains, and the one that the bundle's head names."""
    cut, of_head = bundle.about["cut"], bundle.about["head"].partition("@")[2]
    lengths = {place: len(chain) for place, chain in chains_of(bundle).items()}
    counts = dict.fromkeys(lengths, 0) | counts_of(cut)
    if counts != lengths:
        yield f"bundle.json: its cut {cut} is not that of its chains"
    if cut != of_head:
        yield f"bundle.json: its cut {cut} is not that of its head, {of_head}"


def check_own_head(bundle: Bundle) -> Iterator[str]:
    """The bundle's head follows from its chains and all of its manifests."""
    return check_head(bundle, bundle.about["head"], own=True)


def check_head(bundle: Bundle, word: str, *, own: bool = False) -> Iterator[str]:
    """A head follows from the chains at its cut, with some length of the chain of manifests; the `own` one with all."""
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
    links = list(enumerate(["", *bundle.about["manifests"]]))
    if head not in [sha("ledger", number, link, *words) for number, link in (links[-1:] if own else links)]:
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

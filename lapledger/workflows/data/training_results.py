"""Results of training that somebody hands in, to compare the simulator with: one small CSV file, read with care."""

import csv
import math
from pathlib import Path

from lapledger.ledger.errors import UserError

LARGEST_BYTES = 1_000_000


def read_results(path: str) -> dict[str, float]:
    """Results of training by criterion, from a CSV file of `criterion,value`; its first line may be a header.

    UserError where it cannot be read, is larger than LARGEST_BYTES, holds no result, or holds anything else.
    """
    try:
        with Path(path).open("rb") as file:
            data = file.read(LARGEST_BYTES + 1)
        text = data.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            f"--training-results {path}: {getattr(error, 'strerror', None) or error}; give a CSV file"
        ) from None
    if len(data) > LARGEST_BYTES:
        raise UserError(f"--training-results {path}: larger than {LARGEST_BYTES} bytes; give lines of criterion,value")
    return _results(path, text)


def _results(path: str, text: str) -> dict[str, float]:
    results: dict[str, float] = {}
    for number, row in enumerate(csv.reader(text.splitlines()), start=1):
        cells = [cell.strip() for cell in row]
        value = _finite(cells[1]) if len(cells) == 2 else None
        if value is None and (not any(cells) or (number == 1 and len(cells) == 2)):
            continue
        if value is None or cells[0] in results:
            raise UserError(f"--training-results {path}, line {number}: write criterion,value, each criterion once")
        results[cells[0]] = value
    if not results:
        raise UserError(f"--training-results {path}: holds no result; give lines of criterion,value")
    return results


def _finite(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None

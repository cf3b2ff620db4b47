"""What this verifier knows of bundles: their format, the columns of events, the modules and the names of parts.

Literals: a bundle is not asked about itself, and nothing of lapledger is there to ask. Tests compare them with the
release.
"""

import re
from collections.abc import Sequence

FORMAT = 3
ABOUT = ("format", "ledger", "cut", "head", "manifests", "parts")
"""What bundle.json of every bundle says; each kind of bundle adds its keys."""
COLUMNS = {
    "annotation.made.v1": "eedf70587dd81a51cefaeeb96d54abb731a59831ebfbe2cbdda1cd7431af9756",
    "calibration.fitted.v1": "aa6d40fe407c52c21bff9f7409ef36fff251b3b52377ad01a3238db61a8099b7",
    "calibration.fitted.v2": "649a26dc72f83235bd7dce58a95d9b589babee9684f57b864f36d984c031b82e",
    "campaign.opened.v1": "c059e251868ff6e71fac79968df14577619fbc8c6f2fae96d5cbed25e12e7ad1",
    "campaign.opened.v2": "c059e251868ff6e71fac79968df14577619fbc8c6f2fae96d5cbed25e12e7ad1",
    "criterion.declared.v1": "be76404fb2a219035b8892964ede8fa8b1aa4dd1eecd80735ce782fe8ff79c8f",
    "execution.finished.v1": "6b2d24972dd729a8fa4951386c665a9fb3e8e925cf6a07c268e3d50be175e4b5",
    "execution.finished.v2": "6b2d24972dd729a8fa4951386c665a9fb3e8e925cf6a07c268e3d50be175e4b5",
    "execution.shared.v1": "97c09c175abe2e1f321f3cfd82fa1caff5dde72a162c971135438b52e301a9de",
    "filter.decided.v1": "388998093b164cab0dcfc461f7781a95167590d762de82e8a932a4d241b5f857",
    "problem.added.v1": "65f0893523c54574581a53f8d363af1773f6dec7b30267f4881c5b7300eadecd",
    "problem.added.v2": "d4b6e2e89ae798020ee519ef90af04769a654d30c7c2de1948c703bc35e02db2",
    "program.added.v1": "ac0f707cad0b9245720f25fa70352bd492383c0cc9e305cf8c7519b99b978f03",
    "program.added.v2": "ac0f707cad0b9245720f25fa70352bd492383c0cc9e305cf8c7519b99b978f03",
    "replay.completed.v1": "df7c59791adfd9dcf370c5fe42cadd20683e87c2039a52e99da09522ac77d15c",
    "replay.completed.v2": "13f82e36b1f183da39e3d3e1d753bfea95f9ddf925e80cc3d7a5b198ab5cf9d2",
    "reward.assigned.v1": "97c3d162ac904f6b3bbe21f12d2bb8c7e06592ab3201156c4b667976a4125cc1",
    "test.added.v1": "e3eef8f0fecc9c780f06ffe3e8cd51c5e0e167fca0fc835a27d75f8f69748256",
    "test.added.v2": "e3eef8f0fecc9c780f06ffe3e8cd51c5e0e167fca0fc835a27d75f8f69748256",
    "test.added.v3": "da07197c537a34149360c364e6cb04c689c509dc99fa50bcb2269d800dc02850",
    "timing.measured.v1": "85aa4e6c317acd5f6f6844d3a499b62ad2f81655f0b94bdad663f7efe5af2a53",
    "timing.measured.v2": "f8cda6b73ba4b2e5076891a19ca4c7236610dad915584e64a61ec5465d28bfaf",
    "worker.started.v1": "2e1eff77282a1b456e5734e1ad445fc9399d5ac2b96293debaa547771e0ddf5e",
}
"""Event types of a bundle -> digest of the names and types of their columns, which no frame's digest covers."""
MODULES = ("__init__", "bundle_file", "canonical", "known", "proof", "reward")
"""The modules that travel as the package `lapbundle.verifier`."""
_PARTS = (
    r"__main__\.py|frames\.parquet|lapbundle/__init__\.py",
    rf"lapbundle/verifier/({'|'.join(MODULES)})\.py",
    rf"events/({'|'.join(re.escape(name) for name in COLUMNS)})\.parquet",
    r"chains/[a-z]+\.(0|[1-9][0-9]*)\.txt",
    r"blobs/[0-9a-f]{64}",
)


def is_part(name: str, patterns: Sequence[str]) -> bool:
    """Whether a bundle may hold a file of that name beside bundle.json; `patterns` are those of its kind."""
    return any(re.fullmatch(pattern, name) for pattern in (*_PARTS, *patterns))

"""What all tests share: the property tests' profile, where third-party data lies, one run of the demo."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from lap import lap

settings.register_profile("lap", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.load_profile("lap")

REAL_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of third-party files; a test that needs it is skipped where they are not at hand."""
    if not REAL_DATA.is_dir():
        pytest.skip(f"third-party data is not at hand in {REAL_DATA}")
    return REAL_DATA


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The ledger that `lap demo --into demo` made; for reading only, as all tests share it."""
    folder = tmp_path_factory.mktemp("demonstration")
    done = lap("demo", "--into", "demo", cwd=folder)
    if done.code:
        pytest.fail(f"lap demo ended with {done.code}: {done.err[-600:]}", pytrace=False)
    return folder / "demo"

"""What all tests share: the profile of the property tests, and where third-party data lies."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("lap", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.load_profile("lap")

REAL_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of third-party files; a test that needs it is skipped where they are not at hand."""
    if not REAL_DATA.is_dir():
        pytest.skip(f"third-party data is not at hand in {REAL_DATA}")
    return REAL_DATA

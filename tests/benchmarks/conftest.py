"""What is timed keeps freed memory, as it does where studies train."""

import pytest

from engine.machine import keep_freed_memory


@pytest.fixture(autouse=True, scope="session")
def memory() -> None:
    keep_freed_memory()

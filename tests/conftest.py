import pytest


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Async tests run on asyncio, the loop that the runtime is written for."""
    return "asyncio"

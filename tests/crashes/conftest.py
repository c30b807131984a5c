from pathlib import Path

import pytest

from moothall.stores.sqlite import SqliteStore


@pytest.fixture(scope="package")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a store without runs, to be copied: to make one costs more than that."""
    file = tmp_path_factory.mktemp("empty") / "empty.db"
    SqliteStore(file).close()
    return file

import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from moothall.cli.main import main
from tests.cli.ran import Moot
from tests.lookback.gallery import Gallery, built

SETTINGS = ("MODEL", "STORE", "DURABILITY", "ON_WAIT", "ANCHORS", "AUDIT_KEY")


def settle(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Work in this folder, with the machines in it and no settings."""
    patch.chdir(folder)
    patch.setenv("MOOTHALL_HOME", str(folder))
    patch.setenv("MOOTHALL_DURABILITY", "normal")
    for name in SETTINGS:
        if name != "DURABILITY":
            patch.delenv(f"MOOTHALL_{name}", raising=False)
    shutil.copy(Path(__file__).with_name("works.py"), folder)


@pytest.fixture
def moot(moot: Moot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Moot:
    """`moot` in this process, in a folder of its own."""
    settle(tmp_path, monkeypatch)
    return moot


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gallery]:
    """Runs of many kinds, to be spoilt and put back."""
    folder = tmp_path_factory.mktemp("gallery")
    with pytest.MonkeyPatch.context() as patch:
        settle(folder, patch)
        made = built(folder, lambda *command: SimpleNamespace(code=main([*command, "--quiet"]), err=""))
    yield made
    made.close()

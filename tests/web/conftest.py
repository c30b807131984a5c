from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.web.browser import Server, browser, require_browser, serving

HERE = Path(__file__).parent
PATIENCE = 20_000


@pytest.fixture(autouse=True)
def _home(home: Path) -> None:
    """Nothing here touches the user's own runs or settings."""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser() as found:
        yield found


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    require_browser()
    with serving(tmp_path / "home", "--user", "ada", cwd=HERE) as found:
        yield found


def trouble_in(message: Any) -> list[str]:
    """What the browser complains about; a connection that is lost is told by the page itself."""
    return [message.text] if message.type == "error" and "ERR_" not in message.text else []


@pytest.fixture
def page(chromium: Any, server: Server) -> Iterator[Any]:
    context = chromium.new_context()
    context.set_default_timeout(PATIENCE)
    found = context.new_page()
    troubles: list[str] = []
    requests: list[str] = []
    found.on("pageerror", lambda error: troubles.append(str(error)))
    found.on("console", lambda message: troubles.extend(trouble_in(message)))
    found.on("request", lambda request: requests.append(request.url))
    found.goto(server.link)
    yield found
    context.close()
    assert [url for url in requests if not url.startswith((server.url, "data:"))] == []
    assert [trouble for trouble in troubles if "status of 4" not in trouble] == []

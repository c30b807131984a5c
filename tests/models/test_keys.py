"""A key goes to its own address and to no other, whatever the environment holds."""

import json
from pathlib import Path

import pytest

from moothall.app.config.models import open_model
from moothall.errors import DefinitionError, EffectFailed
from tests.models.asking import request
from tests.models.loopback import Fault, Loopback, Said, loopback

pytestmark = pytest.mark.anyio
SECRETS = {
    "OPENAI_API_KEY": "secret-openai",
    "OPENAI_ADMIN_KEY": "secret-admin",
    "OPENAI_ORG_ID": "secret-organisation",
    "OPENAI_PROJECT_ID": "secret-project",
    "OPENAI_CUSTOM_HEADERS": "X-Team: secret-team",
    "ANTHROPIC_API_KEY": "secret-anthropic",
    "ANTHROPIC_AUTH_TOKEN": "secret-token",
    "ANTHROPIC_CUSTOM_HEADERS": "X-Team: secret-team",
    "GOOGLE_API_KEY": "secret-google",
}


@pytest.fixture(autouse=True)
def _secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment full of keys."""
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)


def seen(served: Loopback) -> str:
    """Everything that a server was sent."""
    return json.dumps([[request.path, request.headers, request.body] for request in served.asked])


def bind(home: Path, address: str, line: str) -> None:
    (home / "home").mkdir()
    (home / "home" / "settings.toml").write_text(f'[addresses."{address}"]\n{line}\n')


@pytest.mark.parametrize("protocol", ["openai", "anthropic", "google"])
async def test_another_address_sees_no_key_at_all(protocol: str) -> None:
    async with loopback(Said("ok")) as served:
        await open_model(f"{protocol}:m@{served.address}").reply(request())
        assert len(served.asked) == 1
        assert "secret" not in seen(served)
        assert "authorization" not in served.asked[0].headers


async def test_the_key_of_openai_goes_to_the_address_that_is_set_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async with loopback(Said("ok")) as home, loopback(Said("ok")) as other:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{home.address}/")
        await open_model("openai:m").reply(request())
        await open_model(f"openai:m@{home.address}").reply(request())
        await open_model(f"openai:m@{other.address}").reply(request())
        assert [request.headers["authorization"] for request in home.asked] == ["Bearer secret-openai"] * 2
        assert seen(home).count("secret") == 2
        assert "secret" not in seen(other)


async def test_the_key_of_anthropic_goes_to_the_address_that_is_set_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async with loopback(Said("ok")) as home:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", home.root)
        await open_model("anthropic:m").reply(request())
        assert home.asked[0].headers["x-api-key"] == "secret-anthropic"
        assert seen(home).count("secret") == 1


@pytest.mark.parametrize(
    ("line", "key"), [('key = "secret-own"', "secret-own"), ('key_from = "OPENAI_API_KEY"', "secret-openai")]
)
async def test_a_key_goes_where_the_settings_bind_it(tmp_path: Path, line: str, key: str) -> None:
    async with loopback(Said("ok")) as served, loopback(Said("ok")) as other:
        bind(tmp_path, f"{served.address}/", line)
        await open_model(f"openai:m@{served.address}").reply(request())
        await open_model(f"openai:m@{other.address}").reply(request())
        assert served.asked[0].headers["authorization"] == f"Bearer {key}"
        assert seen(served).count("secret") == 1
        assert "secret" not in seen(other)


@pytest.mark.parametrize("protocol", ["openai", "anthropic", "google"])
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_not_followed(tmp_path: Path, protocol: str, status: int) -> None:
    async with loopback(Said("ok")) as elsewhere:
        async with loopback(Fault(status, b"", (("location", f"{elsewhere.address}/x"),))) as served:
            bind(tmp_path, served.address, 'key = "secret-own"')
            with pytest.raises(EffectFailed, match="sends elsewhere"):
                await open_model(f"{protocol}:m@{served.address}").reply(request())
        assert elsewhere.asked == []


@pytest.mark.parametrize(
    ("model", "variable"),
    [("openai:m", "OPENAI_API_KEY"), ("anthropic:m", "ANTHROPIC_API_KEY"), ("google:m", "GOOGLE_API_KEY")],
)
async def test_a_model_without_its_key_is_refused_and_the_variable_named(
    monkeypatch: pytest.MonkeyPatch, model: str, variable: str
) -> None:
    monkeypatch.delenv(variable)
    with pytest.raises(DefinitionError, match=f"{model} needs a key: set {variable}"):
        open_model(model)

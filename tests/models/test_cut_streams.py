"""A stream may be cut off anywhere: then there is no reply, and no call of a tool is made of half a message."""

import pytest

from moothall.agents.ask import ToolCall
from moothall.agents.ports import Reply
from moothall.errors import EffectFailed
from moothall.models.endpoint import Protocol
from moothall.models.providers import ProviderModel
from tests.models.asking import LOOK, PROTOCOLS, endpoint, request
from tests.models.loopback import Asked, Cut, Said, encoded, loopback

pytestmark = pytest.mark.slow

SAID = Said("Wait", [("a", "look", '{"place":"Ys"}')])
CALLS = (ToolCall("look", {"place": "Ys"}, "a"),)


async def recorded(protocol: Protocol) -> bytes:
    """The whole stream as this protocol has it."""
    async with loopback(SAID) as served:
        await ProviderModel(endpoint(protocol, served)).reply(request(tools=(LOOK,), hear=lambda piece: None))
        return encoded(SAID, served.asked[0])[1]


@pytest.mark.anyio
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_stream_that_is_cut_at_any_byte_gives_the_whole_reply_or_none(protocol: Protocol) -> None:
    length = len(await recorded(protocol))
    cuts = iter(range(length))

    def cut(asked: Asked) -> Cut:
        return Cut(SAID, next(cuts))

    whole, broken = 0, []
    async with loopback(cut) as served:
        model = ProviderModel(endpoint(protocol, served))
        for _ in range(length):
            try:
                reply = await model.reply(request(tools=(LOOK,), hear=lambda piece: None))
            except EffectFailed as failure:
                broken.append(failure)
            else:
                assert Reply(reply.text, calls=reply.calls) == Reply(SAID.text, calls=CALLS)
                whole += 1
    print(f"{protocol}: {length} cuts, {len(broken)} without a reply, {whole} after the message was whole")
    assert len(broken) > length / 2
    assert not any(failure.final for failure in broken)

"""`a|b|c`: the next model where one fails, and a failure only where all do."""

import pytest

from moothall.agents.ports import Reply, Request
from moothall.errors import DefinitionError, EffectFailed
from moothall.models.fallback import FallbackModel
from moothall.models.signed import SignedModel
from tests.models.asking import request

pytestmark = pytest.mark.anyio


class Saying:
    """A model that always says the same, or fails in the same way."""

    def __init__(self, said: Reply | Exception) -> None:
        self.said = said
        self.calls = 0

    async def reply(self, request: Request) -> Reply:
        self.calls += 1
        if isinstance(self.said, Exception):
            raise self.said
        return self.said


async def test_the_first_that_replies_is_the_last_that_is_asked() -> None:
    models = [Saying(EffectFailed("down")), Saying(EffectFailed("no", final=True)), Saying(Reply("c")), Saying(Reply())]
    assert (await FallbackModel(models).reply(request())).text == "c"
    assert [model.calls for model in models] == [1, 1, 1, 0]


async def test_what_the_failed_ones_cost_is_paid_too() -> None:
    models = [Saying(EffectFailed("down", usage={"tokens": 3})), Saying(Reply("b", usage={"tokens": 4, "usd": 0.5}))]
    assert (await FallbackModel(models).reply(request())).usage == {"tokens": 7, "usd": 0.5}


async def test_where_all_fail_the_one_that_is_back_first_decides_when_to_come_again() -> None:
    models = [Saying(EffectFailed("a", retry_after=60)), Saying(EffectFailed("b", retry_after=5, usage={"tokens": 1}))]
    with pytest.raises(EffectFailed, match=r"^a; b$") as raised:
        await FallbackModel(models).reply(request())
    assert (raised.value.retry_after, raised.value.final, raised.value.usage) == (5, False, {"tokens": 1})


@pytest.mark.parametrize(("first", "final"), [(True, True), (False, False)])
async def test_it_is_over_only_where_every_failure_is_final(first: bool, final: bool) -> None:
    models = [Saying(EffectFailed("a", final=first)), Saying(EffectFailed("b", final=True))]
    with pytest.raises(EffectFailed) as raised:
        await FallbackModel(models).reply(request())
    assert raised.value.final is final


async def test_a_mistake_of_the_author_is_not_passed_on_to_the_next() -> None:
    models = [Saying(DefinitionError("no such script")), Saying(Reply("b"))]
    with pytest.raises(DefinitionError):
        await FallbackModel(models).reply(request())


async def test_a_reply_and_a_failure_are_signed_by_the_model_that_they_are_of() -> None:
    down = SignedModel(Saying(EffectFailed("down")), "a")
    chain = SignedModel(FallbackModel([down, SignedModel(Saying(Reply("b")), "b")]), "a|b")
    assert (await chain.reply(request())).model == "b"
    with pytest.raises(EffectFailed) as raised:
        await down.reply(request())
    assert raised.value.model == "a"

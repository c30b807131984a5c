"""Models of providers: OpenAI, Anthropic, Google, and whoever speaks OpenAI's protocol at another address.

One request is one call of the provider; another attempt is the runtime's decision, so the retries of the SDKs are off.
What the rules are:

- A reply is made of a message that came whole. A stream that breaks off is a failure, whatever it had said by then;
  who listens hears pieces, and an empty piece where a reply begins anew.
- Whatever goes wrong is an `EffectFailed`, final where the same request would be refused again; or a `DefinitionError`
  where the request cannot even be made.
- A key goes to its own address only. Nothing leaves by another way, redirects are not followed, and of the headers
  that an SDK finds in the environment none is sent.
- What is not known is left out: usage that was not reported, the price of a model that nobody knows.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from importlib import import_module
from itertools import count, groupby
from typing import Any
from weakref import WeakKeyDictionary

import httpx2
from genai_prices import calc_price
from pydantic_ai import exceptions as said
from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    SystemPromptPart,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model as DirectModel
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.usage import RequestUsage

from moothall.agents.ask import ToolCall
from moothall.agents.ports import Offered, Reply, Request
from moothall.errors import DefinitionError, EffectFailed, whole_text
from moothall.kernel.codec import encode
from moothall.kernel.frozen import Frozen
from moothall.models.endpoint import Endpoint, Protocol
from moothall.models.shapes import VALUE, wrap_schema

CHARACTERS = 4
"""How many characters of a text count as a token, where a provider has not counted them."""
CONNECT = 10.0
KEPT_OPEN = httpx2.Limits(max_connections=100, max_keepalive_connections=20, keepalive_expiry=30.0)
"""How long a connection stays open that nobody uses: long enough for one that was opened ahead."""
SHOWN = 300
REPLY = "final_reply"
"""The tool by which a model gives a value of the shape that was asked for."""
REPLY_SAYS = "Give the reply itself; call this once, when all is done."
AS_JSON = "Reply with JSON of this schema and with nothing else: {schema}"
SILENCE = "(nothing)"
"""What a model is told that it said where it said nothing: some providers take no empty message."""
BEGINNING, GO_ON = "(This is where the conversation begins.)", "(Go on.)"
"""What stands before a conversation that an agent begins, and behind one that it spoke last in."""
LOST = "what it returned is not known"
NAME, ID = re.compile("[A-Za-z_][A-Za-z0-9_-]{0,63}"), re.compile("[A-Za-z0-9_-]{1,40}")
"""The names of tools and the ids of calls that all providers take."""

KEY_HEADERS: Mapping[Protocol, tuple[str, str]] = {
    "openai": ("authorization", "Bearer "),
    "anthropic": ("x-api-key", ""),
    "google": ("x-goog-api-key", ""),
}
HEADERS = frozenset(
    {
        "accept",
        "accept-encoding",
        "anthropic-beta",
        "anthropic-version",
        "connection",
        "content-length",
        "content-type",
        "host",
        "transfer-encoding",
        "user-agent",
    }
)
"""The headers that leave, besides the key."""

AGAIN = frozenset((408, 409, 425, 429))
"""The codes of a refusal that does not last."""


class ProviderModel:
    """A model of a provider. Its connections live as long as the event loop that it is used in."""

    def __init__(self, endpoint: Endpoint, tell: Callable[[str], object] = str) -> None:
        self._endpoint, self._tell = endpoint, tell
        self._who = f"{endpoint.protocol}:{endpoint.model}"
        self._opened: WeakKeyDictionary[asyncio.AbstractEventLoop, _Opened] = WeakKeyDictionary()

    async def reply(self, request: Request) -> Reply:
        model = await self._model()
        try:
            messages, wanted = messages_of(request), parameters_of(request, self._endpoint)
            async with asyncio.timeout(self._endpoint.timeout):
                if request.hear is None:
                    how = settings_of(request)
                    response = await model_request(model, messages, model_settings=how, model_request_parameters=wanted)
                    is_whole = True
                else:
                    response, is_whole = await _hear_reply(model, messages, wanted, request)
        except TimeoutError as error:
            raise EffectFailed(f"{self._who} did not reply within {self._endpoint.timeout:g} s") from error
        except Exception as error:  # the SDKs raise whatever a strange body makes them stumble over
            raise self._failure(error) from error
        usage = usage_of(response, self._endpoint)
        if not usage and request.metered:
            self._tell(
                f"{self._who} does not report its usage; what counts against the budget is estimated from the "
                f"length of its texts ({CHARACTERS} characters for a token)"
            )
            usage = estimated_usage(request, response, self._endpoint)
        if not is_whole:
            raise EffectFailed(f"{self._who}: its reply broke off", usage=usage)
        return self._read(response, request, usage)

    async def open(self) -> None:
        """Open a client and a connection to the provider. Only the head of its address is asked for, and costs nothing.

        Whether that succeeds says nothing about a reply; who asks for one hears what is wrong.
        """
        web = (await self._at_hand()).web
        with suppress(httpx2.HTTPError, DefinitionError, TimeoutError):
            async with asyncio.timeout(CONNECT):
                await web.head(self._endpoint.address)

    async def _model(self) -> DirectModel:
        """The model with a client of the running loop, which is closed together with the loop."""
        return (await self._at_hand()).model

    async def _at_hand(self) -> _Opened:
        loop = asyncio.get_running_loop()
        if loop not in self._opened:
            client = _client(self._endpoint)
            web = await anext(client)
            self._opened.setdefault(loop, _Opened(direct_model(self._endpoint, web), client, web))
        return self._opened[loop]

    def _read(self, response: ModelResponse, request: Request, usage: Mapping[str, float]) -> Reply:
        if response.finish_reason == "length":
            why = "its reply was cut off, for it was longer than the provider allows; ask for less"
            raise EffectFailed(f"{self._who}: {why}", usage=usage, final=True)
        if response.finish_reason == "content_filter":
            why = "the provider's filter kept its reply back; word the prompt differently"
            raise EffectFailed(f"{self._who}: {why}", usage=usage, final=True)
        text = "".join(part.content for part in response.parts if isinstance(part, TextPart))
        parts = [part for part in response.parts if isinstance(part, ToolCallPart)]
        names = {wire_name(tool.name): tool.name for tool in request.tools}
        calls = tuple(
            ToolCall(names.get(part.tool_name, part.tool_name), arguments_of(part), part.tool_call_id) for part in parts
        )
        given = [call.arguments for call in calls if call.tool == REPLY]
        calls = tuple(call for call in calls if call.tool != REPLY)
        if not text and not given and not (calls and request.tools):
            raise EffectFailed(f"{self._who} said nothing", usage=usage)
        if not given and writes_json(request, self._endpoint):
            given = [found] if (found := _json(text)) is not None else []
        value = None if request.schema is None else only_value(request.schema, given)
        return Reply(text, value, usage, calls)

    def _failure(self, error: Exception) -> EffectFailed | DefinitionError:
        """What a failure means for the run: another attempt, or a reason to give up."""
        if isinstance(error, said.UserError):
            return DefinitionError(f"{self._who}: {self._shown(error.message)}")
        retry_after = getattr(error, "retry_after", None) or 0
        remedy = self._remedy(error)
        code = status_of(error)
        status = f" ({code})" if code else ""
        if remedy:
            return EffectFailed(f"{self._who}: {remedy}{status}: {self._shown(_error_text(error))}", final=True)
        if cause := _cause_of(error):
            why = f"no connection to {self._endpoint.address}: {self._shown(cause)}"
            return EffectFailed(f"{self._who}: {why}", retry_after=retry_after)
        return EffectFailed(f"{self._who}{status}: {self._shown(_error_text(error))}", retry_after=retry_after)

    def _remedy(self, error: Exception) -> str:
        """What somebody has to do before such a request can succeed; "" where it is worth another attempt."""
        endpoint = self._endpoint
        match error:
            case said.ModelQuotaExceededError():
                return "the account has nothing left; top it up"
            case said.ModelAuthenticationError() if not endpoint.key:
                return f"{endpoint.address} wants a key, and none is bound to it; bind one in settings.toml"
            case said.ModelAuthenticationError():
                return f"{endpoint.address} does not accept the key; check it ({endpoint.key_name})"
            case said.ModelNotFoundError():
                return f"{endpoint.address} does not know it; check the name and the address"
            case said.ModelContextWindowExceededError():
                return "the prompt is longer than the model can take; shorten it"
        status = status_of(error)
        if 300 <= status < 400:
            return f"{endpoint.address} sends elsewhere, which is not followed; write the address where it is now"
        is_refusal = isinstance(error, said.ModelRequestRejectedError) or 400 <= status < 500
        return "the provider refuses the request; correct what it names" if is_refusal and status not in AGAIN else ""

    def _shown(self, text: str) -> str:
        """A text of the provider on one line, without the key."""
        line = " ".join(text.split())
        line = line.replace(self._endpoint.key, "[key]") if self._endpoint.key else line
        return line if len(line) <= SHOWN else f"{line[:SHOWN]}…"


class _Opened(Frozen):
    """A model that is in use in one event loop, and what keeps its client open."""

    model: DirectModel
    client: AsyncGenerator[httpx2.AsyncClient]
    web: httpx2.AsyncClient


async def _client(endpoint: Endpoint) -> AsyncGenerator[httpx2.AsyncClient]:
    """A client that stays open until the event loop ends, which closes what it finds suspended."""
    limits = httpx2.Timeout(endpoint.timeout, connect=CONNECT)
    hooks = {"request": [_only_to(endpoint)]}
    async with httpx2.AsyncClient(timeout=limits, limits=KEPT_OPEN, event_hooks=hooks) as client:
        yield client


def _only_to(endpoint: Endpoint) -> Callable[[httpx2.Request], Any]:
    """Sees to it that a request goes to its address alone, with its own key and no other."""
    home, (header, scheme) = httpx2.URL(endpoint.address), KEY_HEADERS[endpoint.protocol]

    async def check(request: httpx2.Request) -> None:
        if (request.url.scheme, request.url.host, request.url.port) != (home.scheme, home.host, home.port):
            raise DefinitionError(f"{endpoint}: a request would go to {request.url.host}; nothing was sent")
        for name in [name for name in request.headers if name.lower() not in HEADERS]:
            del request.headers[name]
        if endpoint.key:
            request.headers[header] = scheme + endpoint.key

    return check


def direct_model(endpoint: Endpoint, client: httpx2.AsyncClient) -> DirectModel:
    """The model of an endpoint as pydantic-ai has it; of the SDKs only the one that is needed is loaded."""
    made: DirectModel = import_module(f"moothall.models.{endpoint.protocol}_client").model_of(endpoint, client)
    return made


async def _hear_reply(
    model: DirectModel, messages: Sequence[ModelMessage], wanted: ModelRequestParameters, request: Request
) -> tuple[ModelResponse, bool]:
    """A reply that is listened to while it comes, and whether it came whole."""
    hear, how = request.hear, settings_of(request)
    assert hear is not None
    _tell(hear, "")
    async with model_request_stream(
        model, list(messages), model_settings=how, model_request_parameters=wanted
    ) as stream:
        async for event in stream:
            match event:
                case PartStartEvent(part=TextPart(content=piece)) if piece:
                    _tell(hear, piece)
                case PartDeltaEvent(delta=TextPartDelta(content_delta=piece)) if piece:
                    _tell(hear, piece)
        response = stream.get()
    return response, response.finish_reason is not None and response.state == "complete"


def _tell(hear: Callable[[str], None], piece: str) -> None:
    with suppress(Exception):  # who listens cannot harm the reply
        hear(piece)


def settings_of(request: Request) -> ModelSettings | None:
    """How a model is to speak, where that is not left to the provider."""
    return None if request.temperature is None else ModelSettings(temperature=request.temperature)


def messages_of(request: Request) -> list[ModelMessage]:
    """What the agent is, the prompt, what was said since, in the order that all providers take.

    First one system message; then user and assistant in turns, the user first and last; what a call returned right
    behind it. Ids of calls are told apart: providers insist on it. Where no tool is offered, calls are told in words.
    """
    said = [message for message in request.messages if message["role"] != "system"]
    system = [request.system, *(message["text"] for message in request.messages if message["role"] == "system")]
    if request.prompt or not request.messages:
        said.insert(0, {"role": "user", "text": request.prompt})
    if not said or said[0]["role"] == "assistant":
        said.insert(0, {"role": "user", "text": BEGINNING})
    said = list(_with_results(said) if request.tools else _in_words(said))
    if said[-1]["role"] == "assistant":
        said.append({"role": "user", "text": GO_ON})
    found = list(_in_turns(said))
    told = "\n\n".join(filter(None, system))
    first = found[0]
    if told and isinstance(first, ModelRequest):
        found[0] = ModelRequest([SystemPromptPart(whole_text(told)), *first.parts])
    return found


def _with_results(said: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """The same with what each call returned right behind it; a result without its call is told in words."""
    left = [(number, message) for number, message in enumerate(said) if message["role"] == "tool"]
    ids: set[str] = set()
    for number, message in enumerate(said):
        if message["role"] == "tool":
            if (number, message) in left:
                left.remove((number, message))
                yield _result_in_words(message)
            continue
        calls = message.get("calls") or ()
        sent = [_id_apart(call["id"], ids) for call in calls]
        yield {**message, "calls": [{**call, "id": id} for call, id in zip(calls, sent, strict=True)]}
        for call, id in zip(calls, sent, strict=True):
            result = next((pair for pair in left if pair[0] > number and pair[1]["id"] == call["id"]), None)
            if result is not None:
                left.remove(result)
            known = {"tool": call["tool"], "error": LOST} if result is None else result[1]
            yield {**known, "role": "tool", "id": id}


def _id_apart(id: str, ids: set[str]) -> str:
    """The id of a call on the wire: its own, or one that all providers take where that is taken or too odd."""
    if id in ids or not ID.fullmatch(id):
        id = next(other for number in count(len(ids)) if (other := f"call{number:05}") not in ids)
    ids.add(id)
    return id


def _in_words(said: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """The same with calls and what they returned as texts."""
    for message in said:
        if message["role"] == "tool":
            yield _result_in_words(message)
            continue
        calls = [
            f"[called {call['tool']}({json.dumps(encode(call['arguments']))})]" for call in message.get("calls") or ()
        ]
        yield {**message, "text": "\n\n".join(filter(None, (message["text"], *calls))), "calls": ()}


def _result_in_words(message: Mapping[str, Any]) -> Mapping[str, Any]:
    how = f"failed: {message['error']}" if "error" in message else f"returned: {_plain(message.get('value'))}"
    return {"role": "user", "text": f"[{message['tool']} {how}]"}


def _in_turns(said: Iterable[Mapping[str, Any]]) -> Iterator[ModelMessage]:
    """User and assistant in turns: what one of them says several times in a row is one message."""
    for is_answer, group in groupby(said, lambda message: message["role"] == "assistant"):
        together = list(group)
        if is_answer:
            yield _answer(together)
            continue
        parts: list[ModelRequestPart] = [_result(message) for message in together if message["role"] == "tool"]
        if texts := [message["text"] for message in together if message["role"] != "tool"]:
            parts.append(UserPromptPart(whole_text("\n\n".join(filter(str.strip, texts)) or SILENCE)))
        yield ModelRequest(parts)


def _answer(messages: Sequence[Mapping[str, Any]]) -> ModelResponse:
    calls = [
        ToolCallPart(wire_name(call["tool"]), dict(call["arguments"]), call["id"])
        for message in messages
        for call in message.get("calls") or ()
    ]
    text = "\n\n".join(message["text"] for message in messages if message["text"].strip())
    text = text or ("" if calls else SILENCE)
    return ModelResponse([TextPart(whole_text(text)), *calls] if text else calls)


def _result(message: Mapping[str, Any]) -> ToolReturnPart:
    if "error" in message:
        said = whole_text(f"error: {message['error']}")
        return ToolReturnPart(wire_name(message["tool"]), said, message["id"], outcome="failed")
    return ToolReturnPart(wire_name(message["tool"]), _plain(message["value"]), message["id"])


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def parameters_of(request: Request, endpoint: Endpoint) -> ModelRequestParameters:
    """What a model is told about tools and the shape of its reply.

    A value is given by a tool of its own. Small servers that speak a company's protocol often know no tools, or take no
    notice of them, but all know how to write JSON by a schema.
    """
    tools = [tool_of(tool) for tool in request.tools]
    if request.schema is None:
        return ModelRequestParameters(function_tools=tools)
    if writes_json(request, endpoint):
        shape = OutputObjectDefinition(json_schema=wrap_schema(request.schema), name=REPLY)
        return ModelRequestParameters(output_mode="native", output_object=shape, prompted_output_template=AS_JSON)
    giving = ToolDefinition(
        name=REPLY, parameters_json_schema=wrap_schema(request.schema), description=REPLY_SAYS, kind="output"
    )
    return ModelRequestParameters(
        function_tools=tools, output_mode="tool", output_tools=[giving], allow_text_output=False
    )


def writes_json(request: Request, endpoint: Endpoint) -> bool:
    """Whether the whole text is to be the value. Elsewhere a text is none, even if it looks like one: it may quote."""
    is_small = endpoint.protocol == "openai" and not endpoint.is_own
    return request.schema is not None and is_small and not request.tools


def tool_of(offered: Offered) -> ToolDefinition:
    """A tool as a provider is told of it."""
    schema = {"type": "object", "properties": {}, **offered.schema}
    name = wire_name(offered.name)
    return ToolDefinition(name=name, parameters_json_schema=schema, description=offered.description or None)


def wire_name(tool: str) -> str:
    """The name of a tool on the wire: its own, or one that all providers take and that no other tool has."""
    if NAME.fullmatch(tool):
        return tool
    return f"_{re.sub('[^A-Za-z0-9_-]', '_', tool)[:50]}_{sha256(tool.encode()).hexdigest()[:8]}"


def only_value(schema: Mapping[str, Any], given: Sequence[Any]) -> Any:
    """The value, if one was given, and only one; else something that has no shape, for others to refuse."""
    if schema.get("type") == "object":
        return given[0] if len(given) == 1 else f"{len(given)} calls of {REPLY}"
    if len(given) == 1 and isinstance(given[0], dict) and given[0].keys() == {VALUE}:
        return given[0][VALUE]
    return {REPLY: list(given)}


def arguments_of(part: ToolCallPart) -> Any:
    """The arguments of a call; the text as it came where it is not JSON, for whoever reads the call to refuse."""
    if not isinstance(part.args, str):
        return part.args or {}
    if not part.args.strip():
        return {}
    found = _json(part.args)
    return part.args if found is None else found


def _json(text: str) -> Any:
    """The value that a whole text is the JSON of, else None. Of two values with one key nobody knows which is meant."""
    with suppress(ValueError, RecursionError):
        return json.loads(text, parse_constant=_refuse, object_pairs_hook=_object)
    return None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is there twice")
    return found


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def usage_of(response: ModelResponse, endpoint: Endpoint) -> dict[str, float]:
    """What a reply cost, as far as it is known."""
    usage = response.usage
    if usage.total_tokens <= 0:
        return {}
    price = price_of(usage, endpoint)
    return {"tokens": usage.total_tokens} | ({} if price is None else {"usd": price})


def estimated_usage(request: Request, response: ModelResponse, endpoint: Endpoint) -> dict[str, float]:
    """About what a reply cost whose provider does not say so; `estimated` tells how many of the tokens are a guess."""
    asked = [request.system, request.prompt, *(json.dumps(encode(message)) for message in request.messages)]
    asked += [json.dumps(encode(tool)) for tool in request.tools]
    said = [part.content for part in response.parts if isinstance(part, TextPart | ThinkingPart)]
    said += [part.args_as_json_str() for part in response.parts if isinstance(part, ToolCallPart)]
    usage = RequestUsage(input_tokens=_tokens_in(asked), output_tokens=_tokens_in(said))
    price = price_of(usage, endpoint)
    tokens = usage.total_tokens
    return {"tokens": tokens, "estimated": tokens} | ({} if price is None else {"usd": price})


def _tokens_in(texts: Sequence[str]) -> int:
    return max(1, -(-sum(map(len, texts)) // CHARACTERS))


def price_of(usage: RequestUsage, endpoint: Endpoint) -> float | None:
    """What a use of a model costs in dollars; None where nobody knows."""
    with suppress(LookupError, ValueError):
        if endpoint.is_own:
            return float(calc_price(usage, endpoint.model, provider_id=endpoint.protocol).total_price)
        return float(calc_price(usage, endpoint.model, provider_api_url=endpoint.address).total_price)
    return None


def is_priced(endpoint: Endpoint) -> bool:
    """Whether it is known what a model costs."""
    return price_of(RequestUsage(input_tokens=1, output_tokens=1), endpoint) is not None


def _cause_of(error: Exception) -> str:
    """Why there was no connection, in the words of the system; "" where there was one."""
    link: BaseException | None = error
    is_connection, innermost = False, ""
    while link is not None:
        is_connection = is_connection or isinstance(link, httpx2.TransportError | ConnectionError)
        innermost = str(link) or innermost
        link = link.__cause__ or link.__context__
    return innermost if is_connection else ""


def status_of(error: Exception) -> int:
    """The status that a failure came with; 0 where it has none."""
    found = getattr(error, "status_code", None)
    if found is None:
        found = getattr(error.__cause__, "status_code", None) or getattr(error.__cause__, "code", None)
    return found if isinstance(found, int) else 0


def _error_text(error: Exception) -> str:
    """What a failure says of itself: the provider's own words where there are any."""
    body = getattr(error, "body", None)
    if isinstance(body, Mapping):
        inner = body.get("error", body)
        message = inner.get("message") if isinstance(inner, Mapping) else inner
        if message:
            return str(message)
    if isinstance(error, said.ModelHTTPError):
        return str(body or "no explanation")
    if isinstance(error, said.AgentRunError):
        return str(error)
    return f"what it sent cannot be read: {type(error).__name__}: {error}"

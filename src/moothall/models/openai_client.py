"""Models of OpenAI, and of whoever speaks its protocol, with retries switched off."""

from __future__ import annotations

import httpx2
import openai
from pydantic_ai.models import Model
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

from moothall.models.endpoint import NO_KEY, Endpoint

ENDS_ARE_TOLD = OpenAIModelProfile(openai_chat_streaming_requires_finish_reason=True)
"""A stream without its end is not a reply, although some servers never tell it."""


def model_of(endpoint: Endpoint, client: httpx2.AsyncClient) -> Model:
    """The model of an endpoint."""
    asked = openai.AsyncOpenAI(
        base_url=endpoint.address, api_key=NO_KEY, http_client=client, max_retries=0, timeout=endpoint.timeout
    )
    own, other = OpenAIProvider, OpenAICompatibleProvider
    provider = own(openai_client=asked) if endpoint.is_own else other("openai", openai_client=asked)
    return OpenAIChatModel(endpoint.model, provider=provider, profile=ENDS_ARE_TOLD)

"""Models of Anthropic, with retries switched off."""

from __future__ import annotations

import anthropic
import httpx2
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.providers.anthropic import AnthropicProvider

from moothall.models.endpoint import NO_KEY, Endpoint


def model_of(endpoint: Endpoint, client: httpx2.AsyncClient) -> Model:
    """The model of an endpoint."""
    claude = anthropic.AsyncAnthropic(
        base_url=endpoint.address, api_key=NO_KEY, http_client=client, max_retries=0, timeout=endpoint.timeout
    )
    return AnthropicModel(endpoint.model, provider=AnthropicProvider(anthropic_client=claude))

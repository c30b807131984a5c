"""Models of Google, with retries switched off."""

from __future__ import annotations

import httpx2
from google.genai import Client
from google.genai.types import HttpOptions, HttpRetryOptions
from pydantic_ai.models import Model
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.providers.google import GoogleProvider

from moothall.models.endpoint import NO_KEY, Endpoint


def model_of(endpoint: Endpoint, client: httpx2.AsyncClient) -> Model:
    """The model of an endpoint."""
    options = HttpOptions(
        base_url=endpoint.address,
        httpx_async_client=client,
        timeout=int(endpoint.timeout * 1000),
        retry_options=HttpRetryOptions(attempts=1),
    )
    gemini = Client(vertexai=False, api_key=NO_KEY, http_options=options)
    return GoogleModel(endpoint.model, provider=GoogleProvider(client=gemini))

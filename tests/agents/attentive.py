"""A model that says what it is given to say, and can be asked what it heard."""

from moothall.agents.ports import Reply, Request


class Attentive:
    """A model that keeps what it was asked."""

    def __init__(self, reply: Reply) -> None:
        self.requests: list[Request] = []
        self._reply = reply

    async def reply(self, request: Request) -> Reply:
        self.requests.append(request)
        return self._reply

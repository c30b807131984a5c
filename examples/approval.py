"""A clerk writes an offer, a person approves it within two days, a tool sends it. Waiting costs nothing."""

from dataclasses import dataclass, replace

from moothall import Answered, Final, Machine, On, Replied, Returned, State, ask, call, days, otherwise, question, run, yes


@dataclass(frozen=True)
class Offer:
    customer: str
    text: str = ""


async def clerk(prompt: str) -> str:
    return f"Dear {prompt.split()[-1]}, ten tide tables for 90 euros."


async def send(customer: str, text: str) -> str:  # a tool: any async function
    return f"sent to {customer}"


OFFER = Machine(
    "offer", data=Offer, result=lambda offer: offer.text,
    states=[
        State("writing",   enter=ask(clerk, "Write an offer for {customer}")),
        State("approving", enter=question("Send this? {text}", within=days(2))),
        State("sending",   enter=call(send, "customer", "text")),
        Final("sent"), Final("dropped"),
    ],
    moves=[
        On("writing",   Replied,   to="approving", do=lambda offer, reply: replace(offer, text=reply.text)),
        On("approving", Answered,  to="sending",   when=yes),
        On("approving", otherwise, to="dropped"),
        On("sending",   Returned,  to="sent"),
    ],
)

if __name__ == "__main__":
    print(run(OFFER, Offer("Ada")).questions)

"""What `moot check` is for: this loop has no bound, so nothing promises that it ends. It is refused."""

from moothall import Final, Machine, On, Replied, State, ask

ENDLESS = Machine(
    "endless",
    states=[
        State("drafting",  enter=ask("writer", "Write.")),
        State("reviewing", enter=ask("critic", "Judge.")),
        Final("finished"),
    ],
    moves=[
        On("drafting",  Replied, to="reviewing"),
        On("reviewing", Replied, to="finished", when=lambda data, reply: reply.text == "good"),
        On("reviewing", Replied, to="drafting"),
    ],
)

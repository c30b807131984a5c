"""The team: personas in a hierarchical machine that propose, hand off, approve and ask for rework.

What stands here decides and does nothing else: who is next among competing proposals (`arbitration`), what a reply
directs (`directives`), who is likely to be next (`warmth`), and what a team file says (`definition`, `schema`,
`findings`).
"""

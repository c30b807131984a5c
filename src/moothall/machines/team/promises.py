"""Whether prose says that the work is being handed on: "I'll hand off to the CFO", "Let me bring in the CFO".

A statement of the speaker counts: what it is doing or about to do. Questions, denials, conditions, offers, advice,
habits, reports of what others did, text in quotation marks and code do not. The reader goes clause by clause: an
opening that commits the speaker ("I'll", "let me", "I am", a participle at the beginning), then a verb of handing on,
then somebody to whom work can be handed. All three have to be there; where one is doubtful, there is no promise.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache

LONGEST = 6_000
"""The most characters that are read, half from the beginning and half from the end."""

_ROLE = (
    r"c[a-z]o|ceo|cfo|cto|coo|cmo|cpo|cio|vp|pm|qa|hr|designers?|engineers?|engineering|artists?|directors?|managers?|"
    r"leads?|partners?|teams?|analysts?|developers?|reviewers?|testers?|finance|marketing|legal|colleagues?|experts?|"
    r"specialists?|architects?|producers?|writers?|officers?|accountants?|department|programmers?|researchers?|"
    r"planners?|editors?|critics?|judges?|lawyers?|security|operations|sales|user|client|owner|boss|chief|"
    r"persona|agent|person|people|somebody else|someone else|someone|somebody|controller|coder|scientist"
)
_ADVERB = (
    r"(?:(?:now|then|next|also|just|therefore|thus|hereby|gladly|happily|immediately|directly|simply|quickly|again|"
    r"first|already|herewith|shortly|soon|accordingly|instead|right away|at once|actually|definitely|certainly|"
    r"gonna|go ahead and|better)\s+)*"
)
_OBJECT = r"(?:\s+(?!to\b|nothing\b|no\b|none\b|neither\b)[\w'’-]+){0,7}?"  # what is handed on
_ONWARD = r"(?:\s+(?:off|over|on|back|along|up|down|across|straight|directly|now|next|onward|onwards))*"
_TARGET = r"\s+(?P<target>(?!to\b|no\b|nobody\b|none\b|neither\b|nothing\b)[^,;:.!?\n]{1,80})"


def _forms(*forms: str) -> str:
    return "(?:" + "|".join(forms) + ")"


# Verbs of handing on; {0} is the wanted form (base, -ing, participle) of each.
_TO_VERBS = {
    "base": "hand|pass|transfer|forward|send|refer|route|escalate|delegate|give|turn|assign|move|bring|take|submit|"
    "return|switch|leave|defer|kick|toss|throw|yield|cede|entrust|hand-off|handoff|redirect|relay|shift",
    "ing": "handing|passing|transferring|forwarding|sending|referring|routing|escalating|delegating|giving|turning|"
    "assigning|moving|bringing|taking|submitting|returning|switching|leaving|deferring|kicking|tossing|throwing|"
    "yielding|ceding|entrusting|handing-off|redirecting|relaying|shifting",
    "done": "handed|passed|transferred|forwarded|sent|referred|routed|escalated|delegated|given|turned|assigned|moved|"
    "brought|taken|submitted|returned|left|redirected|relayed|shifted",
}
_IN_VERBS = {
    "base": "bring|loop|pull|call|rope|get|invite|fetch|summon",
    "ing": "bringing|looping|pulling|calling|roping|getting|inviting|fetching|summoning",
    "done": "brought|looped|pulled|called|roped|got|invited",
}
_INVOLVE = {
    "base": "involve|summon|engage|activate",
    "ing": "involving|summoning|engaging|activating",
    "done": "involved",
}
_HAND = {"base": "hand", "ing": "handing", "done": "handed"}
_FETCH = {"base": "get|fetch|call", "ing": "getting|fetching|calling", "done": "fetched|called"}
_PASS = {"base": "pass", "ing": "passing", "done": "passed"}
_CONNECT = {"base": "connect", "ing": "connecting", "done": "connected"}
_WORK = (
    r"take (?:it|this|that|things|over)\b|take a look|handle|review|check|look|decide|continue|go on|finish|carry on|"
    r"answer|weigh in|assess|evaluate|approve|estimate|price|cost|step in|verify|validate|comment|run the numbers|"
    r"work on|do (?:it|this|that)|own|sign off|confirm|analy[sz]e|examine|join"
)


def _handing(form: str) -> tuple[str, ...]:
    """The verbs of handing on in one of their forms, each with its object and its target."""
    return (
        rf"(?:{_TO_VERBS[form]})\b{_OBJECT}{_ONWARD}\s+(?:to|onto|towards){_TARGET}",
        rf"(?:{_IN_VERBS[form]})\s+in\b{_TARGET}",
        rf"(?:{_IN_VERBS[form]})\s+(?P<target>[^,;:.!?\n]{{1,60}}?)\s+(?:in|into|involved|on board|on it)\b",
        rf"(?:{_INVOLVE[form]}){_TARGET}",
        rf"(?:{_FETCH[form]})\s+(?:the\s+|our\s+)?(?P<exact>[^,;:.!?\n]{{2,40}}?)(?:\s+now|\s+first)?\s*$",
        rf"{_HAND[form]}(?:{_OBJECT})\s+(?P<off>off|over)\b(?!\s+(?:to\b|nothing|no\b|the\b|my\b|our\b|a\b))",
        rf"(?P<off>{_PASS[form]}\s+(?:it|this|that|everything)\s+(?:on|over|along))\s*$",
        rf"{_CONNECT[form]}\s+you\s+(?:with|to){_TARGET}",
    )


_ASKING = (
    r"(?:ask|have|let|get|want|need|invite|tell|request)\s+(?P<target>[^,;:.!?\n]{1,40}?)\s+"
    rf"(?:to\s+)?(?:{_WORK})"
)
_I = r"(?:i|we)"
_COMMIT = _forms(
    rf"{_I}(?:'ll|\s+will|\s+shall)",
    rf"{_I}(?:'m|'re|\s+am|\s+are)\s+{_ADVERB}(?:going\s+to|about\s+to|gonna|ready\s+to|happy\s+to)",
    r"let\s+me|let's|let\s+us|allow\s+me\s+to|time\s+to|i\s+hereby",
    rf"{_I}(?:'d|\s+would)\s+{_ADVERB}like\s+to",
    rf"{_I}(?:'d|\s+had)\s+better",
    rf"{_I}\s+{_ADVERB}(?:want|wish|need|have|intend|plan|am\s+going|have\s+decided|decided|must|choose)(?:\s+to)?",
)
_START = (
    r"^(?:(?:and|so|then|now|ok|okay|right|great|good|done|approved|agreed|next|well|thanks|alright|therefore)\b"
    r"[\s,]*)*"
)
_OPENINGS = (
    ("base", rf"\b{_COMMIT}\s+{_ADVERB}"),
    ("ing", rf"\b{_I}(?:'ll|\s+will)\s+be\s+{_ADVERB}"),
    ("ing", rf"\b{_I}(?:'m|'re|\s+am|\s+are)\s+{_ADVERB}"),
    ("done", rf"\b{_I}(?:'ve|\s+have)\s+{_ADVERB}"),
    ("base", rf"\b{_I}\s+{_ADVERB}"),
    ("ing", rf"{_START}{_ADVERB}(?P<gerund>)"),
)
_THIS = r"\b(?:this|it|that|the\s+\w+(?:\s+\w+)?)"
_STATEMENTS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        *(opening + handing for form, opening in _OPENINGS for handing in _handing(form)),
        rf"\b{_COMMIT}\s+{_ADVERB}{_ASKING}",
        rf"{_START}{_ADVERB}(?:(?:back\s+|off\s+|on\s+)?over|off)\s+to{_TARGET}",
        rf"{_START}(?P<off>over\s+to\s+you)\b",
        r"^(?P<target>[\w' -]{1,40}?),?\s+(?:you're\s+up|your\s+turn)\b",
        rf"{_THIS}(?:\s+(?:now|next|then))*\s+goes(?:\s+(?:now|next|then|back|on|over|straight|off|directly))*\s+to{_TARGET}",
        rf"{_THIS}(?:'s|\s+is|\s+are|\s+will\s+be|\s+has\s+been)\s+{_ADVERB}(?:being\s+|going\s+to\s+be\s+)?{_ADVERB}"
        rf"(?:{_TO_VERBS['done']}|going|headed|moving|passing){_ONWARD}\s+to{_TARGET}",
        r"(?P<target>[\w' -]{1,40}?)\s*,?(?:'ll|\s+will|\s+can|\s+should|\s+please|,\s*please)?\s+(?:now\s+)?takes?\s+"
        r"(?:(?:it|this|that|things)(?:\s+over)?\s+from\s+here|over\s+from\s+here|over(?:\s+now)?\s*$|it\s+over\s*$)",
    )
)
_TIMELESS = re.compile(
    r"\b(?:usually|often|always|normally|sometimes|typically|generally|every time|each time)\b", re.I
)
_DENIAL = re.compile(
    r"\b(?:not|never|no|nobody|none|without|cannot|hardly|refuse\w*|declin\w+|avoid\w*|doubt\w*|rather than|instead of|"
    r"pretend\w*|imagine|suppose|unlikely|nor|neither|against|stop\w*|as if|as though)\b|n't\b",
    re.IGNORECASE,
)
_REPORT = re.compile(
    r"\b(?:said|says|saying|told|tells|asked|claimed|claims|wrote|writes|promised|suggest\w*|propos\w*|recommend\w*|thought|"
    r"considered|considering|wonder\w*|whether|asks|asking|discuss\w*|would|could|might|may|advis\w*|the idea|hoped|"
    r"remember when|template|example|phrase|sentence|words|line)\b",
    re.IGNORECASE,
)
_SUBORDINATE = re.compile(
    r"\b(?:before|when|whenever|until|till|after|once|while|if|whether|why|how|unless|in case|assuming|where|what|whom|"
    r"who|the (?:moment|day|time)|as soon as|every time|each time|by the time|since|ever)\s*$",
    re.IGNORECASE,
)
_CONDITION = re.compile(r"\b(?:if|unless|in case|provided|assuming|supposing|were i)\b", re.IGNORECASE)
_VERB_AFTER_GERUND = re.compile(
    r"\b(?:is|isn't|was|wasn't|are|were|would|wouldn't|could|couldn't|might|may|can|can't|cannot|seems?|means?|meant|"
    r"makes?|made|costs?|takes?|took|has|had|should|shouldn't|won't|will|does|doesn't|did|didn't|feels?|felt|saves?|"
    r"saved|requires?|needs?|worked|works|helps?|helped|sounds?|remains?|brings?|comes?)\b",
    re.IGNORECASE,
)
_CODE = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|`[^`\n]*`", re.DOTALL)
_QUOTED = re.compile(
    r'"[^"\n]{0,2000}"|“[^”]{0,2000}”|«[^»]{0,2000}»|„[^“”]{0,2000}[“”]|‘[^’\n]{0,300}’(?!\w)|(?<!\w)\'[^\'\n]{2,300}\'(?!\w)'
)
_CITED_LINE = re.compile(r"^[ \t]*(?:>|\|).*$", re.MULTILINE)
_SENTENCE = re.compile(r"[^.!?\n]*(?:\.(?=\w)[^.!?\n]*)*[.!?\n]*")
_CLAUSE = re.compile(
    r"[,;:()]|\s[-–—]+\s|—|\b(?:so|but|and|because|therefore|hence|thus|which is why)\b(?=\s)", re.IGNORECASE
)


_VERBS = (_TO_VERBS, _IN_VERBS, _INVOLVE, _CONNECT, _FETCH)
_STEM = re.compile(
    rf"\b(?:{'|'.join(form for verbs in _VERBS for form in verbs.values())}|"
    r"over|off|goes|going|headed|takes?|up|turn|ask|have|let|want|need|tell|request)\b",
    re.IGNORECASE,
)
_REACH = 160
"""How far behind its clause a statement may go on."""


def promises_handoff(content: str, agents: Collection[str] = ()) -> bool:
    """Whether the prose says that the work is being handed on."""
    if len(content) > LONGEST:
        content = content[: LONGEST // 2] + "\n" + content[-LONGEST // 2 :]
    prose = _CITED_LINE.sub(" ", _CODE.sub(" ", content))
    prose = _QUOTED.sub(" ", prose).replace("’", "'").replace("*", "").replace("__", "")
    is_target = _target_reader(tuple(agents))
    return any(_states_handoff(match[0], is_target) for match in _SENTENCE.finditer(prose) if match[0].strip())


@lru_cache(maxsize=256)
def _target_reader(agents: tuple[str, ...]) -> re.Pattern[str]:
    """A pattern for somebody to whom work can be handed: an agent by its name, spelled in any way, or a role."""
    names = {re.escape(spelling) for agent in agents for spelling in _spellings(agent)}
    known = "|".join(sorted(names, key=len, reverse=True))
    return re.compile(
        rf"(?<![\w-])(?:{known + '|' if known else ''}{_ROLE})(?![\w-])|(?-i:\b[A-Z][a-z]+[A-Z]\w+)|\b\w+_\w+", re.I
    )


def _spellings(agent: str) -> tuple[str, ...]:
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|_|-", " ", agent).strip()
    return (agent, apart) if agent else ()


def _states_handoff(sentence: str, is_target: re.Pattern[str]) -> bool:
    text = sentence.strip()
    if "?" in text[-4:] or _CONDITION.search(text) or _TIMELESS.search(text):
        return False
    text = re.sub(r"^[\s#>•+-]+|^\d+[.)]\s+", "", text).rstrip(" .!\n")
    starts = [0, *(match.end() for match in _CLAUSE.finditer(text))]
    return any(
        _clause_states(text, start, end, is_target) for start, end in zip(starts, [*starts[1:], len(text)], strict=True)
    )


def _clause_states(text: str, start: int, end: int, is_target: re.Pattern[str]) -> bool:
    start += len(text[start:]) - len(text[start:].lstrip(" ,;:"))
    clause = text[start : max(end, start) + _REACH]
    if _STEM.search(clause) is None or _SUBORDINATE.search(text[:start].rstrip(" ,")):
        return False
    for pattern in _STATEMENTS:
        match = pattern.search(clause)
        if match is None or start + match.start() > max(end, start):
            continue
        before = clause[: match.start()]
        if _DENIAL.search(before) or _REPORT.search(before) or _SUBORDINATE.search(before):
            continue
        if _names_target(match, is_target) and not _is_subject(match, clause):
            return True
    return False


def _names_target(match: re.Match[str], is_target: re.Pattern[str]) -> bool:
    groups = match.groupdict()
    if groups.get("off"):
        return True
    if exact := groups.get("exact"):
        return is_target.fullmatch(exact) is not None
    target = groups.get("target") or ""
    if re.match(r"(?:her|him|them)\b", target, re.IGNORECASE):
        target = match.string
    return _DENIAL.match(target) is None and is_target.search(target[:200]) is not None


def _is_subject(match: re.Match[str], clause: str) -> bool:
    """Whether a participle at the beginning is only talked about: "Handing off to the CFO would be too early"."""
    if match.groupdict().get("gerund") is None:
        return False
    rest = re.split(r"[,;:]|\b(?:who|which|that|so|because|since|as|where|and)\b", clause[match.start() :], maxsplit=1)[
        0
    ]
    return (_VERB_AFTER_GERUND.search(rest) or _DENIAL.search(rest)) is not None

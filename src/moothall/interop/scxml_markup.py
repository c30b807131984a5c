"""XML as a tree of tags that know their line, and back to text.

Only what a document says inside itself is read: a document type declaration is refused, because it can name files,
addresses and entities that grow without end. Comments and processing instructions are dropped. Namespaces are
resolved; a tag keeps its local name and its namespace, an attribute of a foreign namespace is called
`{namespace}name`. Nothing here knows what the tags mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from moothall.errors import DefinitionError

DEEPEST = 120
XML = "http://www.w3.org/XML/1998/namespace"


@dataclass(frozen=True, slots=True)
class Tag:
    """One element: its name and namespace, its attributes, what is inside, and where it stands."""

    name: str
    space: str
    attributes: Mapping[str, str]
    inside: tuple[Tag | str, ...] = ()
    line: int = 0
    column: int = 0

    def get(self, attribute: str) -> str | None:
        return self.attributes.get(attribute)

    @property
    def tags(self) -> Iterator[Tag]:
        return (part for part in self.inside if isinstance(part, Tag))

    @property
    def text(self) -> str:
        return "".join(part for part in self.inside if isinstance(part, str))


class _Growing:
    """The tree while it is read: the open elements, innermost last."""

    def __init__(self, parser: expat.XMLParserType, file: str) -> None:
        self.parser = parser
        self.file = file
        self.heads: list[tuple[str, dict[str, str], int, int]] = []
        self.insides: list[list[Tag | str]] = [[]]
        parser.buffer_text = True
        parser.StartElementHandler = self.opened
        parser.EndElementHandler = self.closed
        parser.CharacterDataHandler = self.read
        parser.StartDoctypeDeclHandler = self.refused

    def opened(self, name: str, attributes: dict[str, str]) -> None:
        line = self.parser.CurrentLineNumber
        if len(self.heads) == DEEPEST:
            raise DefinitionError(f"{self.file}, line {line}: elements are nested more than {DEEPEST} deep")
        self.heads.append((name, attributes, line, self.parser.CurrentColumnNumber + 1))
        self.insides.append([])

    def closed(self, _: str) -> None:
        name, attributes, line, column = self.heads.pop()
        inside = tuple(self.insides.pop())
        space, _, local = name.rpartition(" ")
        self.insides[-1].append(Tag(local, space, _qualified_names(attributes), inside, line, column))

    def read(self, text: str) -> None:
        self.insides[-1].append(text)

    def refused(self, name: str, system: str | None, public: str | None, internal: bool) -> None:
        raise DefinitionError(
            f"{self.file}, line {self.parser.CurrentLineNumber}: a document type declaration is not read; remove it"
        )


def _qualified_names(attributes: dict[str, str]) -> dict[str, str]:
    return {f"{{{name.replace(' ', '}')}" if " " in name else name: value for name, value in attributes.items()}


def parse(text: str, file: str) -> Tag:
    """The outermost tag of a document."""
    parser = expat.ParserCreate(namespace_separator=" ")
    growing = _Growing(parser, file)
    try:
        parser.Parse(text.removeprefix("\ufeff"), True)
    except expat.ExpatError as error:
        reason = expat.errors.messages.get(error.code, str(error.code))
        raise DefinitionError(f"{file}, line {error.lineno}: this is not XML: {reason}") from error
    [root] = (part for part in growing.insides[0] if isinstance(part, Tag))
    return root


def render(inside: Iterable[Tag | str], space: str = "") -> str:
    """The text of some tags, to stand where this namespace is the default one."""
    return "".join(escape(part) if isinstance(part, str) else _render_tag(part, space) for part in inside)


def _render_tag(tag: Tag, space: str) -> str:
    declared = f" xmlns={quoteattr(tag.space)}" if tag.space != space else ""
    head = f"{tag.name}{declared}{attributes_of(tag.attributes)}"
    inside = render(tag.inside, tag.space)
    return f"<{head}>{inside}</{tag.name}>" if inside else f"<{head}/>"


def attributes_of(attributes: Mapping[str, str]) -> str:
    """Attributes as text; those of a foreign namespace bring their prefix along."""
    found = ""
    for position, (name, value) in enumerate(attributes.items()):
        if name.startswith("{"):
            space, _, local = name[1:].partition("}")
            prefix = "xml" if space == XML else f"a{position}"
            found += "" if space == XML else f" xmlns:{prefix}={quoteattr(space)}"
            name = f"{prefix}:{local}"
        found += f" {name}={quoteattr(value)}"
    return found


def brief(tag: Tag) -> str:
    """A tag in one line, for labels."""
    words = [f"{name}={value}" for name, value in tag.attributes.items()]
    for part in tag.inside:
        text = brief(part) if isinstance(part, Tag) else " ".join(part.split())
        words += [text] if text else []
    return f"{tag.name}({', '.join(words)})" if words else tag.name

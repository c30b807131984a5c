"""Markup as a value: a text in the data of a run, a tree of nodes in JavaScript.

The Recommendation wants a document inside `<data>`, `<assign>` or `<content>` to be an XML DOM structure. Values are
JSON, which has no trees of nodes: markup is kept as `{"#markup": text}`. Lines before a script turn it into a tree
(`TREES`), and a tree or a part of it that the script gives back becomes such a value again. Trees are for reading:
what a script changes in one is lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from moothall.errors import DefinitionError
from moothall.interop.scxml_markup import Tag, parse, render

MARKUP = "#markup"


def of_tag(tag: Tag) -> dict[str, str]:
    """An element as a value."""
    return {MARKUP: render((tag,))}


def text_of(value: Any) -> str | None:
    """The text of a value that is markup; None of any other value."""
    if isinstance(value, Mapping) and value.keys() == {MARKUP} and isinstance(value[MARKUP], str):
        return str(value[MARKUP])
    return None


def trees_in(value: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The markup anywhere inside a value: its text, and the tree that a script is to see."""
    text = text_of(value)
    if text is not None:
        tree = _tree_of(text)
        if tree is not None:
            yield text, tree
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from trees_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from trees_in(inner)


@lru_cache(maxsize=256)
def _tree_of(text: str) -> Mapping[str, Any] | None:
    try:
        return _tree(parse(text, "markup"))
    except DefinitionError:
        return None


def _tree(tag: Tag) -> Mapping[str, Any]:
    inside = [_tree(part) if isinstance(part, Tag) else part for part in tag.inside]
    attributes = {name.rpartition("}")[2]: value for name, value in tag.attributes.items()}
    return {"name": tag.name, "space": tag.space, "attributes": attributes, "inside": inside, "text": render((tag,))}


TREES = """\
(function () {
  function node(about, inside, parent) {
    var made = Object.assign(about, { parentNode: parent });
    made.childNodes = inside.map(function (one) { return (typeof one === "string" ? words : element)(one, made); });
    made.children = made.childNodes.filter(function (one) { return one.nodeType === 1; });
    made.firstChild = made.childNodes[0] || null;
    made.textContent = made.childNodes.map(function (one) { return one.textContent; }).join("");
    made.getElementsByTagName = function (name) {
      return made.children.reduce(function (found, one) {
        return found.concat(name === "*" || name === one.tagName ? [one] : [], one.getElementsByTagName(name));
      }, []);
    };
    return made;
  }
  function words(text, parent) {
    var made = node({ nodeType: 3, nodeName: "#text", nodeValue: text }, [], parent);
    made.textContent = text;
    made.toJSON = function () { return text; };
    return made;
  }
  function element(tree, parent) {
    var about = { nodeType: 1, nodeName: tree.name, tagName: tree.name, namespaceURI: tree.space };
    var made = node(about, tree.inside, parent);
    made.hasAttribute = function (name) { return Object.keys(tree.attributes).includes(name); };
    made.getAttribute = function (name) { return made.hasAttribute(name) ? tree.attributes[name] : null; };
    made.toJSON = function () { return { "#markup": tree.text }; };
    return made;
  }
  function whole(tree) {
    var made = node({ nodeType: 9, nodeName: "#document" }, [tree], null);
    made.documentElement = made.firstChild;
    made.toJSON = made.firstChild.toJSON;
    return made;
  }
  function revived(value) {
    if (value === null || typeof value !== "object") return value;
    if (Object.keys(_x.trees).includes(value["#markup"])) return whole(_x.trees[value["#markup"]]);
    Object.keys(value).forEach(function (name) { value[name] = revived(value[name]); });
    return value;
  }
  _x.marked.forEach(function (name) { globalThis[name] = revived(globalThis[name]); });
})();
"""

"""Files of others are as their authors publish them, and the page asks nobody else for anything."""

import re
from hashlib import sha256
from pathlib import Path

STATIC = Path(__file__).parents[2] / "src" / "moothall" / "web" / "static"


def test_every_file_of_others_is_listed_with_its_hash_and_is_unchanged() -> None:
    listed = dict(re.findall(r"^\| `([^`]+)` .*`([0-9a-f]{64})` \|$", (STATIC / "vendor/README.md").read_text(), re.M))
    there = {path.name: path for path in (STATIC / "vendor").iterdir() if path.name != "README.md"}
    assert listed.keys() == there.keys()
    assert listed == {name: sha256(path.read_bytes()).hexdigest() for name, path in there.items()}


def test_the_page_names_no_address_of_others_and_has_no_inline_script() -> None:
    for path in STATIC.iterdir():
        if path.is_file():
            text = path.read_text("utf-8").replace("http://www.w3.org/2000/svg", "")
            assert "://" not in text, path.name
            assert not re.search(r"<script(?![^>]*src=)|\son\w+=\"|innerHTML|insertAdjacent|\beval\(", text), path.name

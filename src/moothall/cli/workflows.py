"""Commands about definition files: `schema`, `workflows`, `roles`, `new`."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace

from moothall.app.kinds.kind import DEFINED_IN_FILES, kind_named
from moothall.app.kinds.source import write_new
from moothall.app.kinds.workflow.files import list_workflows
from moothall.app.kinds.workflow.roles import SCHEMA as SCHEMA_OF_ROLES
from moothall.app.kinds.workflow.roles import ListedRole, found_roles, write_role
from moothall.cli.main import DONE
from moothall.cli.options import Handler, nonempty_text
from moothall.cli.screen import columns_of, pad, paint, print_json, shorten, show

ROLE, ROLES = "role", "roles"


def schema(parser: ArgumentParser) -> Handler:
    """Print the JSON Schema of a kind of file."""
    parser.add_argument("kind", choices=(*DEFINED_IN_FILES, ROLES), help="the kind of file")
    parser.add_argument("--json", action="store_true", help="print JSON, as it always does")

    def work(chosen: Namespace) -> int:
        print_json(SCHEMA_OF_ROLES if chosen.kind == ROLES else kind_named(chosen.kind).schema())
        return DONE

    return work


def workflows(parser: ArgumentParser) -> Handler:
    """List the workflows that can be run by name."""
    parser.add_argument("--json", action="store_true", help="print them as JSON")

    def work(chosen: Namespace) -> int:
        found = list_workflows()
        if chosen.json:
            print_json(found)
        else:
            width = max(columns_of(workflow.name) for workflow in found)
            for workflow in found:
                note = "" if workflow.is_usable else paint("  has errors: moot check ", "red") + workflow.file
                show(f"{paint(pad(workflow.name, width), 'bold')}  {shorten(workflow.description, 90)}{note}")
        return DONE

    return work


def roles(parser: ArgumentParser) -> Handler:
    """List the roles that the agents of workflows can have, and where each is found."""
    parser.add_argument("workflow", nargs="?", default="", help="only the roles of this workflow's agents")
    parser.add_argument("--roles", type=nonempty_text, metavar="FILE", help="the file of roles, as `run` takes it")
    parser.add_argument("--json", action="store_true", help="print them as JSON")

    def work(chosen: Namespace) -> int:
        found = found_roles(chosen.workflow, chosen.roles or "")
        if chosen.json:
            print_json(found)
            return DONE
        width = max((columns_of(role.name) for role in found.roles), default=0)
        places = max((columns_of(_place(role)) for role in found.roles), default=0)
        for role in found.roles:
            decides = f"decides {', '.join(role.decides)}. " if role.decides else ""
            text = shorten(f"{role.level}. {decides}{role.begins}", 90)
            show(f"{paint(pad(role.name, width), 'bold')}  {pad(_place(role), places)}  {text}")
        for name in found.missing:
            show(f"{name} is in no file of roles: it has no system message; `moot new role {name}` writes one")
        for note in found.notes:
            print(note, file=sys.stderr)
        return DONE

    return work


def _place(role: ListedRole) -> str:
    return role.found_in + (" over the shipped one" if role.is_over_shipped else "")


def new(parser: ArgumentParser) -> Handler:
    """Write a file to begin with."""
    parser.add_argument("kind", choices=(*DEFINED_IN_FILES, ROLE), help="what to begin")
    parser.add_argument("name", help="its name")
    parser.add_argument("--json", action="store_true", help="print where it was written as JSON")

    def work(chosen: Namespace) -> int:
        if chosen.kind == ROLE:
            path, way = write_role(chosen.name), ""
        else:
            path, way = write_new(kind_named(chosen.kind), chosen.name)
        if chosen.json:
            print_json({"file": str(path)})
        elif chosen.kind == ROLE:
            print(f'{path}\ncheck it with:  moot check {path}\nuse it as:      "agent_role": "{chosen.name}"')
        else:
            print(f"{path}\ncheck it with:  moot check {path}\nrun it with:    {way}")
        return DONE

    return work

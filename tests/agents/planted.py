"""Secrets that are nobody's: keys in the formats of providers, registered values, and what encoders make of these.

They are put together here, so that no file of the repository has a text that looks like a key.
"""

import base64
import json
import random
import string
from dataclasses import dataclass
from urllib.parse import quote, quote_plus

chance = random.Random(2026)
LETTERS = string.ascii_letters + string.digits


def some(length: int, letters: str = LETTERS) -> str:
    """A random token that has a digit early on, as keys do."""
    token = [chance.choice(letters) for _ in range(length)]
    token[2] = chance.choice([letter for letter in letters if letter.isdigit()] or letters)
    return "".join(token)


@dataclass(frozen=True)
class Plant:
    """A text with a secret in it: the part that must be gone, and what stands there instead."""

    text: str
    secret: str
    name: str


def of_provider(name: str, *parts: str) -> Plant:
    key = "".join(parts)
    return Plant(f"the key is {key}, keep it", key, name)


def around(before: str, secret: str, after: str, name: str) -> Plant:
    return Plant(before + secret + after, secret, name)


UPPER = string.ascii_uppercase + string.digits
BASE64 = LETTERS + "+/"
DASHED = LETTERS + "_-"
KEY_ID = "AKIA" + some(16, UPPER)
PEM = "\n".join([some(64, BASE64) for _ in range(4)])


def pem(kind: str) -> Plant:
    block = f"-----BEGIN {kind}PRIVATE KEY-----\n{PEM}\n-----END {kind}PRIVATE KEY-----"
    return Plant(f"here:\n{block}\nand so on", PEM, "private key")


FORMATS = (
    of_provider("openai key", "sk-", some(48)),
    of_provider("openai key", "sk-", some(32, "0123456789abcdef")),
    of_provider("openai key", "sk-proj-", some(120, DASHED)),
    of_provider("openai key", "sk-svcacct-", some(80, DASHED)),
    of_provider("openai key", "sk-or-v1-", some(64, "0123456789abcdef")),
    of_provider("openai key", "sk-test-", some(38)),
    of_provider("openai key", "sk-live-", some(38)),
    of_provider("anthropic key", "sk-ant-api03-", some(93, DASHED), "AA"),
    of_provider("anthropic key", "sk-ant-oat01-", some(90, DASHED)),
    of_provider("google key", "AIza", some(35, DASHED)),
    of_provider("google token", "ya29.", some(60, DASHED)),
    of_provider("aws key id", KEY_ID),
    of_provider("aws key id", "ASIA", some(16, UPPER)),
    around("aws_secret_access_key = ", some(40, BASE64), "\n", "aws secret key"),
    around('{"SecretAccessKey": "', some(40, BASE64), '"}', "aws secret key"),
    *(of_provider("github token", f"gh{kind}_", some(36)) for kind in "pousr"),
    of_provider("github token", "github_pat_", some(22), "_", some(59)),
    of_provider("gitlab token", "glpat-", some(20, DASHED)),
    of_provider("slack token", "xoxb-", some(12, string.digits), "-", some(12, string.digits), "-", some(24)),
    of_provider("slack token", "xoxp-", some(12, string.digits), "-", some(32)),
    of_provider("stripe key", "sk_live_", some(24)),
    of_provider("stripe key", "rk_live_", some(40)),
    of_provider("hugging face token", "hf_", some(34, string.ascii_letters)),
    of_provider("groq key", "gsk_", some(52)),
    of_provider("xai key", "xai-", some(80)),
    around("AccountName=a;AccountKey=", some(86, BASE64) + "==", ";Endpoint=x", "azure key"),
    around("https://a.example.net/b?sv=1&sig=", some(43) + "%3D", "&se=2", "azure key"),
    of_provider("azure key", some(52), "JQQJ99", some(26)),
    of_provider("azure key", some(3), "8Q~", some(34)),
    around("api-key: ", some(32, "0123456789abcdef"), "\n", "api key"),
    of_provider("json web token", "eyJ", some(33), ".eyJ", some(60, DASHED), ".", some(43, DASHED)),
    pem(""),
    pem("RSA "),
    pem("OPENSSH "),
    pem("EC "),
    around("Authorization: Bearer ", some(40, DASHED), "\n", "authorization"),
    around('{"authorization": "Bearer ', some(24), '"}', "authorization"),
    around("Authorization: Basic ", base64.b64encode(some(20).encode()).decode(), "\n", "authorization"),
    around("postgresql://ada:", some(16), "@db.example.org/x", "password"),
    around("https://robot:", "hunter2", "@example.org/", "password"),
)
"""One text for each format of a key that is known without being registered."""

REGISTERED = {"ACME_API_KEY": some(39), "VAULT_PHRASE": 'pä ss/w+rd & "x"\\y%<z>?>~~' + some(9)}
"""Two registered secrets: one that nothing escapes, and one of which every encoder makes something else."""


def encoded(name: str, value: str) -> tuple[Plant, ...]:
    """A registered secret in every form in which it is found."""
    forms = {
        value,
        json.dumps(value)[1:-1],
        json.dumps(value, ensure_ascii=False)[1:-1],
        quote(value, safe=""),
        quote(value),
        quote_plus(value),
        lowered(quote(value, safe="")),
        value.encode().hex(),
        value.encode().hex().upper(),
    }
    plain = [base64.b64encode(value.encode()).decode(), base64.urlsafe_b64encode(value.encode()).decode()]
    forms |= {*plain, *(form.rstrip("=") for form in plain)}
    inside = {
        encode(b"#" * before + value.encode() + b"#" * after).decode()
        for encode in (base64.b64encode, base64.urlsafe_b64encode)
        for before in (1, 2, 3)
        for after in (0, 1)
    }
    return (
        *(Plant(f"it is ({form})", form, name) for form in sorted(forms)),
        *(Plant(f"it is ({whole})", whole[4:-4], name) for whole in sorted(inside)),
    )


def lowered(quoted: str) -> str:
    """The same address with its hexadecimal digits in lower case."""
    parts = quoted.split("%")
    return "%".join([parts[0], *(part[:2].lower() + part[2:] for part in parts[1:])])


PLANTS = (*FORMATS, *(plant for name, value in REGISTERED.items() for plant in encoded(name, value)))

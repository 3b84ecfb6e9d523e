"""A whole HTML document: our one style and our one script, each known to the content security policy by its hash.

Nothing is loaded from anywhere. A text that became markup against all care could still run nothing and send nothing.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files

from evalcore_report.markup import Child, Html, Markup

TITLE = "evalcore"


@cache
def asset(name: str) -> str:
    """A file of ours that goes into the page."""
    return files("evalcore_report").joinpath("assets", name).read_text(encoding="utf-8")


def policy(*, live: bool = False) -> str:
    """The content security policy; `live` pages may ask the server that they came from."""
    parts = [
        "default-src 'none'",
        f"script-src '{_hash(asset('script.js'))}'",
        f"style-src '{_hash(asset('style.css'))}'",
        "img-src data:",
        "connect-src 'self'" if live else "connect-src 'none'",
        "base-uri 'none'",
        "form-action 'self'" if live else "form-action 'none'",
    ]
    return "; ".join(parts)


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def document(h: Html, title: str, *body: Child, live: str | None = None) -> bytes:
    """The file. `live` is where a page asks whether it is out of date; None for one that stands alone.

    A lone surrogate of a stranger's text is written as a replacement character: UTF-8 has none.
    """
    head = h(
        "head",
        h("meta", charset="utf-8"),
        h("meta", http_equiv="Content-Security-Policy", content=policy(live=live is not None)),
        h("meta", name="viewport", content="width=device-width, initial-scale=1"),
        h("meta", name="color-scheme", content="light dark"),
        h("meta", name="referrer", content="no-referrer"),
        h("meta", name="robots", content="noindex"),
        h("title", f"{title} · {TITLE}"),
        h("style", Markup(asset("style.css"))),
    )
    skip = h("a", "Skip to the results", href="#main", class_="skip")
    script = h("script", Markup(asset("script.js")))
    page = h("html", head, h("body", skip, *body, script), lang="en", data_live=live)
    return f"<!doctype html>\n{page}\n".encode("utf-8", "replace")

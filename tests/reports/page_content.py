"""The content of a page, as a browser reads it."""

import base64
from html.parser import HTMLParser
from urllib.parse import unquote


def _decode(address):
    """Return the content of a ``data:`` address."""
    return base64.b64decode(unquote(address.partition(",")[2]))


class PageContent(HTMLParser):
    """What a browser would load, name or run."""

    def __init__(self, html):
        super().__init__()
        self.tags: list[str] = []
        self.loaded: list[str] = []
        self.links: list[str] = []
        self.tables: list[str] = []  # as CSV
        self.sheets: list[bytes] = []  # as Excel
        self.images: list[dict[str, str | None]] = []
        self.ids: list[str] = []
        self.attributes: set[str] = set()
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.tags.append(tag)
        self.loaded += [found[name] or "" for name in ("src", "srcset", "data") if name in found]
        address = found.get("href") or ""
        if address.startswith("data:text/csv;base64,"):
            self.tables.append(_decode(address).decode())
        elif address.startswith("data:application/vnd.openxmlformats"):
            self.sheets.append(_decode(address))
        elif "href" in found:
            self.links.append(address)
        self.ids += [found["id"] or ""] if "id" in found else []
        self.images += [found] if tag == "img" else []
        self.attributes |= set(found)

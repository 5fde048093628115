"""The content of a page, as a browser reads it."""

import base64
from html.parser import HTMLParser


class PageContent(HTMLParser):
    """What a browser would load, name or run."""

    def __init__(self, html: str) -> None:
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

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.tags.append(tag)
        self.loaded += [found[name] or "" for name in ("src", "srcset", "data") if name in found]
        address = found.get("href") or ""
        if address.startswith("data:text/csv;base64,"):
            self.tables.append(base64.b64decode(address.partition(",")[2]).decode())
        elif address.startswith("data:application/vnd.openxmlformats"):
            self.sheets.append(base64.b64decode(address.partition(",")[2]))
        elif "href" in found:
            self.links.append(address)
        self.ids += [found["id"] or ""] if "id" in found else []
        self.images += [found] if tag == "img" else []
        self.attributes |= set(found)

"""A strict reader of pages: every tag is closed, and what a page refers to is listed."""

from html.parser import HTMLParser

VOID = {"meta", "img", "br", "hr", "input", "link"}


class Page(HTMLParser):
    """Tags, texts and references of a page."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.texts, self.references, self.handlers = [], [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name in ("src", "href", "action", "data", "xlink:href"):
                self.references.append(value)
            if name.startswith("on"):
                self.handlers.append((tag, name))

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (tag, self.open[-3:])
        self.open.pop()

    def handle_data(self, data):
        self.texts.append(data)

    def count(self, tag):
        return sum(name == tag for name, _ in self.tags)

    def ids(self):
        return [attrs["id"] for _, attrs in self.tags if "id" in attrs]

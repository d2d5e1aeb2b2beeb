"""A page as a browser reads it: its elements, attributes and text."""

from html.parser import HTMLParser

VOID = {"meta", "link", "br", "img", "input", "hr"}


class Page(HTMLParser):
    """Reads a page. Fails if elements are not closed in order."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.section = ""
        self.scripts: list[str] = []
        self._texts: list[str] = []
        self._texts_of_sections: dict[str, list[str]] = {}
        self.feed(source)
        self.close()
        assert not self.open, f"not closed: {self.open}"
        self.text = "".join(self._texts)
        self.sections = {name: "".join(texts) for name, texts in self._texts_of_sections.items()}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "section":
            self.section = dict(attrs)["id"] or ""
            self._texts_of_sections[self.section] = []

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"</{tag}> closes another element, near {self.getpos()}"
        if tag == "section":
            self.section = ""

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts.append(data)
        elif self.open and self.open[-1] != "style":
            self._texts.append(data)
            if self.section:
                self._texts_of_sections[self.section].append(data)

    def attributes(self, name: str) -> list[str]:
        return [value for _, attributes in self.elements if (value := attributes.get(name)) is not None]

"""SVG elements with escaped texts, and the margins that all pictures share, so that their time axes line up."""

from dataclasses import dataclass

from markupsafe import Markup, escape

from kontroller.history.reports import words

WIDTH = 1080
LEFT = 208
RIGHT = 14
LABEL = 29
"""The number of letters of a label that fit into the left margin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lead:
    """A link to a row of the page, by its id. The page's script then filters the table for all words of `search`."""

    row: str
    search: str = ""


def tag(name: str, *children: str | Markup, **attributes: str | float | None) -> Markup:
    """Return an element. Text that is not markup is escaped. `class_` becomes `class`, and other underscores become
    dashes."""
    shown = Markup("").join(
        Markup(' {}="{}"').format(key.rstrip("_").replace("_", "-"), _plain(value))
        for key, value in attributes.items()
        if value is not None
    )
    inside = Markup("").join(_plain(child) for child in children)
    return Markup("<{0}{1}>{2}</{0}>").format(Markup(name), shown, inside)  # noqa: S704 -- names are this module's callers' literals


def _plain(value: str | float) -> Markup:
    if isinstance(value, Markup):
        return value
    return escape(f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else words.visible(str(value)))


def group(*children: Markup, **attributes: str | float | None) -> Markup:
    return tag("g", *children, **attributes)


def text(words: str, x: float, y: float, class_: str = "label", tip: str = "") -> Markup:
    return tag("text", words, *([tag("title", tip)] if tip else []), x=x, y=y, class_=class_)


def box(x: float, y: float, width: float, height: float, class_: str, tip: str = "", radius: float = 0) -> Markup:
    title = [tag("title", tip)] if tip else []
    return tag("rect", *title, x=x, y=y, width=width, height=height, class_=class_, rx=radius or None)


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Markup:
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def dot(x: float, y: float, radius: float, class_: str, tip: str = "") -> Markup:
    return tag("circle", *([tag("title", tip)] if tip else []), cx=x, cy=y, r=radius, class_=class_)


def link_to_row(row: str, *children: Markup) -> Markup:
    """Return a group that links to a row of the page, for pointer and keyboard. `row`: its id; "" for no link."""
    return wrap_in_link(Lead(row=row) if row else None, *children)


def wrap_in_link(lead: Lead | None, *children: Markup) -> Markup:
    """Return a group with this link, or a plain group without one."""
    if lead is None:
        return group(*children)
    return tag("a", *children, href=f"#{lead.row}", data_search=lead.search or None)


def picture(height: float, *children: Markup, label: str, width: float = WIDTH) -> Markup:
    """Return a whole picture at its own size, which narrow screens scroll. `label` describes it for screen readers.

    A picture with links has the role of a group, because screen readers do not announce links within an image."""
    drawn = tag(
        "svg",
        *children,
        viewBox=f"0 0 {width:g} {height:g}",
        width=width,
        height=height,
        role="group" if "<a " in Markup("").join(children) else "img",
        aria_label=label,
    )
    return tag("div", drawn, class_="scroll", tabindex="0")

"""The availability of each day: a column for each week, like the activity calendars of code hosts."""

from collections.abc import Mapping
from datetime import date, timedelta

from markupsafe import Markup

from kontroller.history.reports import words
from kontroller.history.reports.facts import Uptime
from kontroller.history.reports.plots.scales import availability_class, draw_min_isr_mark, nines_digit, uptime_tip
from kontroller.history.reports.plots.svg import Lead, box, picture, text, wrap_in_link

CELL, STEP, GUTTER, TOP = 16, 18, 40, 18
DAYS_AT_MOST = 800
WEEKDAYS = ("Mon", "", "Wed", "", "Fri", "", "Sun")


def calendar(days: Mapping[date, Uptime], first: date, last: date, *, leads: Mapping[date, Lead]) -> Markup:
    """Draw the days. A day without an entry is drawn as unknown. More than `DAYS_AT_MOST` days get one cell per week.

    `leads`: the links of days. A week has the link of its first day with a link."""
    if (last - first).days >= DAYS_AT_MOST:
        return weeks(days, first, last, leads=leads)
    monday = first - timedelta(days=first.weekday())
    marks = [text(name, GUTTER - 6, TOP + row * STEP + 12, "tick end") for row, name in enumerate(WEEKDAYS) if name]
    labelled = -10
    for index in range((last - first).days + 1):
        day = first + timedelta(days=index)
        column = (day - monday).days // 7
        if (index == 0 or day.day == 1) and column - labelled >= 3:
            marks.append(text(_month(day, index == 0), GUTTER + column * STEP, TOP - 6, "tick"))
            labelled = column
        x, y = GUTTER + column * STEP, TOP + day.weekday() * STEP
        marks.append(_cell(x, y, days.get(day), f"{day:%A} {day}", leads.get(day)))
    columns = (last - monday).days // 7 + 1
    width = max(GUTTER + columns * STEP + 4, GUTTER + 90)
    return picture(TOP + 7 * STEP + 2, *marks, label=f"Availability by day, {first} to {last}", width=width)


def weeks(days: Mapping[date, Uptime], first: date, last: date, *, leads: Mapping[date, Lead]) -> Markup:
    """Draw a row for each year and a cell for each week of ISO 8601."""
    sums: dict[tuple[int, int], Uptime] = {}
    leading_weeks: dict[tuple[int, int], Lead] = {}
    for index in range((last - first).days + 1):
        day = first + timedelta(days=index)
        year, week, _ = day.isocalendar()
        sums[year, week] = sums.get((year, week), Uptime()) + days.get(day, Uptime())
        if day in leads:
            leading_weeks.setdefault((year, week), Lead(row=leads[day].row))
    years = sorted({year for year, _ in sums})[-30:]
    marks = [text(f"week {week}", GUTTER + (week - 1) * STEP, TOP - 6, "tick") for week in (1, 10, 20, 30, 40, 50)]
    for row, year in enumerate(years):
        y = TOP + row * STEP
        marks.append(text(str(year), GUTTER - 6, y + 12, "tick end"))
        marks.extend(
            _cell(GUTTER + (week - 1) * STEP, y, uptime, f"week {week} of {year}", leading_weeks.get((its_year, week)))
            for (its_year, week), uptime in sorted(sums.items())
            if its_year == year
        )
    height = TOP + len(years) * STEP + 2
    return picture(height, *marks, label="Availability by week", width=GUTTER + 53 * STEP + 4)


def _month(day: date, with_year: bool) -> str:
    name = words.MONTHS[day.month - 1]
    return f"{name} {day.year}" if with_year or day.month == 1 else name


def _cell(x: float, y: float, uptime: Uptime | None, name: str, lead: Lead | None) -> Markup:
    uptime = uptime if uptime and (uptime.known_us or uptime.unknown_us) else Uptime(unknown_us=1)
    class_ = availability_class(uptime)
    cell = box(x, y, CELL, CELL, f"cell {class_}", f"{name}: {uptime_tip(uptime)}", radius=2)
    digit = nines_digit(uptime)
    marks = [cell]
    if digit:
        marks.append(text(digit, x + CELL / 2, y + 12, f"digit on-{class_}"))
    marks += draw_min_isr_mark(uptime, x, y, CELL, CELL)
    if uptime.known_us and uptime.unknown_share >= 0.01:
        height = max(3.0, CELL * min(1.0, uptime.unknown_share))
        marks.append(box(x, y + CELL - height, CELL, height, "veil"))
    return wrap_in_link(lead, *marks)

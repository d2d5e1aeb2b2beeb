"""The pictures of a page: the arguments of the plots, made from its facts."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from markupsafe import Markup

from kontroller.history.reports import words
from kontroller.history.reports.facts import Bar, ClusterFacts, Episode, Heat, Lane, Report
from kontroller.history.reports.limits import Limits
from kontroller.history.reports.period import DAY, Grid, add_margins
from kontroller.history.reports.plots import calendar, columns, failovers, grids, lanes, scales, timeline
from kontroller.history.reports.rendering.leads import figure_of, leads_of_days, row_id

SHORT_DAYS = 14
LOUDEST_SHARE = 12 / 7
"""The top of the scale of leaders, as a multiple of the fair share, which then lies in the middle of a step."""
OUTCOMES = {"done", "cancelled", "replaced", "deleted", "running", "stalled", "unknown"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pictures:
    """The pictures, as markup. The template calls these methods."""

    report: Report
    limits: Limits

    def calendar(self, cluster: ClusterFacts) -> Markup:
        period, leads = self.report.period, leads_of_days(self.report, cluster.strip.cluster)
        return calendar.calendar(cluster.days, period.first_day, period.last_day, leads=leads)

    def availability_legend(self) -> Markup:
        return scales.availability_legend()

    def is_short(self) -> bool:
        """Return True if the period has too few days for a calendar."""
        return self.report.day_grid.count <= SHORT_DAYS and self.report.day_grid.width_us == DAY

    def cluster_strips(self) -> Markup:
        clusters = self.report.clusters
        rows = enumerate(self.report.listings["clusters"].rows)
        found = {row["cluster_id"]: index for index, row in rows} if self.report.has_many_clusters else {}
        ids = [one.strip.cluster for one in clusters]
        links = [row_id("clusters", found[its]) if its in found else "topics" for its in ids]
        return grids.strips([cluster.strip for cluster in clusters], self.report.grid, links=links)

    def strips(self) -> Markup:
        """Return the strips of the topics that come first in the table of topics."""
        shown = self.report.strips
        return grids.strips(shown, self.report.grid, links=[row_id("topics", index) for index, _ in enumerate(shown)])

    def piece(self) -> str:
        return words.step_name(self.report.grid.width_us)

    def day_piece(self) -> str:
        return words.step_name(self.report.day_grid.width_us)

    def timeline(self, episode: Episode, name: str) -> Markup:
        """Return an episode's timeline. `name`: the prefix of the ids of its marks' rows."""
        shown = replace(episode, controllers=tuple(self._add_row(bar) for bar in episode.controllers))
        return timeline.timeline(shown, *add_margins(episode.began_us, episode.shown_until_us), rows_of=name)

    def failovers(self) -> Markup:
        dots = [
            failovers.Dot(
                at_us=int(figure_of(row["lost_at"])),
                median_seconds=None if row["median_seconds"] is None else figure_of(row["median_seconds"]),
                max_seconds=figure_of(row["max_seconds"]),
                is_whole=not row["missing"],
                tip=(
                    f"broker {row['broker']}, {words.moment(int(figure_of(row['lost_at'])))}: "
                    f"slowest of {row['partitions']} partitions {words.duration(figure_of(row['max_seconds']))}"
                    + (f", {row['missing']} without a new leader" if row["missing"] else "")
                ),
                row=row_id("failovers", index),
            )
            for index, row in enumerate(self.report.listings["failovers"].rows)
            if row["max_seconds"] is not None and row["lost_at"] is not None
        ]
        period = self.report.period
        return failovers.failovers(dots, self.report.failover_bins, period.began_us, period.ended_us)

    def leaders(self, heat: Heat) -> Markup:
        top = self.fair_share(heat) * LOUDEST_SHARE
        return self._heat(heat, self.report.grid, "Share of leaders by broker", written=words.share, top=top)

    def fair_share(self, heat: Heat) -> float:
        return 1 / max(1, heat.total)

    def leaders_legend(self, heat: Heat) -> Markup:
        return scales.level_legend(self.fair_share(heat) * LOUDEST_SHARE * 100, " %")

    def replicas_out_of_sync(self, heat: Heat) -> Markup:
        return self._heat(
            heat, self.report.grid, "Replicas out of sync by broker", written=lambda value: f"{value:.3g}"
        )

    def level_legend(self, heat: Heat) -> Markup:
        return scales.level_legend(_top(heat), "")

    def flaps(self, heat: Heat) -> Markup:
        return self._heat(heat, self.report.day_grid, "ISR flaps by broker", written=lambda value: f"{value:.0f}")

    def _heat(
        self, heat: Heat, grid: Grid, name: str, *, written: Callable[[float], str], top: float | None = None
    ) -> Markup:
        """Return a heat map. `top`: as for `grids.heat`; None: the largest amount in it."""
        loudest = _top(heat) if top is None else top
        return grids.heat(heat, grid, top=loudest, name=name, written=written, links=self._brokers(heat))

    def _brokers(self, heat: Heat) -> list[str]:
        """Return the row id of each broker in the table of brokers."""
        rows = enumerate(self.report.listings["leadership"].rows)
        found = {f"broker {row['broker']}": index for index, row in rows if row["cluster_id"] == heat.cluster}
        return [row_id("leadership", found[row.label]) if row.label in found else "" for row in heat.rows]

    def has_any(self, heat: Heat) -> bool:
        return _top(heat) > 0

    def exposure(self) -> Markup:
        days = self.report.exposure
        return columns.columns_by_day(
            {
                "one replica in sync": {day: amounts[0] for day, amounts in days.items()},
                "within one rack": {day: amounts[1] for day, amounts in days.items()},
            },
            self.report.day_grid,
            name="Exposure by day",
        )

    def controllers(self) -> Markup:
        period = self.report.period
        holes = tuple(
            Bar(
                began_us=hole.began_us,
                ended_us=hole.ended_us,
                state="unknown",
                label="",
                tip=f"unknown, {words.format_span(hole.began_us, hole.ended_us)}: {hole.reason}",
            )
            for cluster in self.report.clusters
            for hole in sorted(self.report.unknowns, key=lambda hole: hole.began_us)
            if hole.cluster == cluster.strip.cluster
        )
        known = (replace(lane, bars=tuple(self._add_row(bar) for bar in lane.bars)) for lane in self.report.controllers)
        rows = (*known, Lane(label="unknown", bars=holes))
        return lanes.lanes(rows, period.began_us, period.ended_us, name="Controllers over time")

    def _add_row(self, bar: Bar) -> Bar:
        """Return a controller's bar with the row of its term, if that row is shown."""
        rows = enumerate(self.report.listings["controllers"].rows)
        its = (index for index, row in rows if (row["cluster_id"], row["controller_epoch"]) == bar.term)
        index = next(its, None)
        return bar if index is None else replace(bar, row=row_id("controllers", index))

    def reassignments(self) -> Markup:
        period, listed = self.report.period, self.report.listings["reassignments"]
        shown = enumerate(listed.rows[: self.limits.reassignments])
        made = []
        for index, row in sorted(shown, key=lambda one: figure_of(one[1]["began"])):
            began = max(int(figure_of(row["began"])), period.began_us)
            ended = period.ended_us if row["ended"] is None else min(int(figure_of(row["ended"])), period.ended_us)
            outcome = str(row["outcome"])
            name = f"{row['topic']}-{row['partition']}"
            tip = f"{name} {outcome}: {words.format_span(began, ended)}, {row['origin']} to {row['target']}"
            state = outcome if outcome in OUTCOMES else "unknown"
            link = row_id("reassignments", index)
            bar = Bar(began_us=began, ended_us=ended, state=state, label=outcome, tip=tip, row=link)
            made.append(Lane(label=name, bars=(bar,)))
        return lanes.lanes(made, period.began_us, period.ended_us, name="Reassignments over time")


def _top(heat: Heat) -> float:
    return max((value for row in heat.rows for value in row.values if value is not None), default=0.0)

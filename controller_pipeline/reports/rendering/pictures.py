"""The pictures of a page: from its facts to the arguments of the plots, and the words for what cannot be drawn."""

from dataclasses import dataclass

from markupsafe import Markup

from controller_pipeline.reports import words
from controller_pipeline.reports.facts import Bar, ClusterFacts, Episode, Heat, Lane, Report, Value
from controller_pipeline.reports.limits import Limits
from controller_pipeline.reports.period import DAY, shown_window
from controller_pipeline.reports.plots import calendar, columns, failovers, grids, lanes, scales, timeline

SHORT_DAYS = 14
LOUDEST_SHARE = 12 / 7
"""Of leaders, by the fair share: so that the fair share lies in the middle of a step."""
OUTCOMES = {"done", "cancelled", "replaced", "deleted", "running", "stalled", "unknown"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pictures:
    """Called by the template; each returns markup."""

    report: Report
    limits: Limits

    def calendar(self, cluster: ClusterFacts) -> Markup:
        return calendar.calendar(cluster.days, self.report.period.first_day, self.report.period.last_day)

    def availability_legend(self) -> Markup:
        return scales.availability_legend()

    def is_short(self) -> bool:
        """Too few days for a calendar."""
        return self.report.day_grid.count <= SHORT_DAYS and self.report.day_grid.width_us == DAY

    def cluster_strips(self) -> Markup:
        return grids.strips([cluster.strip for cluster in self.report.clusters], self.report.grid)

    def strips(self) -> Markup:
        return grids.strips(self.report.strips, self.report.grid)

    def piece(self) -> str:
        return words.step_name(self.report.grid.width_us)

    def day_piece(self) -> str:
        return words.step_name(self.report.day_grid.width_us)

    def timeline(self, episode: Episode) -> Markup:
        return timeline.timeline(episode, *shown_window(episode.began_us, episode.shown_until_us))

    def failovers(self) -> Markup:
        dots = [
            failovers.Dot(
                at_us=int(_figure(row["lost_at"])),
                median_seconds=None if row["median_seconds"] is None else _figure(row["median_seconds"]),
                max_seconds=_figure(row["max_seconds"]),
                is_whole=not row["missing"],
                tip=(
                    f"broker {row['broker']}, {words.moment(int(_figure(row['lost_at'])))}: "
                    f"slowest of {row['partitions']} partitions {words.duration(_figure(row['max_seconds']))}"
                    + (f", {row['missing']} without a new leader" if row["missing"] else "")
                ),
            )
            for row in self.report.listings["failovers"].rows
            if row["max_seconds"] is not None and row["lost_at"] is not None
        ]
        period = self.report.period
        return failovers.failovers(dots, self.report.failover_bins, period.began_us, period.ended_us)

    def leaders(self, heat: Heat) -> Markup:
        top = self.fair_share(heat) * LOUDEST_SHARE
        return grids.heat(heat, self.report.grid, top=top, name="Share of leaders by broker", written=words.share)

    def fair_share(self, heat: Heat) -> float:
        return 1 / max(1, heat.total)

    def leaders_legend(self, heat: Heat) -> Markup:
        return scales.level_legend(self.fair_share(heat) * LOUDEST_SHARE * 100, " %")

    def out_of_sync(self, heat: Heat) -> Markup:
        name = "Replicas out of sync by broker"
        return grids.heat(heat, self.report.grid, top=_top(heat), name=name, written=lambda value: f"{value:.3g}")

    def level_legend(self, heat: Heat) -> Markup:
        return scales.level_legend(_top(heat), "")

    def flaps(self, heat: Heat) -> Markup:
        name = "ISR flaps by broker"
        return grids.heat(heat, self.report.day_grid, top=_top(heat), name=name, written=lambda value: f"{value:.0f}")

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
                tip=f"unknown, {words.between(hole.began_us, hole.ended_us)}: {hole.reason}",
            )
            for cluster in self.report.clusters
            for hole in sorted(cluster.unknowns, key=lambda hole: hole.began_us)
        )
        rows = (*self.report.controllers, Lane(label="unknown", bars=holes))
        return lanes.lanes(rows, period.began_us, period.ended_us, name="Controllers over time")

    def reassignments(self) -> Markup:
        period, listed = self.report.period, self.report.listings["reassignments"]
        rows = sorted(listed.rows[: self.limits.reassignments], key=lambda row: _figure(row["began"]))
        made = []
        for row in rows:
            began = max(int(_figure(row["began"])), period.began_us)
            ended = period.ended_us if row["ended"] is None else min(int(_figure(row["ended"])), period.ended_us)
            outcome = str(row["outcome"])
            name = f"{row['topic']}-{row['partition']}"
            tip = f"{name} {outcome}: {words.between(began, ended)}, {row['origin']} to {row['target']}"
            state = outcome if outcome in OUTCOMES else "unknown"
            bar = Bar(began_us=began, ended_us=ended, state=state, label=outcome, tip=tip)
            made.append(Lane(label=name, bars=(bar,)))
        return lanes.lanes(made, period.began_us, period.ended_us, name="Reassignments over time")


def _figure(value: Value) -> float:
    assert isinstance(value, int | float)
    return value


def _top(heat: Heat) -> float:
    return max((value for row in heat.rows for value in row.values if value is not None), default=0.0)

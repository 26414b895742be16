//! A lab's figures as a table: any axes as rows, one as columns.

use crate::rounds::is_wide;
use crate::spec::listed;
use crate::{Ended, Ending, Error, Lab};
use nearmiss_verify::{Better, Summary, of_pairs, summary};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// The workloads, as an axis.
const WORKLOAD: &str = "workload";
/// Entry where a workload does not take an axis.
const NOT_TAKEN: &str = "–";
/// The error rate of the intervals.
const ALPHA: f64 = 0.05;

/// Selection to be shown.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Axes, `workload` among them; those that are not named and have several levels are rows too.
    pub rows: Vec<String>,
    /// An axis; none: the first with several levels that is no row.
    pub columns: Option<String>,
    /// Only these levels of axes; several of one axis are one or the other.
    pub only: Vec<(String, String)>,
    /// Figures; none: wall time, CPU time and all that the specification measures.
    pub metrics: Vec<String>,
}

/// A lab's figures, measured.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Show {
    /// [`crate::SCHEMA`].
    pub schema: &'static str,
    /// Kind of the figures: `measured`.
    pub kind: &'static str,
    /// Name of the lab.
    pub name: String,
    /// Seed that shuffled the rounds.
    pub seed: u64,
    /// Cells that ended, and those of them that failed, ran out of time or lack a figure.
    pub cells: usize,
    /// Cells that failed, ran out of time or lack a figure.
    pub not_done: usize,
    /// Totals of the whole lab, for any selection.
    pub totals: Totals,
    /// How sure the intervals are.
    pub confidence: f64,
    /// The axes of the rows.
    pub row_axes: Vec<String>,
    /// The axis of the columns.
    pub column_axis: Option<String>,
    /// The levels that are the columns.
    pub columns: Vec<String>,
    /// Tables, one for each figure.
    pub metrics: Vec<MetricTable>,
    /// The cells themselves.
    pub ended: Vec<Ended>,
}

/// How far a lab is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Totals {
    /// Cells that have ended or are known to come.
    pub cells: usize,
    /// Cells that have ended.
    pub ended: usize,
    /// Cells with all their figures.
    pub done: usize,
    /// Cells whose command succeeded, and that lack a figure.
    pub incomplete: usize,
    /// Cells whose command failed.
    pub failed: usize,
    /// Cells that ran out of time.
    pub timed_out: usize,
}

impl Totals {
    fn of(lab: &Lab) -> Self {
        let how = |how: Ending| lab.ended().values().filter(|cell| cell.how == how).count();
        let ended = lab.ended().len();
        Totals {
            cells: ended + lab.left(),
            ended,
            done: how(Ending::Done),
            incomplete: how(Ending::Incomplete),
            failed: how(Ending::Failed),
            timed_out: how(Ending::TimedOut),
        }
    }
}

/// One figure of all cases.
#[derive(Debug, Serialize, JsonSchema)]
pub struct MetricTable {
    /// Name of the figure.
    pub metric: String,
    /// Unit of the figure.
    pub unit: String,
    /// Which way the figure is better.
    pub better: Better,
    /// The rows.
    pub rows: Vec<Row>,
}

/// A row.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Row {
    /// The level of each of the rows' axes.
    pub levels: Vec<String>,
    /// One a column; none: there is no such case, or nothing of it has ended.
    pub entries: Vec<Option<Entry>>,
}

impl Row {
    /// Whether the row is shown: not that of a workload that lacks the figure.
    fn has_content(&self) -> bool {
        let has_value =
            |entry: &Entry| entry.summary.is_some() || !entry.words.is_empty() || entry.runs == 0 || entry.lacking > 0;
        self.entries.iter().flatten().any(has_value)
    }
}

/// One figure of one case.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Entry {
    /// Repetitions that count.
    pub runs: usize,
    /// Repetitions that succeeded, and lack this figure though they should have it.
    pub lacking: usize,
    /// Repetitions that failed.
    pub failed: usize,
    /// Repetitions that ran out of time.
    pub timed_out: usize,
    /// Median, least and largest; none of words.
    pub summary: Option<Summary>,
    /// The words, each with how often it came, the most frequent first.
    pub words: Vec<(String, usize)>,
    /// Whether the case's repetitions differ by more than the specification allows.
    pub wide: bool,
    /// Ratio to the row's first column.
    pub against_first: Option<Ratio>,
}

/// The ratio to another case, formed repetition by repetition.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Ratio {
    /// Middle of the pairs' ratios.
    pub ratio: f64,
    /// Confidence interval of the ratio; none: there were too few repetitions.
    pub interval: Option<(f64, f64)>,
    /// Pairs of repetitions.
    pub pairs: usize,
}

impl Show {
    /// Makes the table of a lab. Errors: an axis, a level or a figure that it does not have.
    pub fn of(lab: &Lab, wanted: &Selection) -> Result<Self, Error> {
        let axes = Axes::of(lab);
        wanted.rows.iter().chain(&wanted.columns).try_for_each(|name| axes.find(name).map(drop))?;
        let only = axes.only(&wanted.only)?;
        let shown: Vec<&Ended> = lab.ended().values().filter(|cell| axes.is_one_of(cell, only)).collect();
        let columns = wanted.columns.clone().or_else(|| axes.first_varied(&shown, &wanted.rows));
        let rows = axes.rows(&shown, &wanted.rows, columns.as_deref());
        let column_levels = columns.iter().flat_map(|axis| axes.levels_in(axis, &shown)).collect::<Vec<_>>();
        let grid =
            Grid { lab, axes: &axes, shown: &shown, rows: &rows, column: columns.as_deref(), levels: &column_levels };
        let metrics = metrics(lab, wanted)?.iter().map(|metric| grid.table(metric)).collect();
        Ok(Show {
            schema: crate::SCHEMA,
            kind: "measured",
            name: lab.spec.name.clone(),
            seed: lab.spec.seed,
            cells: shown.len(),
            not_done: shown.iter().filter(|cell| cell.how != Ending::Done).count(),
            totals: Totals::of(lab),
            confidence: 1.0 - ALPHA,
            row_axes: rows,
            metrics,
            columns: column_levels.clone(),
            column_axis: columns,
            ended: shown.into_iter().cloned().collect(),
        })
    }
}

/// Names of figures. Errors: one that no workload has.
fn metrics(lab: &Lab, wanted: &Selection) -> Result<Vec<String>, Error> {
    let mut known: Vec<String> = [nearmiss_verify::WALL, nearmiss_verify::CPU].map(str::to_owned).to_vec();
    for name in lab.spec.workload.iter().flat_map(|workload| lab.spec.figures(workload).into_keys()) {
        if !known.iter().any(|other| other == name) {
            known.push(name.to_owned());
        }
    }
    if wanted.metrics.is_empty() {
        return Ok(known);
    }
    known.extend(["user_s", "system_s"].map(str::to_owned));
    match wanted.metrics.iter().find(|name| !known.contains(name)) {
        Some(unknown) => Err(Error::Request(format!("figure {unknown}: the lab has {}", known.join(", ")))),
        None => Ok(wanted.metrics.clone()),
    }
}

/// The axes with their levels in the order of the specification, the workloads first.
struct Axes(Vec<(String, Vec<String>)>);

impl Axes {
    fn of(lab: &Lab) -> Self {
        let workloads = lab.spec.workload.iter().map(|workload| workload.name.clone()).collect();
        let others = lab.spec.axis.iter().map(|axis| {
            let levels = axis.level.iter().map(|level| level.name.clone()).chain([NOT_TAKEN.to_owned()]);
            (axis.name.clone(), levels.collect())
        });
        Axes([(WORKLOAD.to_owned(), workloads)].into_iter().chain(others).collect())
    }

    fn find(&self, name: &str) -> Result<&[String], Error> {
        let found = self.0.iter().find(|(axis, _)| axis == name);
        let known: Vec<&str> = self.0.iter().map(|(axis, _)| axis.as_str()).collect();
        found
            .map(|(_, levels)| levels.as_slice())
            .ok_or_else(|| Error::Request(format!("axis {name}: the lab has {}", listed(&known))))
    }

    fn only<'a>(&self, wanted: &'a [(String, String)]) -> Result<&'a [(String, String)], Error> {
        for (axis, level) in wanted {
            let levels = self.find(axis)?;
            if !levels.contains(level) {
                let known: Vec<&str> = levels.iter().map(String::as_str).filter(|level| *level != NOT_TAKEN).collect();
                return Err(Error::Request(format!("level {level}: axis {axis} has {}", listed(&known))));
            }
        }
        Ok(wanted)
    }

    fn is_one_of(&self, cell: &Ended, only: &[(String, String)]) -> bool {
        only.iter().all(|(axis, _)| only.iter().any(|(a, level)| a == axis && self.level(cell, axis) == level))
    }

    fn level<'a>(&self, cell: &'a Ended, axis: &str) -> &'a str {
        match axis {
            WORKLOAD => &cell.workload,
            _ => cell.levels.get(axis).map_or(NOT_TAKEN, String::as_str),
        }
    }

    /// The levels that some cell has, in the order of the specification.
    fn levels_in(&self, axis: &str, cells: &[&Ended]) -> Vec<String> {
        let all = self.0.iter().filter(|(name, _)| name == axis).flat_map(|(_, levels)| levels);
        all.filter(|level| cells.iter().any(|cell| self.level(cell, axis) == *level)).cloned().collect()
    }

    /// The first axis with several levels, the workloads left out, that is no row.
    fn first_varied(&self, cells: &[&Ended], rows: &[String]) -> Option<String> {
        let free = self.0.iter().skip(1).filter(|(name, _)| !rows.contains(name));
        free.map(|(name, _)| name).find(|name| self.levels_in(name, cells).len() > 1).cloned()
    }

    /// Returns the requested axes, and those that would otherwise mix cases in one entry.
    fn rows(&self, cells: &[&Ended], wanted: &[String], column: Option<&str>) -> Vec<String> {
        let free =
            self.0.iter().map(|(name, _)| name).filter(|name| !wanted.contains(name) && Some(name.as_str()) != column);
        let varied =
            free.filter(|name| self.levels_in(name, cells).len() > 1 || (wanted.is_empty() && *name == WORKLOAD));
        let wanted = wanted.iter().filter(|name| Some(name.as_str()) != column);
        wanted.chain(varied).cloned().collect()
    }
}

/// The cells of a table.
struct Grid<'a> {
    lab: &'a Lab,
    axes: &'a Axes,
    shown: &'a [&'a Ended],
    rows: &'a [String],
    column: Option<&'a str>,
    levels: &'a [String],
}

impl Grid<'_> {
    fn table(&self, metric: &str) -> MetricTable {
        let figures = self.lab.spec.workload.iter().find_map(|w| self.lab.spec.figures(w).get(metric).copied());
        MetricTable {
            metric: metric.to_owned(),
            unit: figures.map(|figure| figure.unit.clone()).unwrap_or_default(),
            better: figures.map(|figure| figure.better).unwrap_or_default(),
            rows: self
                .row_levels()
                .into_iter()
                .map(|levels| self.row(metric, levels))
                .filter(Row::has_content)
                .collect(),
        }
    }

    /// The rows that some cell belongs to, in the order of the specification.
    fn row_levels(&self) -> Vec<Vec<String>> {
        let mut rows = vec![Vec::new()];
        for axis in self.rows {
            let levels = self.axes.levels_in(axis, self.shown);
            let with = |row: &Vec<String>| {
                let row = row.clone();
                levels.clone().into_iter().map(move |level| row.iter().cloned().chain([level]).collect())
            };
            rows = rows.iter().flat_map(with).collect();
        }
        rows.retain(|row: &Vec<String>| self.shown.iter().any(|cell| self.is_of(cell, row)));
        rows
    }

    fn is_of(&self, cell: &Ended, row: &[String]) -> bool {
        self.rows.iter().zip(row).all(|(axis, level)| self.axes.level(cell, axis) == level)
    }

    fn row(&self, metric: &str, levels: Vec<String>) -> Row {
        let of_row: Vec<&Ended> = self.shown.iter().copied().filter(|cell| self.is_of(cell, &levels)).collect();
        let column = |level: &String| -> Vec<&Ended> {
            let of = |cell: &&Ended| self.column.is_none_or(|axis| self.axes.level(cell, axis) == level);
            of_row.iter().copied().filter(of).collect()
        };
        let columns: Vec<Vec<&Ended>> = match self.column {
            Some(_) => self.levels.iter().map(column).collect(),
            None => vec![of_row],
        };
        let first = columns.first().cloned().unwrap_or_default();
        let entries = columns.iter().enumerate().map(|(index, cells)| {
            let against = (index > 0).then_some(first.as_slice());
            (!cells.is_empty()).then(|| self.entry(metric, cells, against))
        });
        Row { entries: entries.collect(), levels }
    }

    fn entry(&self, metric: &str, cells: &[&Ended], first: Option<&[&Ended]>) -> Entry {
        let values: Vec<f64> = cells.iter().filter_map(|cell| cell.figure(metric)).collect();
        let ended = |how: Ending| cells.iter().filter(|cell| cell.how == how).count();
        let case = self.lab.cases.iter().find(|case| cells.first().is_some_and(|cell| cell.case == case.name));
        let after_all = self.lab.spec.most_repetitions().saturating_add(1);
        Entry {
            runs: cells.iter().filter(|cell| cell.counts()).count(),
            lacking: cells.iter().filter(|cell| self.lacks(cell, metric)).count(),
            failed: ended(Ending::Failed),
            timed_out: ended(Ending::TimedOut),
            summary: summary(values),
            words: words(metric, cells),
            wide: metric == self.lab.spec.spread.metric
                && case.is_some_and(|case| is_wide(&self.lab.spec.spread, case, self.lab.ended(), after_all)),
            against_first: first.and_then(|first| ratio(metric, first, cells)),
        }
    }
}

impl Grid<'_> {
    fn lacks(&self, cell: &Ended, metric: &str) -> bool {
        let workload = self.lab.spec.workload.iter().find(|workload| workload.name == cell.workload);
        let figures = workload.map(|workload| self.lab.spec.figures(workload)).unwrap_or_default();
        let is_wanted = figures.get(metric).is_some_and(|figure| !figure.optional);
        is_wanted && cell.counts() && !cell.figures.contains_key(metric) && !cell.words.contains_key(metric)
    }
}

fn words(metric: &str, cells: &[&Ended]) -> Vec<(String, usize)> {
    let mut counts: BTreeMap<&String, usize> = BTreeMap::new();
    for word in cells.iter().filter(|cell| cell.counts()).filter_map(|cell| cell.words.get(metric)) {
        *counts.entry(word).or_default() += 1;
    }
    let mut counts: Vec<(String, usize)> = counts.into_iter().map(|(word, count)| (word.clone(), count)).collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts
}

/// Cells of one round are a pair: their order was shuffled.
fn ratio(metric: &str, first: &[&Ended], cells: &[&Ended]) -> Option<Ratio> {
    let partner = |cell: &&Ended| first.iter().find(|other| other.repetition == cell.repetition).copied();
    let both = cells.iter().filter_map(|cell| Some((partner(cell)?, *cell)));
    let pairs: Vec<_> = both
        .filter(|(a, b)| [a, b].iter().all(|cell| cell.figure(metric).is_some()))
        .map(|(a, b)| (a.figures.clone(), b.figures.clone()))
        .collect();
    let count = pairs.len();
    let compared = of_pairs(metric, Better::Lower, pairs, ALPHA)?;
    Some(Ratio { ratio: compared.ratio, interval: compared.interval, pairs: count })
}

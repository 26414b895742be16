//! Evidence for a subject: its objects, the levels at which they crowd, the functions that wait.

use super::aliasing;
use super::objects::{MOST_LISTED, Objects};
use super::subject::Subject;
use nearmiss_analysis::Traced;
use nearmiss_machine::attribution::Crowd;
use nearmiss_machine::describe;
use nearmiss_record::figures::{Cell, Table};
use nearmiss_record::finding::{Evidence, EvidenceLine};
use nearmiss_record::words::{bytes, counted, grouped, percent};
use std::collections::BTreeMap;

/// Evidence for a subject: objects, levels, functions and shares of the cycles.
pub struct SubjectEvidence {
    /// Most misses first.
    pub objects: Vec<Objects>,
    /// Nearest first; none where loads wait for stores instead.
    pub levels: Vec<LevelEvidence>,
    /// Functions that miss, with their misses, most first.
    pub functions: Vec<(String, u64)>,
    /// Share of the command's modelled cycles that wait for these misses.
    pub cycles_share: f64,
    /// Share that moving the objects could save at the very most.
    pub most_gain: f64,
}

/// Evidence at one level.
pub struct LevelEvidence {
    /// `L1d`, `L2`, `L3`.
    pub cache: String,
    /// Sets that the objects press on at a time.
    pub sets: u64,
    /// Sets of the cache.
    pub of_sets: u64,
    /// Ways.
    pub ways: u32,
    /// Lines that compete for one set.
    pub lines_a_set: f64,
    /// Misses of the objects that would be hits if their lines were spread over all sets.
    pub crowded_misses: u64,
    /// Share of `crowded_misses` in the level's misses.
    pub miss_share: f64,
    /// Whether the remedy can help at this level, and why or why not.
    pub verdict: String,
    /// The verdict as yes or no.
    pub helps: bool,
}

impl SubjectEvidence {
    /// Makes the evidence of a subject with known levels, the cycles that wait for it, and those that it could save at
    /// most.
    pub fn new(
        case: &Traced,
        subject: &Subject,
        levels: Vec<LevelEvidence>,
        wait_cycles: u64,
        most_saved: u64,
    ) -> Self {
        let aliased = !subject.aliased.is_empty();
        SubjectEvidence {
            objects: if aliased { aliasing::objects(subject) } else { Objects::crowded(case, subject) },
            functions: functions(subject),
            cycles_share: share(wait_cycles, case.model.totals.cycles),
            most_gain: share(most_saved, case.model.totals.cycles),
            levels,
        }
    }

    /// Returns the evidence for the record.
    pub fn evidence(&self) -> Evidence {
        let mut lines: Vec<EvidenceLine> = Vec::new();
        for (i, objects) in self.objects.iter().enumerate() {
            lines.push(EvidenceLine::new(if i == 0 { "Objects" } else { "" }, self.objects_line(objects)));
        }
        lines.extend(self.levels.iter().map(|level| EvidenceLine::new(&level.cache, level.line())));
        lines.push(EvidenceLine::new("Cycles", self.cycles_line()));
        let tables = vec![self.objects_table(), self.levels_table(), self.functions_table()];
        Evidence { lines, tables, most_gain: self.most_gain }
    }

    fn objects_line(&self, objects: &Objects) -> String {
        let size = objects.size_bytes.map_or(String::new(), |b| format!(" of {}", bytes(b)));
        let from = match objects.allocated_at.as_slice() {
            [] => String::new(),
            calls => format!(", allocated by {}", calls.join(" > ")),
        };
        format!(
            "`{}`: {}{size}{from}; {} of the {}",
            objects.name,
            counted(objects.count, "object"),
            percent(objects.miss_share),
            if self.levels.is_empty() { "loads" } else { "misses" }
        )
    }

    fn cycles_line(&self) -> String {
        let functions: Vec<&str> = self.functions.iter().map(|(name, _)| name.as_str()).collect();
        format!(
            "{} of the command's modelled cycles wait for these {}, in {}.",
            percent(self.cycles_share),
            if self.levels.is_empty() { "stores" } else { "misses" },
            functions.join(", ")
        )
    }

    fn objects_table(&self) -> Table {
        let row = |objects: &Objects| {
            vec![
                Cell::text(&objects.name),
                Cell::Count(objects.count),
                objects.size_bytes.map_or(Cell::Unknown, Cell::Bytes),
                Cell::Share(objects.miss_share),
                Cell::text(objects.allocated_at.join(" > ")),
            ]
        };
        let of = if self.levels.is_empty() { "of the loads" } else { "of the misses" };
        table("objects", &["name", "count", "size of one", of, "allocated by"], self.objects.iter().map(row))
    }

    fn levels_table(&self) -> Table {
        let row = |level: &LevelEvidence| {
            vec![
                Cell::text(&level.cache),
                Cell::Count(level.sets),
                Cell::Count(level.of_sets),
                Cell::Count(level.ways.into()),
                Cell::Number(level.lines_a_set),
                Cell::Count(level.crowded_misses),
                Cell::Share(level.miss_share),
                Cell::text(&level.verdict),
            ]
        };
        let columns =
            ["cache", "sets pressed", "of sets", "ways", "lines a set", "crowded misses", "of its misses", "verdict"];
        table("levels", &columns, self.levels.iter().map(row))
    }

    fn functions_table(&self) -> Table {
        let row = |(name, misses): &(String, u64)| vec![Cell::text(name), Cell::Count(*misses)];
        let what = if self.levels.is_empty() { "loads that wait" } else { "misses" };
        table("functions", &["name", what], self.functions.iter().map(row))
    }
}

impl LevelEvidence {
    fn line(&self) -> String {
        format!(
            "{} misses on crowded sets ({} of its data misses), {:.0} lines for each of {} of {} ({} ways): {}.",
            grouped(self.crowded_misses),
            percent(self.miss_share),
            self.lines_a_set,
            grouped(self.sets),
            counted(self.of_sets, "set"),
            self.ways,
            self.verdict
        )
    }
}

fn table(title: &str, columns: &[&str], rows: impl Iterator<Item = Vec<Cell>>) -> Table {
    let columns = columns.iter().map(|column| (*column).to_owned()).collect();
    Table { title: title.to_owned(), columns, rows: rows.collect() }
}

fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// Returns the evidence at a level, from the crowds there.
pub fn level(case: &Traced, level: usize, crowds: &[&Crowd], verdict: String, helps: bool) -> LevelEvidence {
    let misses: u64 = crowds.iter().map(|c| c.misses).sum();
    let mean = |figure: &dyn Fn(&Crowd) -> f64| {
        crowds.iter().map(|c| figure(c) * c.misses as f64).sum::<f64>() / misses.max(1) as f64
    };
    let all = case.model.totals.levels.get(level).map_or(0, |tally| tally.data_misses());
    let cache = case.cache(level);
    let suffix = if level == 0 { "d" } else { "" };
    LevelEvidence {
        cache: format!("L{}{suffix}", level + 1),
        sets: (mean(&|c| c.sets).round() as u64).max(1),
        of_sets: cache.map_or(0, describe::sets),
        ways: cache.map_or(0, |cache| cache.ways),
        lines_a_set: mean(&|c| c.lines_a_set),
        crowded_misses: misses,
        miss_share: share(misses, all),
        verdict,
        helps,
    }
}

fn functions(subject: &Subject) -> Vec<(String, u64)> {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    let aliased = subject.aliased.iter().flat_map(|alias| &alias.functions);
    for (name, misses) in subject.crowds.iter().flat_map(|c| &c.functions).chain(aliased) {
        *sums.entry(name).or_default() += misses;
    }
    let mut list: Vec<(String, u64)> = sums.into_iter().map(|(name, misses)| (name.to_owned(), misses)).collect();
    list.sort_by_key(|(_, misses)| std::cmp::Reverse(*misses));
    list.truncate(MOST_LISTED);
    list
}

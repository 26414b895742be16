//! From a subject to a finding: what happens, why, what to do, what it would gain.

use super::aliasing;
use super::colors::least_colors;
use super::detect::level_verdict;
use super::rehearse::{Colorings, exactness, usual_colors};
use super::subject::{Class, Subject};
use crate::case::Case;
use crate::contract::Suspicion;
use crate::rehearsal::{PLACEMENTS, seeds};
use crate::replay::CaseError;
use nearmiss_machine::attribution::Crowd;
use nearmiss_machine::describe;
use nearmiss_record::finding::{Evidence, Finding, LevelEvidence, ObjectEvidence, Prediction, Reach};
use nearmiss_record::rehearsal::Rehearsal;
use nearmiss_record::units::Bytes;
use nearmiss_record::words::{counted, grouped, percent, quoted};
use std::collections::BTreeMap;

/// Most objects and functions that a finding lists.
const MOST_LISTED: usize = 5;

/// A subject with its evidence.
pub struct Colors {
    subject: Subject,
    evidence: Evidence,
    least_colors: u64,
    line_bytes: u64,
}

impl Colors {
    /// Puts the evidence together.
    pub fn new(case: &Case, subject: Subject) -> Self {
        let mut by_level: BTreeMap<usize, Vec<&Crowd>> = BTreeMap::new();
        for crowd in &subject.crowds {
            by_level.entry(crowd.level).or_default().push(crowd);
        }
        let lines = subject.competing_lines();
        // Neighbours of two colors lie but one apart, which is no further than a few stores.
        let mut least = if subject.aliased.is_empty() { 1 } else { 4 };
        let levels: Vec<LevelEvidence> = by_level
            .iter()
            .filter_map(|(level, crowds)| {
                let cache = case.cache(*level)?;
                let colors = least_colors(case.machine(), cache, lines, subject.alignment_bytes());
                let (helps, verdict) = level_verdict(case, *level, colors, lines);
                let evidence = level_evidence(case, *level, crowds, verdict, helps);
                if helps {
                    // Objects with several lines in use press harder than one line each would.
                    let pressing = (evidence.lines_a_set / f64::from(cache.ways.max(1))).ceil() as u64;
                    least = least.max(colors.unwrap_or(1)).max(pressing.next_power_of_two());
                }
                Some(evidence)
            })
            .collect();
        // The same references wait at several levels: the heaviest level that can be helped bounds the gain.
        let waiting = |level: &usize| by_level[level].iter().map(|c| c.stall_cycles).sum::<u64>();
        let crowding = by_level.keys().map(waiting).max().unwrap_or(0);
        let waits = crowding + aliasing::wait_cycles(case, &subject);
        let aliased = !subject.aliased.is_empty();
        let evidence = Evidence {
            objects: if aliased { aliasing::objects(&subject) } else { objects(case, &subject) },
            functions: functions(&subject),
            cycles_share: share(waits, case.model.totals.cycles),
            levels,
        };
        let line_bytes = case.machine().data_caches().map(|c| c.line.0).max().unwrap_or(64);
        Colors { subject, evidence, least_colors: least, line_bytes }
    }

    fn helps(&self) -> bool {
        !self.subject.aliased.is_empty() || self.evidence.levels.iter().any(|level| level.helps)
    }

    fn heaviest(&self) -> Option<&LevelEvidence> {
        self.evidence.levels.iter().max_by_key(|level| level.conflict_misses)
    }

    fn name(&self) -> String {
        let lines = self.subject.competing_lines();
        let first = self.evidence.objects.first().map_or("objects", |o| o.name.as_str());
        match self.subject.class {
            Class::Stacks => counted(lines, "thread stack"),
            Class::Blocks | Class::SmallBlocks if self.evidence.objects.len() == 1 => {
                format!("{} of `{first}`", counted(lines, "malloc block"))
            }
            Class::Blocks | Class::SmallBlocks => counted(lines, "malloc block"),
            Class::AlignedBlocks => format!("{} of `{first}`", counted(lines, "aligned block")),
            Class::Mappings if self.subject.whole_objects() => format!("{} of `{first}`", counted(lines, "mapping")),
            Class::Mappings | Class::Parts => {
                let pieces = counted(lines, "piece");
                format!("{pieces}, {} apart, of `{first}`", Bytes(self.subject.alignment_bytes()))
            }
        }
    }

    fn symptom(&self) -> String {
        let Some(level) = self.heaviest() else { return aliasing::symptom(&self.subject, &self.evidence) };
        let by = match self.evidence.functions.first() {
            Some((function, _)) => format!(" in `{function}`"),
            None => String::new(),
        };
        format!(
            "{} of {} data misses{by} are conflict misses of {} that fall on {} of {} at a time",
            percent(level.miss_share),
            level.cache,
            self.name(),
            grouped(level.sets),
            counted(level.of_sets, "set"),
        )
    }

    fn cause(&self) -> String {
        if !self.subject.aliased.is_empty() {
            return aliasing::cause(&self.subject);
        }
        let alignment = Bytes(self.subject.alignment_bytes());
        let ways = self.heaviest().map_or(0, |level| level.ways);
        let lines = self.heaviest().map_or(0.0, |level| level.lines_a_set);
        let why = match self.subject.class {
            Class::Stacks => {
                "Stacks are mapped alike, so frames of equal depth lie at the same offset of their pages".to_owned()
            }
            Class::Blocks => "Large blocks are mapped, so they all begin at the same offset of their pages".to_owned(),
            _ => format!("They lie at the same offset of pieces of {alignment}"),
        };
        format!("{why}: about {lines:.0} lines compete for each set, which holds {ways}.")
    }

    /// How to color from outside, as options of `apply color`; else why not, and what to change.
    fn reach(&self) -> (Reach, Vec<String>) {
        let inside = |why: &str, change: String| (Reach::Inside { why: why.to_owned(), change }, Vec::new());
        let header = "take the color from the address: nearmiss-color.h, or the crate nearmiss-color".to_owned();
        let line = self.line_bytes;
        match self.subject.class {
            Class::Stacks => (Reach::Outside, vec!["--stacks".to_owned()]),
            Class::Blocks => (Reach::Outside, vec!["--blocks".to_owned(), self.least_block().to_string()]),
            Class::Mappings if self.subject.asks_environment => (Reach::Outside, Vec::new()),
            Class::Mappings => inside(
                "mmap promises whole pages at page addresses, and the program may unmap or protect what it mapped",
                format!("begin the data of each buffer some whole lines of {line} bytes further, or {header}"),
            ),
            Class::AlignedBlocks => inside(
                "an alignment that was asked for is a promise, and the program may rely on it",
                format!("keep the alignment for the piece and move the object within it: {header}"),
            ),
            Class::SmallBlocks => inside(
                "blocks this small are packed by the allocator; shifting each would cost more than it saves",
                format!("allocate them in one block with a spacing that is no power of two, or {header}"),
            ),
            Class::Parts => inside(
                "they are parts of one object, whose layout the program computes with",
                format!("pad each row or part by a line: {} + {line} bytes apart", self.subject.alignment_bytes()),
            ),
        }
    }

    /// Smallest of the blocks: what `--blocks` must reach down to.
    fn least_block(&self) -> u64 {
        let sizes = self.subject.extents().into_iter().map(|(start, end)| end - start);
        sizes.filter(|bytes| *bytes >= 4096).min().unwrap_or(4096)
    }

    fn treatment(&self, colors: u64, enough: bool) -> String {
        let memory = Bytes(self.subject.memory_bytes(colors, self.line_bytes));
        let equation = if self.least_colors > 1 && self.subject.aliased.is_empty() {
            format!("; equation 2 asks for {} at least", grouped(self.least_colors))
        } else {
            String::new()
        };
        let warning = if enough { "" } else { "; fewer would only spread the misses" };
        format!("{} of {} bytes, {memory} of memory{equation}{warning}", counted(colors, "color"), self.line_bytes)
    }

    fn unless(&self, case: &Case) -> Vec<String> {
        let mut list = vec![format!(
            "the machine hides more of each miss than the {} assumed (overlap)",
            percent(case.machine().overlap)
        )];
        let l2_helps = self.evidence.levels.iter().any(|level| level.helps && level.cache == "L2");
        if l2_helps && case.machine().sources.get("cache.L2.index").is_some_and(|source| describe::is_assumed(source)) {
            list.push("this machine's L2 does not index by plain address bits, as is assumed".to_owned());
        }
        match self.subject.class {
            Class::Blocks => {
                list.push("the blocks come from an allocator inside the program, which no library can wrap".to_owned())
            }
            Class::Stacks => list.push("the threads are not made by pthread_create or thrd_create".to_owned()),
            _ => {}
        }
        list
    }
}

impl Suspicion for Colors {
    fn most_gain(&self) -> f64 {
        if self.helps() { self.evidence.cycles_share } else { 0.0 }
    }

    fn finding(&self, case: &Case) -> Result<Finding, CaseError> {
        let (colorings, half) = Colorings::best(case, &self.subject, self.least_colors, self.line_bytes)?;
        let at = colorings.colors.len() - 1;
        let colors = colorings.colors[at];
        let (gain, low, high) = colorings.gain(at);
        let (reach, mut options) = self.reach();
        let command = |verb: &str, options: &[String]| {
            let options: String = options.iter().map(|o| format!(" {o}")).collect();
            format!("nearmiss {verb} color{options} -- {}", quoted(&case.manifest.command))
        };
        let outside = reach == Reach::Outside;
        options.splice(0..0, ["--colors".to_owned(), colors.to_string()]);
        let mut approximate = case.model.notes.clone();
        approximate.retain(|note| note.contains("pproximate"));
        if !self.subject.aliased.is_empty() {
            approximate.push(aliasing::EXACTNESS.to_owned());
        }
        if describe::can_move_addresses(case.filter).is_err() {
            approximate.push(exactness(case));
        }
        Ok(Finding {
            remedy: "color".to_owned(),
            symptom: self.symptom(),
            cause: self.cause(),
            evidence: self.evidence.clone(),
            treatment: self.treatment(colors, half >= 0.5),
            prediction: Prediction {
                gain,
                low,
                high,
                placements: colorings.placements.clone(),
                overlap: case.machine().overlap,
                function: colorings.function(case, at)?,
                approximate,
            },
            unless: self.unless(case),
            apply: outside.then(|| command("apply", &options)),
            verify: outside.then(|| command("verify", &options)),
            reach,
        })
    }

    fn rehearse(&self, case: &Case, parameters: &[u64]) -> Result<Rehearsal, CaseError> {
        let usual = usual_colors();
        let colors = if parameters.is_empty() { &usual } else { parameters };
        let placements = seeds(case.machine(), PLACEMENTS);
        let colorings = Colorings::new(case, &self.subject, colors, self.line_bytes, placements)?;
        Ok(colorings.table(case, &self.subject, self.name(), self.line_bytes))
    }
}

fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

fn level_evidence(case: &Case, level: usize, crowds: &[&Crowd], verdict: String, helps: bool) -> LevelEvidence {
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
        conflict_misses: misses,
        miss_share: share(misses, all),
        verdict,
        helps,
    }
}

fn objects(case: &Case, subject: &Subject) -> Vec<ObjectEvidence> {
    // Of each name, what its heaviest level says.
    let mut heaviest: BTreeMap<&str, &Crowd> = BTreeMap::new();
    for crowd in &subject.crowds {
        let best = heaviest.entry(&crowd.name).or_insert(crowd);
        if crowd.misses > best.misses {
            *best = crowd;
        }
    }
    let mut list: Vec<ObjectEvidence> = heaviest
        .into_values()
        .map(|crowd| {
            let sizes: Vec<u64> = crowd.extents.iter().map(|(start, end, _)| end - start).collect();
            let all = case.model.totals.levels.get(crowd.level).map_or(0, |tally| tally.data_misses());
            ObjectEvidence {
                name: if subject.class == Class::Stacks { "thread stacks".to_owned() } else { crowd.name.clone() },
                // A stack is told of by its own thread: who made the thread is not known.
                allocated_at: if subject.class == Class::Stacks { Vec::new() } else { crowd.allocated_at.clone() },
                count: crowd.extents.len() as u64,
                size_bytes: sizes.first().copied().filter(|first| sizes.iter().all(|bytes| bytes == first)),
                miss_share: share(crowd.misses, all),
            }
        })
        .collect();
    list.sort_by(|a, b| b.miss_share.total_cmp(&a.miss_share));
    list.truncate(MOST_LISTED);
    list
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

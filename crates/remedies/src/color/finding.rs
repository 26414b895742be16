//! From a subject to a finding: what happens, why, what to do, what it would gain.

use super::aliasing;
use super::apply::LEAST_BLOCK_BYTES;
use super::colors::least_colors;
use super::evidence::{self, LevelEvidence, SubjectEvidence};
use super::rehearse::{Colorings, exactness, usual_colors};
use super::subject::{Class, Subject};
use super::verdict::level_verdict;
use crate::command_line::command_line;
use nearmiss_analysis::{Case, CaseError, PLACEMENTS, RehearsalRequest, Suspicion, Traced, seeds};
use nearmiss_machine::attribution::Crowd;
use nearmiss_machine::describe::{self, Inexact};
use nearmiss_record::finding::{Base, EvidenceKind, Finding, Prediction, Reach};
use nearmiss_record::rehearsal::Rehearsal;
use nearmiss_record::units::Bytes;
use nearmiss_record::words::{counted, grouped, percent};
use std::collections::BTreeMap;

/// A subject with its evidence.
pub struct Colors {
    subject: Subject,
    seen: SubjectEvidence,
    least_colors: u64,
    line_bytes: u64,
}

impl Colors {
    /// Puts the evidence together.
    pub fn new(case: &Traced, subject: Subject) -> Self {
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
                let evidence = evidence::level(case, *level, crowds, verdict, helps);
                if helps {
                    // Objects with several lines in use press harder than one line each would.
                    let pressing = (evidence.lines_a_set / f64::from(cache.ways.max(1))).ceil() as u64;
                    least = least.max(colors.unwrap_or(1)).max(pressing.next_power_of_two());
                }
                Some(evidence)
            })
            .collect();
        // The same references wait at several levels: the heaviest one's stand for all.
        let waiting = |level: &usize| by_level[level].iter().map(|c| c.stall_cycles).sum::<u64>();
        let crowding = by_level.keys().map(waiting).max().unwrap_or(0);
        let waits = crowding + aliasing::wait_cycles(case, &subject.aliased);
        let most = most_saved(case, &subject);
        let seen = SubjectEvidence::new(case, &subject, levels, waits, most);
        let line_bytes = case.machine().data_caches().map(|c| c.line.0).max().unwrap_or(64);
        Colors { subject, seen, least_colors: least, line_bytes }
    }

    fn helps(&self) -> bool {
        !self.subject.aliased.is_empty() || self.seen.levels.iter().any(|level| level.helps)
    }

    fn heaviest(&self) -> Option<&LevelEvidence> {
        self.seen.levels.iter().max_by_key(|level| level.crowded_misses)
    }

    fn name(&self) -> String {
        let count = self.subject.count();
        let one = self.seen.objects.len() == 1;
        let first = self.seen.objects.first().map_or("objects", |o| o.name.as_str());
        let apart = match self.subject.whole_objects() {
            true => String::new(),
            false => format!(", {} apart,", Bytes(self.subject.spacing_bytes())),
        };
        let what = match self.subject.class {
            Class::Stacks => return counted(count, "thread stack"),
            Class::Variables => return counted(count, "variable"),
            Class::Blocks | Class::SmallBlocks => "malloc block",
            Class::AlignedBlocks => "aligned block",
            Class::Mappings => "mapping",
            Class::Slots | Class::Parts => "piece",
        };
        let of = if one { format!(" of `{first}`") } else { String::new() };
        format!("{}{apart}{of}", counted(count, what))
    }

    fn symptom(&self) -> String {
        let Some(level) = self.heaviest() else { return aliasing::symptom(&self.subject, &self.seen.functions) };
        let by = match self.seen.functions.first() {
            Some((function, _)) => format!(" in `{function}`"),
            None => String::new(),
        };
        format!(
            "{} of {} data misses{by} come from {} that crowd on {} of {} at a time",
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
            Class::Variables => {
                "Variables of a power of two of bytes begin at the same offset of their pages".to_owned()
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
            Class::Mappings if self.subject.reads_environment => (Reach::Outside, Vec::new()),
            Class::Mappings => inside(
                "mmap promises whole pages at page addresses, and the program may unmap or protect what it mapped",
                format!("begin the data of each buffer some whole lines of {line} bytes further, or {header}"),
            ),
            Class::Slots if self.subject.reads_environment => (Reach::Outside, Vec::new()),
            Class::Slots => inside(
                "they are slots of one mapping, and the program computes with its layout",
                format!("pad each slot by a line: {} + {line} bytes apart, or {header}", self.subject.spacing_bytes()),
            ),
            Class::Variables => inside(
                "the linker places variables, and the program's code has their addresses in it",
                format!(
                    "make each of them larger by whole lines of {line} bytes, so that no two begin at the same offset of a page"
                ),
            ),
            Class::AlignedBlocks => inside(
                "a requested alignment is a promise, and the program may rely on it",
                format!("keep the alignment for the piece and move the object within it: {header}"),
            ),
            Class::SmallBlocks => inside(
                "blocks this small are packed by the allocator; shifting each would cost more than it saves",
                format!("allocate them in one block with a spacing that is no power of two, or {header}"),
            ),
            Class::Parts => inside(
                "they are parts of one object, and the program computes with its layout",
                format!("pad each row or part by a line: {} + {line} bytes apart", self.subject.spacing_bytes()),
            ),
        }
    }

    /// Smallest of the blocks: what `--blocks` must reach down to.
    fn least_block(&self) -> u64 {
        let sizes = self.subject.extents().into_iter().map(|(start, end)| end - start);
        sizes.filter(|bytes| *bytes >= LEAST_BLOCK_BYTES).min().unwrap_or(LEAST_BLOCK_BYTES)
    }

    fn treatment(&self, colors: u64, enough: bool) -> String {
        let memory = Bytes(self.subject.memory_bytes(colors, self.line_bytes));
        let equation = if self.least_colors > 1 && self.subject.aliased.is_empty() {
            format!("; equation 2 requires {} at least", grouped(self.least_colors))
        } else {
            String::new()
        };
        let warning = if enough { "" } else { "; fewer would only spread the misses" };
        format!("{} of {} bytes, {memory} of memory{equation}{warning}", counted(colors, "color"), self.line_bytes)
    }

    fn prediction(&self, case: &Traced, colorings: &Colorings, at: usize) -> Result<Prediction, CaseError> {
        let (gain, low, high) = colorings.own_gain(case, at);
        let approximations = describe::approximations(case.filter, case.machine());
        let either_way =
            |note| if let Inexact::Approximate(sentence) = note { Some(sentence.to_owned()) } else { None };
        let mut approximate: Vec<String> = approximations.into_iter().filter_map(either_way).collect();
        if !self.subject.aliased.is_empty() {
            approximate.push(aliasing::EXACTNESS.to_owned());
        }
        if describe::can_move_addresses(case.filter).is_err() {
            approximate.push(exactness(case));
        }
        approximate.extend(colorings.compared_on.map(|share| {
            format!(
                "numbers of colors were compared on the first {} of the trace; the gain is of all of it",
                percent(share)
            )
        }));
        Ok(Prediction {
            gain,
            low,
            high,
            of_whole_run: colorings.of_whole_run(at),
            modelled_cycles: colorings.cycles_before(),
            measured_cycles: None,
            of: Base::CYCLES,
            placements: colorings.placements.clone(),
            overlap: case.machine().hidden_share(),
            function: colorings.function(case, at)?,
            approximate,
            ..Prediction::default()
        })
    }

    fn unless(&self, case: &Traced) -> Vec<String> {
        let hides =
            |share| format!("the machine hides more of each miss than the {} assumed (overlap)", percent(share));
        let unknown = "the program waits for what the model of the core leaves out, such as branches predicted wrongly";
        let mut list = vec![case.machine().hidden_share().map_or_else(|| unknown.to_owned(), hides)];
        let l2_helps = self.seen.levels.iter().any(|level| level.helps && level.cache == "L2");
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
        if self.helps() { self.seen.most_gain } else { 0.0 }
    }

    fn lacks(&self, case: &Case) -> Option<&'static str> {
        let filter = case.traced.as_ref().map(|case| case.filter)?;
        describe::can_move_addresses(filter).is_err().then_some("addresses")
    }

    fn finding(&self, case: &Case) -> Result<Finding, CaseError> {
        let case = case.traced()?;
        let (colorings, half) = Colorings::best(case, &self.subject, self.least_colors, self.line_bytes)?;
        let at = colorings.colors.len() - 1;
        let colors = colorings.colors[at];
        let (reach, mut options) = self.reach();
        let outside = reach == Reach::Outside;
        let prediction = self.prediction(case, &colorings, at)?;
        let mut evidence = self.seen.evidence();
        // The bound is of one placement of pages; on another one more may wait.
        evidence.most_gain = evidence.most_gain.max(prediction.high);
        options.splice(0..0, ["--colors".to_owned(), colors.to_string()]);
        Ok(Finding {
            remedy: super::NAME.to_owned(),
            known: EvidenceKind::Modelled,
            symptom: self.symptom(),
            cause: self.cause(),
            evidence,
            treatment: self.treatment(colors, half.is_none_or(|half| half >= 0.5)),
            prediction,
            unless: self.unless(case),
            apply: outside.then(|| command_line("apply", super::NAME, &options, &case.manifest.command)),
            verify: outside.then(|| command_line("verify", super::NAME, &options, &case.manifest.command)),
            reach,
        })
    }

    fn rehearse(&self, case: &Case, request: &RehearsalRequest) -> Result<Rehearsal, CaseError> {
        let case = case.traced()?;
        let given = request.numbers();
        let colors = if given.is_empty() { usual_colors() } else { given };
        let placements = seeds(case.machine(), PLACEMENTS);
        let colorings =
            Colorings::new(case, &self.subject, &colors, self.line_bytes, placements, &self.subject.extents())?;
        Ok(colorings.table(case, &self.subject, self.name(), self.line_bytes))
    }
}

/// Cycles that moving the objects could save at the very most: what waits for conflict misses, of any object, since
/// others are pushed out too; what waits for other misses of the objects, which may find room in other sets, and lie next
/// to other lines; and what waits for stores to the same offset of another page.
fn most_saved(case: &Traced, subject: &Subject) -> u64 {
    let others: u64 = subject.by_name().iter().map(|crowd| crowd.other_waits).sum();
    case.conflict_waits + others + aliasing::wait_cycles(case, &case.aliases)
}

//! From walks and first touches to a finding: what happens, why, what to do, what it would gain.

use super::costs::{LargePageCosts, Memory};
use super::evidence;
use super::walks_and_touches::{PAGE_LOG2, WalksAndTouches};
use crate::command_line::command_line;
use nearmiss_analysis::{Case, CaseError, RehearsalRequest, Suspicion, Traced, Value};
use nearmiss_machine::attribution::{Reach, WalkedObject};
use nearmiss_machine::describe::{can_move_addresses, is_assumed, source_of};
use nearmiss_record::finding::{Base, EvidenceKind, EvidenceLine, Finding, Prediction, Reach as Reached};
use nearmiss_record::rehearsal::Rehearsal;
use nearmiss_record::words::{bytes, counted, grouped, percent};

/// Objects that are rehearsed alone.
const ALONE: usize = 3;
/// Share of all walks, or of all first touches, from which an object is rehearsed alone.
const LEAST_SHARE: f64 = 0.05;
/// Share of the whole gain from which one object suffices, and of the whole memory below which it is worth naming.
const NEARLY_ALL: f64 = 0.9;
/// Least size of a block that a library can put into a large page: two, of which one lies aligned in any case.
const LEAST_BLOCK: u64 = 4 << 20;

/// Figure of a first touch among a machine's sources.
const FIRST_TOUCH: &str = "memory.first_touch";

/// Memory of a run that could lie in large pages.
pub struct Huge {
    seen: WalksAndTouches,
}

impl Huge {
    /// Makes the suspicion from what was seen of a run.
    pub fn new(seen: WalksAndTouches) -> Self {
        Huge { seen }
    }

    /// All memory, and single objects beside others.
    fn changes(&self) -> Vec<Memory> {
        let walks = &self.seen.walks;
        let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
        let matters = |object: &WalkedObject| {
            let touches = share(object.reach.first_touches, walks.all.first_touches);
            share(object.walks, walks.walks).max(touches) >= LEAST_SHARE
        };
        let alone = self.seen.objects().iter().enumerate().filter(|(_, object)| matters(object)).take(ALONE);
        let alone: Vec<Memory> = alone.map(|(at, _)| Memory::Object(at)).collect();
        let is_all = alone.len() == 1 && self.seen.objects().len() == 1;
        [Memory::All].into_iter().chain(alone.into_iter().filter(|_| !is_all)).collect()
    }

    /// The change to propose: one object of a site that can be named, if that gains nearly all and takes clearly less
    /// memory, and else all memory.
    fn best(&self, changes: &[Memory], costs: &LargePageCosts<'_>) -> (usize, Option<&WalkedObject>) {
        let (all, memory) = (costs.compared.gain_of(1).0, self.seen.walks.all.large_bytes() as f64);
        let object = |(at, change): (usize, &Memory)| match change {
            Memory::Object(number) => Some((at + 1, &self.seen.objects()[*number])),
            Memory::All => None,
        };
        let suffices = |(at, object): &(usize, &WalkedObject)| {
            let names = object.site.is_some() && object.each_bytes.is_some_and(|bytes| bytes >= LEAST_BLOCK);
            let takes_less = object.reach.large_bytes() as f64 <= NEARLY_ALL * memory;
            names && takes_less && costs.compared.gain_of(*at).0 >= NEARLY_ALL * all
        };
        let one = changes.iter().enumerate().filter_map(object).find(suffices);
        one.map_or((1, None), |(at, object)| (at, Some(object)))
    }

    fn symptom(&self) -> String {
        let walks = &self.seen.walks;
        let faults = match walks.all.first_touches {
            0 => String::new(),
            touches => format!(" and {}", counted(touches, "page fault")),
        };
        let of = match self.seen.price.figure() {
            Some(_) => "of the cycles, modelled but for the machine's own price of a first touch",
            None => "of the modelled cycles",
        };
        format!(
            "{} of the page table{faults} for {} in pages of 4 KiB take up to {} {of}",
            counted(walks.walks, "walk"),
            bytes(walks.all.touched_bytes()),
            percent(self.most_gain())
        )
    }

    fn cause(&self) -> String {
        let second = self.seen.tlb.second.map_or(0, |second| u64::from(second.entries));
        format!(
            "Translation holds {} pages, {} of memory in pages of 4 KiB; each of these is given out, cleared and looked \
             up one by one.",
            grouped(second),
            bytes(second << PAGE_LOG2)
        )
    }

    fn prediction(&self, case: &Traced, costs: &LargePageCosts<'_>, at: usize) -> Prediction {
        let (gain, low, high) = costs.compared.gain_of(at);
        let in_faults = costs.gain_in_faults(at);
        let mut approximate = Vec::new();
        if in_faults.abs() >= 0.001 {
            approximate.push(format!("{} of that is page faults, {}", percent(in_faults), self.priced(case)));
        }
        if can_move_addresses(case.filter).is_err() {
            approximate.push("the trace's filter of several lines dropped some look-ups of pages".to_owned());
        }
        Prediction {
            gain,
            low,
            high,
            of_whole_run: costs.of_whole_run(at),
            modelled_cycles: costs.compared.cycles(0),
            placements: costs.compared.placements.clone(),
            of: Base::CYCLES,
            overlap: case.machine().hidden_share(),
            approximate,
            ..Prediction::default()
        }
    }

    /// Describes the price of page faults.
    fn priced(&self, case: &Traced) -> String {
        let Some((figure, modelled)) = self.seen.price.figure() else {
            return "as the kernel's instructions were modelled: the processor's own entry into the kernel, and a \
                    hypervisor's part, come on top"
                .to_owned();
        };
        let is_assumed = source_of(case.machine(), FIRST_TOUCH).is_none_or(is_assumed);
        format!(
            "by the CPU time of a first touch of a page, {} on {}: {} cycles, {} of them modelled as the kernel's \
             instructions",
            if is_assumed { "assumed" } else { "measured" },
            case.machine().name,
            grouped(figure),
            grouped(modelled)
        )
    }

    /// Describes what each object saves alone.
    fn alone(&self, changes: &[Memory], costs: &LargePageCosts<'_>) -> Option<String> {
        let text = |(at, change): (usize, &Memory)| match change {
            Memory::Object(number) => {
                Some(format!("`{}` {}", self.seen.objects()[*number].name, percent(costs.compared.gain_of(at + 1).0)))
            }
            Memory::All => None,
        };
        let alone: Vec<String> = changes.iter().enumerate().filter_map(text).collect();
        (!alone.is_empty()).then(|| format!("Alone in large pages would save: {}.", alone.join(", ")))
    }

    fn unless(reach: &Reach) -> Vec<String> {
        let more = reach.large_bytes().saturating_sub(reach.touched_bytes());
        let memory =
            format!("memory is scarce: large pages take up to {} more than the recording touched", bytes(more));
        let blocks =
            "the machine has too few free blocks of 2 MiB: `apply` counts the pages that became large".to_owned();
        [memory].into_iter().filter(|_| more > 0).chain([blocks]).collect()
    }
}

impl Suspicion for Huge {
    fn most_gain(&self) -> f64 {
        self.seen.most_gain()
    }

    fn lacks(&self, case: &Case) -> Option<&'static str> {
        // A filter of several lines does not keep which page was used last.
        case.traced.as_ref().is_some_and(|case| can_move_addresses(case.filter).is_err()).then_some("addresses")
    }

    fn finding(&self, case: &Case) -> Result<Finding, CaseError> {
        let case = case.traced()?;
        let changes = self.changes();
        let costs = LargePageCosts::new(case, &self.seen, changes.clone())?;
        let (at, object) = self.best(&changes, &costs);
        let reach = object.map_or(&self.seen.walks.all, |object| &object.reach);
        let mut evidence = evidence::evidence(&self.seen, reach);
        evidence.lines.extend(costs.counted.map(|counted| counted.line()));
        evidence.lines.extend(self.alone(&changes, &costs).map(|text| EvidenceLine::new("Then", text)));
        let site = object.and_then(|object| object.site.as_ref());
        let options = site.map_or(Vec::new(), |site| vec!["--site".to_owned(), site.to_string()]);
        Ok(Finding {
            remedy: super::NAME.to_owned(),
            known: EvidenceKind::Modelled,
            symptom: self.symptom(),
            cause: self.cause(),
            evidence,
            treatment: match object {
                Some(object) => format!("Pages of 2 MiB for `{}`", object.name),
                None => "Pages of 2 MiB for all memory without a file".to_owned(),
            },
            reach: Reached::Outside,
            prediction: self.prediction(case, &costs, at),
            unless: Self::unless(reach),
            apply: Some(command_line("apply", super::NAME, &options, &case.manifest.command)),
            verify: Some(command_line("verify", super::NAME, &options, &case.manifest.command)),
        })
    }

    fn rehearse(&self, case: &Case, request: &RehearsalRequest) -> Result<Rehearsal, CaseError> {
        let case = case.traced()?;
        let objects = self.seen.objects().len();
        let memory = |value: &Value| match value {
            Value::Name(_) => Ok(Memory::All),
            Value::Number(number) if (1..=objects as u64).contains(number) => Ok(Memory::Object(*number as usize - 1)),
            Value::Number(number) => Err(CaseError::Unfit(format!(
                "--objects {number}: walks lead to {}, numbered from 1",
                counted(objects as u64, "object")
            ))),
        };
        let changes = request.values.iter().map(memory).collect::<Result<Vec<_>, _>>()?;
        let changes = if changes.is_empty() { self.changes() } else { changes };
        Ok(LargePageCosts::new(case, &self.seen, changes)?.table(case))
    }
}

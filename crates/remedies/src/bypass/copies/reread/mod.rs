//! Stores past the caches with lines that are read at once: each reader waits until its line has been to memory. The
//! policy is that of copies past the caches in reverse.

mod sight;

use super::costs::line_bytes;
use super::way::{CopyWay, Ways};
use crate::command_line::command_line;
use nearmiss_analysis::{Case, CaseError, Compared, RehearsalRequest, Suspicion, Traced, waits};
use nearmiss_record::figures::{Cell, Table};
use nearmiss_record::finding::{Base, Evidence, EvidenceKind, EvidenceLine, Finding, LEAST_GAIN, Prediction, Reach};
use nearmiss_record::policy::{Policy, StorePolicy};
use nearmiss_record::rehearsal::Rehearsal;
use nearmiss_record::words::{bytes, grouped, listed, percent};
use sight::{Rereads, StoresAround};

/// Least size of a copy that goes past the caches by the C library's setting: none that is read at once is as large.
const NEVER_BYTES: u64 = 128 << 20;
/// Share of the cycles that a way's readers wait, from which on it is looked at.
const LEAST_WAIT: f64 = 0.005;

/// Returns what stores past the caches although it is read at once, if that costs the command anything.
pub(super) fn detect(case: &Traced) -> Result<Option<ReadAtOnce>, CaseError> {
    let totals = &case.model.totals;
    if totals.nt_stores == 0 {
        return Ok(None);
    }
    let machine = case.machine();
    let ways = Ways { symbols: &case.symbols, contexts: &case.side.contexts };
    let held = machine.data_caches().map(|cache| cache.size.0 / cache.line.0.max(1)).max().unwrap_or_default();
    let sight = Rereads::new(ways, machine.topology.cpus() as usize, line_bytes(case), held);
    let share = |seen: &StoresAround| seen.stall_cycles as f64 / totals.cycles.max(1) as f64;
    let costs = |(_, seen): &(CopyWay, StoresAround)| share(seen) >= LEAST_WAIT;
    let seen = case.listen(sight)?.finish();
    let stores: Vec<Stores> = seen.into_iter().filter(costs).map(|(way, seen)| Stores::new(&ways, way, seen)).collect();
    let most_gain = stores.iter().map(|one| share(&one.seen)).sum::<f64>().min(1.0);
    Ok((most_gain >= LEAST_GAIN).then_some(ReadAtOnce { stores, most_gain }))
}

/// Stores of one way.
struct Stores {
    /// Function, file and line.
    name: String,
    /// The C library's own choice, which a setting of it changes.
    is_librarys: bool,
    seen: StoresAround,
}

impl Stores {
    fn new(ways: &Ways<'_>, way: CopyWay, seen: StoresAround) -> Self {
        let insn = match way {
            CopyWay::Called { call, .. } => call,
            CopyWay::Inside(_) => seen.sites.first().map_or(0, |site| site.insn),
        };
        Stores { name: ways.place(insn), is_librarys: matches!(way, CopyWay::Called { .. }), seen }
    }

    fn line(&self, line_bytes: u64) -> EvidenceLine {
        let StoresAround { bytes: stored, lines, reread, between, stall_cycles, .. } = self.seen;
        let by = if self.is_librarys { "by copies of the C library" } else { "by instructions of its own" };
        let text = format!(
            "{}: {} {by}; {} of these lines were read again, after {} more on average, at {} cycles a line.",
            self.name,
            bytes(stored),
            percent(reread as f64 / lines.max(1) as f64),
            bytes(between / reread.max(1) * line_bytes),
            grouped(stall_cycles / reread.max(1))
        );
        EvidenceLine::new("Stores", text)
    }
}

/// The suspicion.
pub(super) struct ReadAtOnce {
    stores: Vec<Stores>,
    most_gain: f64,
}

impl ReadAtOnce {
    fn compared(&self, case: &Traced) -> Result<Compared, CaseError> {
        let sites = self.stores.iter().flat_map(|one| one.seen.sites.iter().copied()).collect();
        let plain = Policy { store: StorePolicy::Plain { sites }, ..Policy::default() };
        let totals = &case.model.totals;
        Compared::new(case, &[Policy::default(), plain], totals.cycles - totals.stall_cycles, Vec::new())
    }

    fn names(&self) -> String {
        listed(&self.stores.iter().map(|one| one.name.clone()).collect::<Vec<_>>(), "and")
    }

    fn prediction(&self, case: &Traced, compared: &Compared) -> Prediction {
        let (gain, low, high) = compared.gain_of(1);
        let priced = case.machine().core.is_some_and(|core| core.reread_cycles.is_some());
        let lower = "the machine's file has no price for lines that were just written past the caches, so that they take as \
                     long as others of memory; on real machines they take longer";
        Prediction {
            gain,
            low,
            high,
            of_whole_run: compared.of_whole_run(1, &[]),
            modelled_cycles: compared.cycles(0),
            placements: compared.placements.clone(),
            of: Base::CYCLES,
            overlap: case.machine().hidden_share(),
            approximate: if priced { Vec::new() } else { vec![lower.to_owned()] },
            ..Prediction::default()
        }
    }

    fn reach(&self) -> Reach {
        if self.stores.iter().all(|one| one.is_librarys) {
            return Reach::Outside;
        }
        Reach::Inside {
            why: "the instructions that store so are the program's own".to_owned(),
            change: format!(
                "let {} use plain stores; those past the caches (`_mm_stream_si128` and its like) are for what is not \
                 read before the caches would have lost it",
                self.names()
            ),
        }
    }

    fn symptom(&self) -> String {
        let sum = |of: &dyn Fn(&StoresAround) -> u64| self.stores.iter().map(|one| of(&one.seen)).sum::<u64>();
        format!(
            "{} of the modelled cycles wait for {} lines that {} wrote past the caches and that are read soon",
            percent(self.most_gain),
            grouped(sum(&|seen| seen.reread)),
            self.names()
        )
    }
}

impl Suspicion for ReadAtOnce {
    fn most_gain(&self) -> f64 {
        self.most_gain
    }

    fn finding(&self, case: &Case) -> Result<Finding, CaseError> {
        let traced = case.traced()?;
        let compared = self.compared(traced)?;
        let reach = self.reach();
        let outside = reach == Reach::Outside;
        let options = ["--copies", "--every-copy", "--min", &NEVER_BYTES.to_string()].map(str::to_owned);
        let command = |verb| command_line(verb, super::super::NAME, &options, &traced.manifest.command);
        let lines = self.stores.iter().map(|one| one.line(line_bytes(traced))).collect();
        Ok(Finding {
            remedy: super::super::NAME.to_owned(),
            known: EvidenceKind::Modelled,
            symptom: self.symptom(),
            cause:
                "A store past the caches leaves its line in none of them: whoever reads the line next waits until the \
                    line has been to memory and back."
                    .to_owned(),
            evidence: Evidence { lines, tables: Vec::new(), most_gain: self.most_gain },
            treatment: format!("Plain stores in {}, through the caches", self.names()),
            prediction: self.prediction(traced, &compared),
            unless: vec!["what is stored is read later, or by nobody, in other runs than this one".to_owned()],
            apply: outside.then(|| command("apply")),
            verify: outside.then(|| command("verify")),
            reach,
        })
    }

    fn rehearse(&self, case: &Case, request: &RehearsalRequest) -> Result<Rehearsal, CaseError> {
        let case = case.traced()?;
        if !request.values.is_empty() {
            return Err(CaseError::Unfit(format!(
                "the stores of {}, which go past the caches already: --sites names copies that could go there; leave it out",
                self.names()
            )));
        }
        let compared = self.compared(case)?;
        let row = |(at, name): (usize, &str)| {
            vec![Cell::text(name.to_owned()), Cell::Cycles(compared.cycles(at)), Cell::Share(compared.gain_of(at).0)]
        };
        Ok(Rehearsal {
            remedy: super::super::NAME.to_owned(),
            subject: format!("the stores of {}, through the caches", self.names()),
            basis: format!("medians over {} page placements, {}", compared.placements.len(), waits(case)),
            placements: compared.placements.clone(),
            table: Table {
                title: "rehearsal".to_owned(),
                columns: [super::super::PARAMETER, "cycles", "gain"].map(str::to_owned).to_vec(),
                rows: ["as it was", "plain"].into_iter().enumerate().map(row).collect(),
            },
            more: Vec::new(),
        })
    }
}

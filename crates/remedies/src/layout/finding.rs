//! From the uses of fields to a finding: what happens, why, what to do, what it would gain.

use super::declaration::declaration;
use super::evidence;
use super::pieces::Element;
use super::proposals::{Change, Ground, Proposal, lines_a_visit, proposals};
use super::replays::{compared, table};
use nearmiss_analysis::{Case, CaseError, Compared, PageFaults, RehearsalRequest, Suspicion, Traced, Value};
use nearmiss_machine::attribution::UsedElements;
use nearmiss_record::finding::{Base, Evidence, EvidenceKind, EvidenceLine, Finding, Prediction, Reach};
use nearmiss_record::rehearsal::Rehearsal;
use nearmiss_record::words::{bytes, counted, percent};

/// A simpler change is proposed if it saves all but so much of what the best one saves.
const SIMPLER: f64 = 0.02;

/// Elements of one structure, and changes that could help.
pub struct Layout {
    used: UsedElements,
    element: Element,
    ground: Ground,
    proposals: Vec<Proposal>,
    most_gain: f64,
}

impl Layout {
    /// Makes the suspicion, if there is a change that could help.
    pub fn new(case: &Traced, used: UsedElements, element: Element) -> Option<Self> {
        let line = case.machine().data_cache(1).map_or(64, |cache| cache.line.0);
        let begin = used.elements.first().map_or(0, |run| run.from % line);
        let ground = Ground { line, begin, is_block: used.is_block };
        let proposals = proposals(&element, ground);
        let cycles = case.model.totals.cycles + PageFaults::of(&case.model).beyond_cycles();
        let most_gain = used.stall_cycles() as f64 / cycles.max(1) as f64;
        (!proposals.is_empty()).then_some(Layout { used, element, ground, proposals, most_gain: most_gain.min(1.0) })
    }

    /// `` `struct node` of `list.c:31 build` ``.
    fn name(&self) -> String {
        match &self.element.structure {
            Some(name) if !name.is_empty() => format!("`struct {name}` of `{}`", self.used.name),
            _ => format!("elements of {} of `{}`", bytes(self.used.bytes), self.used.name),
        }
    }

    fn symptom(&self) -> String {
        let elements = counted(self.used.count(), "element");
        format!(
            "{} of the modelled cycles wait for {}, {elements} of {}, of which a visit uses {:.0} bytes",
            percent(self.most_gain),
            self.name(),
            bytes(self.used.bytes),
            self.element.bytes_a_visit
        )
    }

    fn lines(&self) -> f64 {
        lines_a_visit(&self.element, self.ground)
    }

    fn cause(&self) -> String {
        let line = self.ground.line;
        let fetched = self.lines() * line as f64;
        format!(
            "A visit fetches {:.1} lines of {}, {:.0} bytes, for {:.0} bytes that it uses; the others fill caches and take \
             the memory's time.",
            self.lines(),
            bytes(line),
            fetched,
            self.element.bytes_a_visit
        )
    }

    fn treatment(&self, proposal: &Proposal) -> String {
        let sizes: Vec<String> = proposal.parts.iter().map(|part| bytes(part.bytes)).collect();
        match proposal.change {
            Change::Order => "Another order of its fields: what is used together lies together".to_owned(),
            Change::Align => {
                let keeps_order = proposal.keeps_order(&self.element, self.ground);
                let elements = if keeps_order { "Elements" } else { "Another order of its fields, in elements" };
                format!("{elements} of {}, each at the begin of a line", sizes[0])
            }
            Change::Split => {
                let aligned = match proposal.aligned {
                    1 => String::new(),
                    to => format!(", aligned to {}", bytes(to)),
                };
                format!(
                    "Hot fields in elements of {}{aligned}, the others ({}) in an array of their own",
                    sizes[0], sizes[1]
                )
            }
            Change::Columns => format!("{} arrays, one for each group of fields that are used together", sizes.len()),
        }
    }

    /// The simplest change that saves nearly as much as the best, and its number among the compared.
    fn best(&self, compared: &Compared) -> (usize, &Proposal) {
        let gain = |at: usize| compared.gain_of(at + 1).0;
        let most = (0..self.proposals.len()).map(gain).fold(0.0, f64::max);
        let at = (0..self.proposals.len()).find(|at| gain(*at) >= most - SIMPLER).unwrap_or(0);
        (at + 1, &self.proposals[at])
    }

    fn prediction(&self, case: &Traced, compared: &Compared, at: usize) -> Prediction {
        let (gain, low, high) = compared.gain_of(at);
        let mut approximate =
            vec!["The program's instructions stay the same, though another layout may take more or fewer.".to_owned()];
        if self.used.is_block {
            approximate.push("Blocks are taken to lie one behind another, in the order of their addresses.".to_owned());
        }
        Prediction {
            gain,
            low,
            high,
            of_whole_run: compared.of_whole_run(at, &[]),
            modelled_cycles: compared.cycles(0),
            placements: compared.placements.clone(),
            of: Base::CYCLES,
            overlap: case.machine().hidden_share(),
            approximate,
            ..Prediction::default()
        }
    }

    fn alone(&self, compared: &Compared) -> String {
        let each = self.proposals.iter().enumerate();
        let each: Vec<String> =
            each.map(|(at, one)| format!("{} {}", one.change.name(), percent(compared.gain_of(at + 1).0))).collect();
        format!("Would save: {}.", each.join(", "))
    }

    fn memory(&self, proposal: &Proposal) -> String {
        let (before, after) = (self.element.bytes, proposal.bytes());
        match after.cmp(&before) {
            std::cmp::Ordering::Equal => format!("An element has {} as before.", bytes(before)),
            _ => format!("An element has {} instead of {}.", bytes(after), bytes(before)),
        }
    }

    fn compared(&self, case: &Traced, proposals: &[Proposal]) -> Result<Compared, CaseError> {
        compared(case, &self.used, &self.element, self.ground, proposals)
    }
}

impl Suspicion for Layout {
    fn most_gain(&self) -> f64 {
        self.most_gain
    }

    fn finding(&self, case: &Case) -> Result<Finding, CaseError> {
        let case = case.traced()?;
        let compared = self.compared(case, &self.proposals)?;
        let (at, proposal) = self.best(&compared);
        let mut evidence =
            evidence::evidence(&self.used, &self.element, (self.ground.line, self.lines()), self.most_gain);
        evidence.most_gain = evidence.most_gain.max(compared.gain_of(at).2);
        evidence.lines.push(EvidenceLine::new("Changes", self.alone(&compared)));
        evidence.lines.push(EvidenceLine::new("Memory", self.memory(proposal)));
        let declared = declaration(&self.element, proposal).into_iter().enumerate();
        evidence
            .lines
            .extend(declared.map(|(number, text)| EvidenceLine::new(if number == 0 { "Declare" } else { "" }, text)));
        Ok(Finding {
            remedy: super::NAME.to_owned(),
            known: EvidenceKind::Modelled,
            symptom: self.symptom(),
            cause: self.cause(),
            evidence,
            treatment: self.treatment(proposal),
            reach: Reach::Inside {
                why: "the places of fields are fixed when the program is built".to_owned(),
                change: "declare the structure as above, and change what depends on the places of its fields"
                    .to_owned(),
            },
            prediction: self.prediction(case, &compared, at),
            unless: vec!["files, sockets or other programs hold the structure as it is".to_owned()],
            apply: None,
            verify: None,
        })
    }

    fn rehearse(&self, case: &Case, request: &RehearsalRequest) -> Result<Rehearsal, CaseError> {
        let case = case.traced()?;
        let wanted = |proposal: &&Proposal| {
            let name = Value::Name(proposal.change.name().to_owned());
            request.values.is_empty() || request.values.contains(&name)
        };
        let proposals: Vec<Proposal> = self.proposals.iter().filter(wanted).cloned().collect();
        if proposals.is_empty() {
            let known: Vec<&str> = self.proposals.iter().map(|proposal| proposal.change.name()).collect();
            let why = format!("none of these changes could help {}: try {}", self.name(), known.join(" or "));
            return Err(CaseError::Unfit(why));
        }
        let compared = self.compared(case, &proposals)?;
        Ok(table(&compared, case, self.name(), &self.element, &proposals))
    }
}

/// Objects that could matter in a trace that dropped accesses.
pub struct NotSeen {
    waits: f64,
}

impl NotSeen {
    /// For the share of the cycles that the heaviest object waits.
    pub fn new(waits: f64) -> Self {
        NotSeen { waits }
    }
}

impl Suspicion for NotSeen {
    fn most_gain(&self) -> f64 {
        self.waits
    }

    fn lacks(&self, _: &Case) -> Option<&'static str> {
        Some("fields")
    }

    fn finding(&self, _: &Case) -> Result<Finding, CaseError> {
        Ok(Finding {
            remedy: super::NAME.to_owned(),
            known: EvidenceKind::Modelled,
            symptom: format!("{} of the modelled cycles wait for one object", percent(self.waits)),
            cause: "The trace dropped the accesses that repeat a line, so that the uses of fields are not known."
                .to_owned(),
            evidence: Evidence { lines: Vec::new(), tables: Vec::new(), most_gain: self.waits },
            treatment: "Record it again with `nearmiss trace --carry fields`".to_owned(),
            reach: Reach::Inside {
                why: "the places of fields are fixed when the program is built".to_owned(),
                change: "nothing is known yet".to_owned(),
            },
            prediction: Prediction { of: Base::CYCLES, ..Prediction::default() },
            unless: Vec::new(),
            apply: None,
            verify: None,
        })
    }

    fn rehearse(&self, _: &Case, _: &RehearsalRequest) -> Result<Rehearsal, CaseError> {
        Err(CaseError::Unfit(
            "the trace dropped accesses, and layout needs all: record it again with `nearmiss trace --carry fields`"
                .to_owned(),
        ))
    }
}

//! From freed memory that comes back to a finding: what happens, why, what to do, what it would gain.

use super::reusable_pages::{NO_LIMIT, ReusablePages};
use super::{ALL, PARAMETER};
use crate::command_line::command_line;
use nearmiss_analysis::{Case, CaseError, RehearsalRequest, Suspicion, Traced, Value};
use nearmiss_record::figures::{Cell, Table};
use nearmiss_record::finding::{Base, Evidence, EvidenceKind, EvidenceLine, Finding, Prediction, Reach};
use nearmiss_record::rehearsal::Rehearsal;
use nearmiss_record::words::{bytes, counted, grouped, percent};

/// Most objects that a finding names in its lines.
const MOST_NAMED: usize = 3;

/// Freed memory that comes back by page faults.
pub struct Keep {
    reusable: ReusablePages,
}

impl Keep {
    /// Makes the suspicion from what was seen of a run.
    pub fn new(reusable: ReusablePages) -> Self {
        Keep { reusable }
    }

    fn symptom(&self) -> String {
        let price = self.reusable.price();
        let share = price.share(self.reusable.pages_again(), price.page);
        let known = if price.is_measured { "a page priced as measured here" } else { "as modelled" };
        format!(
            "{} return memory to the heap that the program had freed before: with clearing, {} of the cycles, {known}",
            counted(self.reusable.pages_again(), "page fault"),
            percent(share.min(1.0))
        )
    }

    fn evidence(&self) -> Evidence {
        let reuse = self.reusable.reuse();
        let heap = format!(
            "the kernel gave out {} of heap blocks; {} of them although as many had been freed.",
            counted(reuse.first_touches.iter().sum(), "page"),
            grouped(self.reusable.pages_again())
        );
        let run = self.reusable.price().counted.map(|counted| counted.line());
        let kept = format!("up to {} of freed memory would stay with the program.", bytes(self.reusable.kept_bytes(0)));
        let named = reuse.objects.iter().take(MOST_NAMED).enumerate().map(|(at, object)| {
            let share = percent(object.pages as f64 / self.reusable.pages_again().max(1) as f64);
            EvidenceLine::new(
                if at == 0 { "Objects" } else { "" },
                format!("`{}`: {share} of these pages.", object.name),
            )
        });
        let lines = [EvidenceLine::new("Heap", heap)]
            .into_iter()
            .chain(run)
            .chain(named)
            .chain([EvidenceLine::new("Memory", kept)])
            .collect();
        Evidence { lines, tables: vec![self.objects()], most_gain: self.most_gain() }
    }

    fn objects(&self) -> Table {
        let row = |object: &nearmiss_machine::attribution::ReusedObject| {
            let site = object.site.as_ref().map_or(String::new(), ToString::to_string);
            vec![Cell::text(object.name.clone()), Cell::text(site), Cell::Count(object.pages)]
        };
        Table {
            title: "pages that came back by object".to_owned(),
            columns: ["object", "site", "pages"].map(str::to_owned).to_vec(),
            rows: self.reusable.reuse().objects.iter().map(row).collect(),
        }
    }

    fn prediction(&self, case: &Traced) -> Prediction {
        let [gain, low, high] = self.reusable.gain(0);
        let mut approximate = vec![
            "Between the ends lies whether the program waits for the lines of kept memory as long as clearing takes"
                .to_owned(),
        ];
        if !self.reusable.price().is_measured {
            approximate.push(
                "page faults are priced as the kernel's instructions were modelled: the processor's own entry into the \
                 kernel, and a hypervisor's part, come on top"
                    .to_owned(),
            );
        }
        Prediction {
            gain,
            low,
            high,
            of_whole_run: self.reusable.of_whole_run(0),
            modelled_cycles: self.reusable.price().cycles as u64,
            of: Base::CYCLES,
            overlap: case.machine().hidden_share(),
            approximate,
            ..Prediction::default()
        }
    }

    fn row(reusable: &ReusablePages, at: usize) -> Vec<Cell> {
        let (within, price) = (&reusable.reuse().limits[at], reusable.price());
        let name = if at == 0 { Cell::text(ALL.to_owned()) } else { Cell::Bytes(within.limit << 12) };
        let gain = reusable.gain(at)[0];
        vec![
            name,
            Cell::Count(within.pages()),
            Cell::Bytes(reusable.kept_bytes(at)),
            Cell::Cycles((price.cycles * (1.0 - gain)) as u64),
            Cell::Share(gain),
        ]
    }
}

impl Suspicion for Keep {
    fn most_gain(&self) -> f64 {
        self.reusable.gain(0)[2]
    }

    fn finding(&self, case: &Case) -> Result<Finding, CaseError> {
        let case = case.traced()?;
        Ok(Finding {
            remedy: super::NAME.to_owned(),
            known: EvidenceKind::Modelled,
            symptom: self.symptom(),
            cause: "The allocator returns freed memory to the kernel: large blocks at once, and the top of the heap \
                    above a threshold. The next allocation receives it page by page, each with a fault and cleared."
                .to_owned(),
            evidence: self.evidence(),
            treatment: "glibc's malloc keeps what is freed".to_owned(),
            reach: Reach::Outside,
            prediction: self.prediction(case),
            unless: vec![
                format!(
                    "memory is scarce: {} of freed memory stays with the program",
                    bytes(self.reusable.kept_bytes(0))
                ),
                "the program brings another malloc than glibc's, or calls malloc_trim: `apply` counts page faults"
                    .to_owned(),
            ],
            apply: Some(command_line("apply", super::NAME, &[], &case.manifest.command)),
            verify: Some(command_line("verify", super::NAME, &[], &case.manifest.command)),
        })
    }

    fn rehearse(&self, case: &Case, request: &RehearsalRequest) -> Result<Rehearsal, CaseError> {
        let case = case.traced()?;
        let limit = |value: &Value| value.number().unwrap_or(NO_LIMIT);
        let chosen: Vec<u64> = request.values.iter().map(limit).filter(|limit| *limit != NO_LIMIT).collect();
        let again;
        let reusable = if request.values.is_empty() {
            &self.reusable
        } else {
            again = ReusablePages::within(case, &[&[NO_LIMIT], &chosen[..]].concat())?;
            &again
        };
        let columns = [PARAMETER, "pages again", "kept at most", "cycles", "saved"].map(str::to_owned);
        let before = [Cell::text("as it was"), Cell::Count(0), Cell::Bytes(0)];
        let before =
            before.into_iter().chain([Cell::Cycles(reusable.price().cycles as u64), Cell::Share(0.0)]).collect();
        Ok(Rehearsal {
            remedy: super::NAME.to_owned(),
            subject: "an allocator that keeps freed memory".to_owned(),
            basis: "from the pages that were freed and given out again".to_owned(),
            placements: Vec::new(),
            table: Table {
                title: "rehearsal".to_owned(),
                columns: columns.to_vec(),
                rows: [before]
                    .into_iter()
                    .chain((0..reusable.reuse().limits.len()).map(|at| Self::row(reusable, at)))
                    .collect(),
            },
            more: Vec::new(),
        })
    }
}

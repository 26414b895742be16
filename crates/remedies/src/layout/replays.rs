//! Cost of a run with the fields of one structure in other places.

use super::pieces::Element;
use super::proposals::{Ground, Proposal};
use nearmiss_analysis::{CaseError, Compared, PageFaults, Traced, waits};
use nearmiss_machine::attribution::UsedElements;
use nearmiss_record::figures::{Cell, Table};
use nearmiss_record::policy::{AddressPolicy, Policy, Rearranged};
use nearmiss_record::rehearsal::Rehearsal;

/// Compares the run as it was with the run under each of these.
pub fn compared(
    case: &Traced,
    used: &UsedElements,
    element: &Element,
    ground: Ground,
    proposals: &[Proposal],
) -> Result<Compared, CaseError> {
    let changed = |proposal: &Proposal| {
        let array = Rearranged { elements: used.elements.clone(), ..proposal.rearranged(element, ground) };
        Policy { address: AddressPolicy::Fields { arrays: vec![array] }, ..Policy::default() }
    };
    // Its elements are followed as those of the changes are, and stay where they were.
    let as_it_was = Rearranged { elements: used.elements.clone(), bytes: used.bytes, ..Rearranged::default() };
    let as_it_was = Policy { address: AddressPolicy::Fields { arrays: vec![as_it_was] }, ..Policy::default() };
    let policies: Vec<Policy> = [as_it_was].into_iter().chain(proposals.iter().map(changed)).collect();
    let totals = &case.model.totals;
    let computing_cycles = totals.cycles - totals.stall_cycles + PageFaults::of(&case.model).beyond_cycles();
    Compared::new(case, &policies, computing_cycles, Vec::new())
}

/// The table of what was tried.
pub fn table(
    compared: &Compared,
    case: &Traced,
    subject: String,
    element: &Element,
    proposals: &[Proposal],
) -> Rehearsal {
    let columns = [super::PARAMETER, "arrays", "bytes", "cycles", "saved"];
    let row = |at: usize| {
        let proposal = at.checked_sub(1).map(|at| &proposals[at]);
        vec![
            Cell::text(proposal.map_or("as it was", |proposal| proposal.change.name())),
            Cell::Count(proposal.map_or(1, |proposal| proposal.parts.len() as u64)),
            Cell::Bytes(proposal.map_or(element.bytes, Proposal::bytes)),
            Cell::Cycles(compared.cycles(at)),
            Cell::Share(compared.gain_of(at).0),
        ]
    };
    Rehearsal {
        remedy: super::NAME.to_owned(),
        subject,
        basis: format!("medians over {} page placements, {}", compared.placements.len(), waits(case)),
        placements: compared.placements.clone(),
        table: Table {
            title: "rehearsal".to_owned(),
            columns: columns.map(str::to_owned).to_vec(),
            rows: compared.numbers().map(row).collect(),
        },
        more: Vec::new(),
    }
}

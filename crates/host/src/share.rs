//! This host with one share of each miss hidden, in place of a core. `experiments/cycles` and `experiments/gains` set
//! it beside the cores, and it errs least for a host with wrongly described cores.

use nearmiss_record::machine::Machine;

/// Share of a miss that other work hides, if not specified.
const OVERLAP: f64 = 0.6;

/// Returns the machine without a core, under a name of its own.
pub(super) fn with_share(mut machine: Machine) -> Machine {
    machine.name = "host-overlap".to_owned();
    machine.overlap = OVERLAP;
    machine.core = None;
    machine.streams = None;
    if let Some(tlb) = &mut machine.tlb {
        (tlb.second, tlb.ways, tlb.large_entries) = (None, 0, 0);
    }
    if let Some(aliasing) = &mut machine.store_aliasing {
        // The measured wait is the part that other work did not hide.
        aliasing.wait_cycles = (aliasing.wait_cycles / (1.0 - OVERLAP) * 100.0).round() / 100.0;
    }
    machine.sources.retain(|figure, _| !["core", "streams", "tlb."].iter().any(|of_core| figure.starts_with(of_core)));
    machine.sources.insert("overlap".to_owned(), "assumed: more than half of a miss hides behind others".to_owned());
    machine
}

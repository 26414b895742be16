//! Inputs of the model, and how each value was come by.

use super::study::PRODUCT;
use super::{CYCLES, DAEMONS, INSTRUCTIONS, PERIOD_TICKS, cost, kernel};
use crate::record::Parameter;
use nearmiss_record::words::grouped;

/// All.
pub fn parameters() -> Vec<Parameter> {
    [fitted(), assumed_of_the_product(), assumed_of_the_kernel()].concat()
}

fn row(name: &str, value: String, how: &str) -> Parameter {
    Parameter { name: name.into(), value, how: how.into() }
}

fn fitted() -> Vec<Parameter> {
    vec![
        row(
            "cycles of a multiplication and addition while it hits",
            format!("{CYCLES}, with both hardware threads of the core busy"),
            "fitted: the standard's longest of ten runs takes 417 s, of which the 50 s that the paper saves are 12%",
        ),
        row(
            "ticks between swaps, and from a swap to its judgement",
            grouped(PERIOD_TICKS),
            "fitted: 34.8 changes of placement a run (figure 17); section 2.3 names no period",
        ),
        row(
            "daemons that disturb",
            format!(
                "one in {} s on average, on any CPU, for up to {} ms",
                DAEMONS.every / kernel::TICKS_PER_SECOND,
                DAEMONS.longest
            ),
            "fitted: the standard's 2.1 changes of placement a run (figure 17); that none takes longer is assumed",
        ),
        row(
            "cost of a call of the standard scheduler",
            "10 lines from memory".to_owned(),
            "fitted: 3,920 cycles (figure 8); the other schedulers' further lines are counted by hand",
        ),
    ]
}

fn assumed_of_the_product() -> Vec<Parameter> {
    vec![
        row(
            "element of the matrices",
            format!("{} bytes", PRODUCT.element),
            "assumed: a block of 350 × 350 is \"close to the second level's capacity\" (section 4.1) at 4 bytes, twice it at 8",
        ),
        row(
            "order of the product",
            "row by row of C; each group's threads take the next row of the block in turn, so they are at one block"
                .to_owned(),
            "assumed: section 4.1 divides each block among the group's threads",
        ),
        row("instructions of a multiplication and addition", INSTRUCTIONS.to_string(), "assumed"),
        row(
            "threads",
            "made one after another by one task, of the groups in turn; the clock of ticks begins anywhere".to_owned(),
            "assumed",
        ),
    ]
}

fn assumed_of_the_kernel() -> Vec<Parameter> {
    vec![
        row(
            "a pair's judgement in the paper's method",
            "high where both tasks miss less often an instruction than tasks did on this core on average so far, low \
             where both miss more often"
                .to_owned(),
            "assumed: sections 2.1 and 3.1 compare with the mean, and have three grades",
        ),
        row(
            "an access to a counter",
            format!("{} cycles, 8 a call", cost::COUNTER_ACCESS_CYCLES),
            "assumed; latencies are those of the machine file",
        ),
        row(
            "tasks that share nothing",
            "four kinds in turn, each with the work of 40 s alone; table d has their sizes".to_owned(),
            "assumed: in the place of vpr, parser, bzip2 and mesa (section 5)",
        ),
    ]
}

//! Pace: a least interval between a thread's waits for events, so that a server makes one call for all that gathered
//! meanwhile.

pub mod apply;
mod batches;
mod calls;
mod detect;
mod finding;
mod intervals;
mod logs;
#[cfg(test)]
mod obvious;
mod replay;
mod words;
mod work;

use clap::Args as _;
use nearmiss_analysis::Needs;
use nearmiss_analysis::{Help, Parameter, Remedy, Value};
use std::time::Duration;

const NAME: &str = "pace";
/// Time that an interval may add to one event of a hundred, unless another is requested.
const BUDGET: Duration = Duration::from_millis(1);

/// The definition.
pub const REMEDY: Remedy = Remedy {
    name: NAME,
    summary: "keeps a least interval between a server's waits for events",
    apply_help: Help {
        about: "Keep a least interval between a thread's waits, so that one call brings many events",
        after: "Examples:
  nearmiss apply pace -- ./server                   the longest interval that adds 1 ms at most
  nearmiss apply pace --budget 5ms -- ./server
  nearmiss apply pace --interval 200us -- ./server  200 µs from a wait's return to the next wait

A thread does not sleep where a call has timeout 0, where events are sparse, where something of the last return waits \
still, where a call takes longer than the interval, and where the thread's CPU clock shows that sleeps save nothing. \
Answers come later by the interval at most: clients that wait for each answer before they send again get no more than one \
answer an interval each. \
Waits in io_uring stay as they are. Nothing persists: the next run without it is as before.",
    },
    verify_help: Help {
        about: "Does a least interval between waits help?",
        after: "Examples:
  nearmiss verify pace -- ./program
  nearmiss verify pace --interval 5ms --metric 'CPU ([0-9.]+)' -- ./program",
    },
    rehearse_help: Help {
        about: "The log of a thread's waits under longer and longer intervals",
        after: "Examples:
  nearmiss observe --polls --log -p PID --for 10s   the log
  nearmiss rehearse pace                            the newest observation
  nearmiss rehearse pace RUN --intervals 200us,1ms",
    },
    needs: Needs::Observation,
    options: apply::Args::augment_args,
    parameter: Parameter {
        name: "intervals",
        value_name: "TIME,…",
        help: "Intervals to try [default: 50us to 40ms]",
        parse: interval_of,
    },
    limit: Some(Parameter {
        name: "budget",
        value_name: "TIME",
        help: "What an interval may add to one event of a hundred [default: 1ms]",
        parse: budget_of,
    }),
    detect: detect::detect,
    nothing_found: "no thread waits often for few events",
    apply: apply::engage,
    attach: None,
    records: &[apply::RECORD],
    title: apply::title,
    abilities: apply::abilities,
};

/// An interval for a rehearsal.
fn interval_of(text: &str) -> Result<Value, String> {
    nanos("an interval", text)
}

/// A budget for a rehearsal.
fn budget_of(text: &str) -> Result<Value, String> {
    nanos("a budget", text)
}

fn nanos(what: &str, text: &str) -> Result<Value, String> {
    let time = nearmiss_usage::time(text)?;
    // A second at most.
    apply::checked(what, time).map(|time| Value::Number(time.as_nanos() as u64)).map_err(|why| why.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_a_time_within_bounds() {
        assert_eq!(interval_of("200us"), Ok(Value::Number(200_000)));
        assert!(interval_of("2s").is_err() && interval_of("200").is_err() && interval_of("0s").is_err());
    }
}

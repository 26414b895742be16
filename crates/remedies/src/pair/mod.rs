//! Pair: tasks run beside those with which they share a cache well.

pub mod apply;
mod detect;
mod evidence;
mod finding;
mod hands;
mod judged;
mod kept;
mod level;
mod parted;
mod schedules;
mod tables;
mod tasks;

use clap::Args as _;
use nearmiss_analysis::Needs;
use nearmiss_analysis::{Help, Parameter, Remedy, Value};

const NAME: &str = "pair";
/// Name of the parameter, as its option is named.
const PARAMETER: &str = "windows";

/// The definition.
pub const REMEDY: Remedy = Remedy {
    name: NAME,
    summary: "puts tasks beside those with which they share a cache well",
    apply_help: Help {
        about: "Put tasks that share well on CPUs that share a cache",
        after: "Examples:
  nearmiss apply pair --table RUN -- ./server                   by the pairs of a rehearsed run
  nearmiss apply pair --table RUN -p 1234                       a process, until its end or Ctrl-C
  nearmiss apply pair --with sched-ext --table RUN -- ./server  by a scheduler in the kernel

Masks of affinity are given back, however nearmiss ends. A mask that the program set itself is left alone.",
    },
    verify_help: Help {
        about: "Does it help to choose which tasks share a cache?",
        after: "Examples:
  nearmiss verify pair -- ./program",
    },
    rehearse_help: Help {
        about: "The run with its tasks beside others",
        after: "Examples:
  nearmiss rehearse pair                               the newest run
  nearmiss rehearse pair RUN --windows 20000           tasks of one domain run together sooner",
    },
    needs: Needs::Trace,
    options: apply::Args::augment_args,
    parameter: Parameter {
        name: PARAMETER,
        value_name: "N,…",
        help: "Instructions that a task executes before the one beside it has its turn, 20000 to 200000 [default: 50000]",
        parse: window_of,
    },
    limit: None,
    detect: detect::detect,
    nothing_found: "no tasks for which other neighbours could matter",
    apply: apply::engage,
    attach: Some(apply::attach),
    records: &[apply::RECORD],
    title: apply::title,
    abilities: apply::abilities,
};

/// A window for a rehearsal.
fn window_of(text: &str) -> Result<Value, String> {
    let window = text.parse().ok().filter(|window: &u64| (20_000..=200_000).contains(window));
    window.map(Value::Number).ok_or_else(|| format!("{text} is not a number of instructions in 20000..=200000"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_as_long_as_a_round_can_hold() {
        assert_eq!(window_of("20000"), Ok(Value::Number(20_000)));
        assert!(window_of("19999").is_err() && window_of("200001").is_err() && window_of("all").is_err());
    }
}

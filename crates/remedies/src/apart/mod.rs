//! Apart: what different tasks write lies on cache lines of its own, so that CPUs do not take the lines from each other.

pub mod apply;
mod costs;
mod detect;
mod evidence;
mod finding;
mod subject;

use clap::Args as _;
use nearmiss_analysis::Needs;
use nearmiss_analysis::{Help, Parameter, Remedy, Value};

const NAME: &str = "apart";
/// Most bytes from one tenant to the next that a rehearsal tries.
const MOST_SPACING: u64 = 4096;

/// The definition.
pub const REMEDY: Remedy = Remedy {
    name: NAME,
    summary: "gives what different CPUs write cache lines of its own",
    apply_help: Help {
        about: "Give small malloc blocks cache lines of their own, so that threads stop sharing lines by accident",
        after: "Examples:
  nearmiss apply apart -- ./server                   blocks of 1 to 128 bytes
  nearmiss apply apart --sizes 16-48 -- ./server     only blocks of these sizes
  nearmiss apply apart --json done.json -- ./server

Variables and the fields of one object stay where they are: only the program's author can move them. \
Nothing persists: the next run without it is as before.",
    },
    verify_help: Help {
        about: "Does it help to give small blocks lines of their own?",
        after: "Examples:
  nearmiss verify apart -- ./program
  nearmiss verify apart --sizes 16-48 --metric 'ops ([0-9.]+)' --higher -- ./program",
    },
    rehearse_help: Help {
        about: "The run with the tenants of each shared line so many bytes from each other",
        after: "Examples:
  nearmiss rehearse apart                              the newest run
  nearmiss rehearse apart RUN --spacings 128           where caches fetch lines in pairs",
    },
    needs: Needs::Trace,
    options: apply::Args::augment_args,
    parameter: Parameter {
        name: costs::PARAMETER,
        value_name: "BYTES,…",
        help: "Bytes from one tenant to the next [default: the machine's line, and two lines]",
        parse: spacing_of,
    },
    limit: None,
    detect: detect::detect,
    nothing_found: "no line of the command's moves needlessly between CPUs at a cost",
    apply: apply::engage,
    attach: None,
    records: &[apply::RECORD],
    title: apply::title,
    abilities: apply::abilities,
};

/// A spacing for a rehearsal.
fn spacing_of(text: &str) -> Result<Value, String> {
    let bytes = text.parse().ok().filter(|bytes: &u64| bytes.is_power_of_two() && (16..=MOST_SPACING).contains(bytes));
    bytes.map(Value::Number).ok_or_else(|| format!("{text} is not a power of two in 16..={MOST_SPACING}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spacing_is_a_power_of_two() {
        assert_eq!(spacing_of("128"), Ok(Value::Number(128)));
        assert!(spacing_of("100").is_err() && spacing_of("8").is_err() && spacing_of("8192").is_err());
    }
}

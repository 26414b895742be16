//! Cache coloring: objects that begin at the same offset of an aligned piece of memory are
//! shifted by a few whole lines each, so that they do not share cache sets.

mod aliasing;
pub mod apply;
mod colors;
mod detect;
mod evidence;
mod finding;
mod objects;
mod program;
mod rehearse;
mod subject;
mod verdict;

pub use colors::{effective_alignment, least_colors, lines_a_color, step};

use clap::Args as _;
use nearmiss_analysis::Needs;
use nearmiss_analysis::{Help, Parameter, Remedy, Value};

const NAME: &str = "color";

/// The definition.
pub const REMEDY: Remedy = Remedy {
    name: NAME,
    summary: "shifts thread stacks and large blocks by whole lines so that they do not share cache sets",
    apply_help: Help {
        about: "Shift thread stacks and large blocks by cache lines, so that they stop sharing cache sets",
        after: "Examples:
  nearmiss apply color -- ./server            32 colors, stacks and blocks of 128 KiB and more
  nearmiss apply color --stacks -- ./server   thread stacks only
  nearmiss apply color --colors 8 --blocks 16k --json done.json -- ./server

Nothing persists: the next run without it is as before.",
    },
    verify_help: Help {
        about: "Does coloring help?",
        after: "Examples:
  nearmiss verify color -- ./program
  nearmiss verify color --metric 'ns_per_visit ([0-9.]+)' -- ./program
  nearmiss verify color --beside './other' -- ./program    and does it harm another program?
  nearmiss verify color --require-gain 5% -- ./program     exit code 1 unless 5% are gained for sure",
    },
    rehearse_help: Help {
        about: "The run with its objects in 1, 2, 4, … colors",
        after: "Examples:
  nearmiss rehearse color                              the newest run
  nearmiss rehearse color RUN -m pentium-pro-4way-1m   on another machine
  nearmiss rehearse color RUN --colors 1,8,32",
    },
    needs: Needs::Trace,
    options: apply::Args::augment_args,
    parameter: Parameter {
        name: rehearse::PARAMETER,
        value_name: "N,…",
        help: "Numbers of colors to try [default: 1,2,4,8,16,32,64]",
        parse: colors_of,
    },
    limit: None,
    detect: detect::detect,
    nothing_found: "no objects crowd on few sets",
    apply: apply::engage,
    attach: None,
    records: &[apply::RECORD],
    title: apply::title,
    abilities: apply::abilities,
};

/// A number of colors for a rehearsal.
fn colors_of(text: &str) -> Result<Value, String> {
    let colors = text.parse().ok().filter(|colors| (1..=u64::from(apply::MOST_COLORS)).contains(colors));
    colors.map(Value::Number).ok_or_else(|| format!("{text} is not in 1..={}", apply::MOST_COLORS))
}

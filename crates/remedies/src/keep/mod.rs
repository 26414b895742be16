//! Keep: freed memory stays with the program where the kernel gives it out again and again.

pub mod apply;
mod detect;
mod finding;
mod price;
mod reusable_pages;

use crate::size::parse_size;
use clap::Args as _;
use nearmiss_analysis::{Help, Needs, Parameter, Remedy, Value};

const NAME: &str = "keep";
/// Name of the rehearsal's parameter, as its option is named.
const PARAMETER: &str = "limits";
/// Value of the parameter without a limit.
const ALL: &str = "all";

/// The definition.
pub const REMEDY: Remedy = Remedy {
    name: NAME,
    summary: "keeps freed memory in the program",
    apply_help: Help {
        about: "Let malloc keep the memory that the program frees",
        after: "Examples:
  nearmiss apply keep -- ./program                 all that is freed
  nearmiss apply keep --at-most 256M -- ./program  give the top of the heap back when it is larger

A library in the program sets two parameters of glibc's malloc (mallopt): no block is a mapping of its own, and the top of \
the heap is not given back. What is freed is handed out again, without a page fault, clearing and unmapping for each page. \
Static and Go programs load no library, and nearmiss refuses them; a program with another malloc stays as it is, and the \
report counts it. Nothing persists: the next run without it is as before.",
    },
    verify_help: Help {
        about: "Does it help to keep freed memory?",
        after: "Examples:
  nearmiss verify keep -- ./program
  nearmiss verify keep --at-most 256M -- ./program",
    },
    rehearse_help: Help {
        about: "The run with an allocator that keeps freed memory",
        after: "Examples:
  nearmiss rehearse keep                           the newest run
  nearmiss rehearse keep RUN --limits 16M,256M     give the top of the heap back when it is larger",
    },
    needs: Needs::Trace,
    options: apply::Args::augment_args,
    parameter: Parameter {
        name: PARAMETER,
        value_name: "SIZE,…",
        help: "Freed memory that the allocator keeps at most: a size, such as 64M, or all [default: 16M, 256M and all]",
        parse: limit_of,
    },
    limit: None,
    detect: detect::detect,
    nothing_found: "no freed memory comes back by page faults",
    apply: apply::engage,
    attach: None,
    records: &[apply::RECORD],
    title: apply::title,
    abilities: apply::abilities,
};

/// Reads a value of the rehearsal's parameter.
fn limit_of(text: &str) -> Result<Value, String> {
    if text == ALL {
        return Ok(Value::Name(text.to_owned()));
    }
    parse_size(text).map(Value::Number).map_err(|why| format!("{text} is neither `all` nor a size: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_sizes_or_all() {
        assert_eq!(limit_of("all"), Ok(Value::Name("all".to_owned())));
        assert_eq!(limit_of("16M"), Ok(Value::Number(16 << 20)));
        assert!(limit_of("much").is_err_and(|why| why.starts_with("much is neither `all` nor a size: ")));
    }
}

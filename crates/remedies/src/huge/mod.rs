//! Huge: memory lies in pages of 2 MiB where walks of the page table and page faults take time.

pub mod apply;
mod costs;
mod detect;
mod evidence;
mod finding;
mod price;
mod walks_and_touches;

use clap::Args as _;
use nearmiss_analysis::{Help, Needs, Parameter, Remedy, Value};

const NAME: &str = "huge";

/// The definition.
pub const REMEDY: Remedy = Remedy {
    name: NAME,
    summary: "puts memory into pages of 2 MiB",
    apply_help: Help {
        about: "Put the heap and anonymous mappings into pages of 2 MiB",
        after: "Examples:
  nearmiss apply huge -- ./program                          all memory without a file
  nearmiss apply huge --site 'program+0x11d9' -- ./program  what this call allocates (see diagnose)

A library in the program requests large pages (madvise) for each mapping and block of 2 MiB and more, and glibc from \
2.35 on for its heap (GLIBC_TUNABLES). Static and Go programs load no library, and nearmiss refuses them. The kernel must not \
refuse large pages: /sys/kernel/mm/transparent_hugepage/enabled is `madvise` or `always`. A large page takes 2 MiB of \
memory even where the program uses one byte of it. Nothing persists: the next run without it is as before.",
    },
    verify_help: Help {
        about: "Do pages of 2 MiB help?",
        after: "Examples:
  nearmiss verify huge -- ./program
  nearmiss verify huge --site 'program+0x11d9' -- ./program",
    },
    rehearse_help: Help {
        about: "The run with its memory in pages of 2 MiB, all of it or single objects",
        after: "Examples:
  nearmiss rehearse huge                     the newest run
  nearmiss rehearse huge RUN --objects all   all memory without a file
  nearmiss rehearse huge --objects 1,2,3     each of the three objects alone that most walks lead to",
    },
    needs: Needs::Trace,
    options: apply::Args::augment_args,
    parameter: Parameter {
        name: costs::PARAMETER,
        value_name: "OBJECT,…",
        help: "Memory in large pages: all, or the number of an object among those that walks lead to, from 1, most walks \
               first [default: all, and the first three]",
        parse: object_of,
    },
    limit: None,
    detect: detect::detect,
    nothing_found: "no walks to small pages and no first touches cost much",
    apply: apply::engage,
    attach: None,
    records: &[apply::RECORD],
    title: apply::title,
    abilities: apply::abilities,
};

/// Reads a value of the rehearsal's parameter.
fn object_of(text: &str) -> Result<Value, String> {
    let number = || text.parse().ok().filter(|number| *number > 0).map(Value::Number);
    let all = (text == costs::ALL).then(|| Value::Name(text.to_owned()));
    all.or_else(number).ok_or_else(|| format!("{text} is neither `all` nor the number of an object, from 1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_all_or_numbered_from_one() {
        assert_eq!(object_of("all"), Ok(Value::Name("all".to_owned())));
        assert_eq!(object_of("12"), Ok(Value::Number(12)));
        for wrong in ["0", "-1", "", "heap"] {
            assert!(
                object_of(wrong).is_err_and(|why| why.ends_with("neither `all` nor the number of an object, from 1"))
            );
        }
    }
}

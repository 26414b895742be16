//! Layout: the fields of a structure lie as they are used, so that a line brings what is needed.

mod declaration;
mod detect;
mod evidence;
mod finding;
mod orders;
mod pieces;
mod proposals;
mod replays;

use clap::{ArgMatches, Command};
use nearmiss_analysis::{Applied, CannotEngage, Help, Needs, Parameter, Remedy, Value};
use nearmiss_workload::Workload;

const NAME: &str = "layout";
/// Name of the rehearsal's parameter, as its option is named.
const PARAMETER: &str = "changes";

/// The definition.
pub const REMEDY: Remedy = Remedy {
    name: NAME,
    summary: "places the fields of structures as they are used (by its author)",
    apply_help: Help {
        about: "Not applied from outside: the program's author changes the structure",
        after: "Examples:
  nearmiss diagnose RUN                            shows the new declaration
  nearmiss verify commands './old' './new'         measures what it gains

The places of fields are fixed when a program is built. nearmiss finds a better declaration and rehearses it on the \
recorded run; the author puts it into the source.",
    },
    verify_help: Help {
        about: "Not verified from outside: compare the program before and after its author's change",
        after: "Examples:
  nearmiss verify commands './old' './new'",
    },
    rehearse_help: Help {
        about: "The run with the fields of its structures in other places",
        after: "Examples:
  nearmiss rehearse layout                          the newest run, of a trace with --carry fields
  nearmiss rehearse layout RUN --changes split      hot fields in an array of their own",
    },
    needs: Needs::Trace,
    options: |command: Command| command,
    parameter: Parameter {
        name: PARAMETER,
        value_name: "CHANGE,…",
        help: "Changes to try: order (another order of the fields), align (elements of whole lines), split (hot and cold \
               fields in two arrays), columns (fields that are used apart in arrays of their own) [default: all that \
               could help]",
        parse: change_of,
    },
    limit: None,
    detect: detect::detect,
    nothing_found: "no structure's fields waste much of their lines",
    apply: by_its_author,
    attach: None,
    records: &[],
    title: |_| NAME.to_owned(),
    abilities: || Vec::new(),
};

/// Reads a value of the rehearsal's parameter.
fn change_of(text: &str) -> Result<Value, String> {
    let known = proposals::Change::ALL.iter().any(|change| change.name() == text);
    let names = proposals::Change::ALL.map(proposals::Change::name).join(", ");
    known.then(|| Value::Name(text.to_owned())).ok_or_else(|| format!("{text} is none of {names}"))
}

fn by_its_author(_: Workload, _: &ArgMatches) -> Result<Applied, CannotEngage> {
    Err(CannotEngage::Parameters(
        "layout is a change of the program by its author: `nearmiss diagnose` shows the new declaration, and `nearmiss \
         verify commands './old' './new'` measures it"
            .to_owned(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_have_names() {
        assert_eq!(change_of("split"), Ok(Value::Name("split".to_owned())));
        assert_eq!(change_of("hot"), Err("hot is none of order, align, split, columns".to_owned()));
    }
}

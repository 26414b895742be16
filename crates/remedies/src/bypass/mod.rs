//! Bypass: what will not be used again soon stays out of a cache. `--copies` is about the CPU's caches: chosen copies go
//! past them. `--files` is about the page cache: files leave nothing there.

pub mod copies;
pub mod files;
mod options;

pub use options::Args;

use crate::command_line::args;
use clap::{ArgMatches, Args as _};
use copies::Site;
use nearmiss_analysis::{
    Ability, Applied, CannotEngage, Case, CaseError, Help, Needs, Parameter, Remedy, Suspicions, Value,
};
use nearmiss_record::words;
use nearmiss_workload::Workload;

const NAME: &str = "bypass";
/// Name of the parameter, as its option is named.
const PARAMETER: &str = "sites";

/// The definition.
pub const REMEDY: Remedy = Remedy {
    name: NAME,
    summary: "keeps large copies out of the CPU's caches, or files out of the page cache",
    apply_help: Help {
        about: "Let chosen copies go past the CPU's caches, so that they evict nothing",
        after: "Examples:
  nearmiss apply bypass --copies --site keep_record -- ./program     copies that this function makes
  nearmiss apply bypass --copies --site program+0x1234 -- ./program  one call, as diagnose prints it
  nearmiss apply bypass --copies --site keep_record --min 64k -- ./program
  nearmiss apply bypass --copies --every-copy -- ./program           all copies of 1 MiB and more
  nearmiss apply bypass --copies -- ./program                        counts large copies, no more
  nearmiss apply bypass --files -- cp big copy                       adds nothing to the page cache
  nearmiss apply bypass --files --only '*.tar' -- ./backup           the same of these files alone

--copies reaches calls of memcpy, mempcpy, memmove and memset. Copies that the compiler built into the program, and \
those inside the C library, are the author's alone: nearmiss-bypass.h or the crate nearmiss-bypass. \
--files is about another cache, the page cache: regular files that the command reads or writes leave nothing there, and \
what was cached before stays. Files that a program maps, and those it reads and writes by io_uring, stay as they are. \
Nothing persists: the next run without it is as before.",
    },
    verify_help: Help {
        about: "Does it help to let chosen copies go past the caches?",
        after: "Examples:
  nearmiss verify bypass --copies --site keep_record -- ./program
  nearmiss verify bypass --copies --site keep_record --beside ./other -- ./prog  does ./other gain?
  nearmiss verify bypass --files -- cp big copy                                  what does it cost?",
    },
    rehearse_help: Help {
        about: "The run with the copies of each call site, and of all together, past the caches",
        after: "Examples:
  nearmiss rehearse bypass                                          the newest run (--carry stores)
  nearmiss rehearse bypass RUN --sites keep_record,program+0x1234
  nearmiss observe --io -- cp big copy && nearmiss rehearse bypass  pages of others that would stay",
    },
    needs: Needs::Either,
    options: Args::augment_args,
    parameter: Parameter {
        name: PARAMETER,
        value_name: "SITE,…",
        help: "Call sites of copies: FUNC or MODULE+0xOFF, with @CALLER or without [default: those that the run shows]",
        parse: site_of,
    },
    limit: None,
    detect,
    nothing_found: "no copy and no file of the command's that others pay for",
    apply: engage,
    attach: None,
    records: &[files::RECORD, copies::RECORD, copies::RECORD_OF_EVERY_COPY],
    title,
    abilities,
};

/// A site for a rehearsal, spelled as it is printed.
fn site_of(text: &str) -> Result<Value, String> {
    text.parse::<Site>().map(|site| Value::Name(site.to_string()))
}

fn detect(case: &Case) -> Result<Suspicions, CaseError> {
    // The gain of files can be rehearsed on an observation, and that of copies cannot.
    Ok(files::detect(case)?.into_iter().chain(copies::detect(case)?).collect())
}

fn engage(workload: Workload, given: &ArgMatches) -> Result<Applied, CannotEngage> {
    let args = args::<Args>(given)?;
    if args.every_copy {
        return copies::engage_every_copy(workload, args.least_bytes());
    }
    if args.copies {
        return copies::engage(workload, &args.into());
    }
    if args.files {
        return files::engage(workload, &args.into());
    }
    let why = "bypass: choose what is to go past which cache: --copies [--site SITE]… or --files [--only GLOB]";
    Err(CannotEngage::Parameters(why.to_owned()))
}

/// `bypass, copies of keep_record`.
fn title(given: &ArgMatches) -> String {
    match args::<Args>(given) {
        Ok(args) if args.files => format!("{NAME}, {}", files::Options::from(args)),
        Ok(args) if args.every_copy => format!("{NAME}, every copy of {} and more", words::bytes(args.least_bytes())),
        Ok(args) => format!("{NAME}, {}", copies::Options::from(args)),
        Err(_) => NAME.to_owned(),
    }
}

fn abilities() -> Vec<Ability> {
    [copies::abilities(), files::abilities()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Command;

    /// The title of what was typed, or the first line of what is wrong with it.
    fn titled(words: &[&str]) -> String {
        let command = Args::augment_args(Command::new("bypass"));
        let given = command.try_get_matches_from([&["bypass"], words].concat());
        given.map_or_else(|error| error.to_string().lines().take(2).collect(), |given| title(&given))
    }

    #[test]
    fn options_that_mean_nothing_together_are_refused() {
        let missing = |what| format!("error: the following required arguments were not provided:  --{what}");
        for (words, what) in [
            (&["--min", "64k"][..], "copies"),
            (&["--site", "store"], "copies"),
            (&["--every-copy"], "copies"),
            (&["--only", "*.tar"], "files"),
        ] {
            assert_eq!(titled(words), missing(what), "{words:?}");
        }
        for words in [
            &["--copies", "--site", "store", "--every-copy"][..],
            &["--copies", "--files"],
            &["--copies", "--only", "*.tar"],
            &["--files", "--min", "64k"],
            &["--files", "--site", "store"],
            &["--files", "--every-copy"],
        ] {
            assert!(titled(words).contains("cannot be used with"), "{words:?}: {}", titled(words));
        }
    }

    #[test]
    fn every_copy_begins_where_the_caches_end() {
        assert_eq!(titled(&["--copies", "--every-copy"]), "bypass, every copy of 1 MiB and more");
        assert_eq!(titled(&["--copies", "--every-copy", "--min", "256k"]), "bypass, every copy of 256 KiB and more");
        assert_eq!(titled(&["--copies", "--site", "store"]), "bypass, copies of store of 4 KiB and more");
        assert_eq!(titled(&["--files", "--only", "*.tar"]), "bypass, files named *.tar");
    }

    #[test]
    fn a_site_is_spelled_one_way() {
        assert_eq!(site_of("/usr/bin/tar+0x00A0"), Ok(Value::Name("tar+0xa0".to_owned())));
        assert_eq!(site_of("store@main"), Ok(Value::Name("store@main".to_owned())));
        assert!(site_of("").is_err() && site_of("tar+0x").is_err());
    }
}

//! `verify` of two commands, environments or builds, each given as one string.

use super::how::How;
use super::sides::{Title, compare_sides};
use nearmiss_verify::SideCommand;
use nearmiss_workload::Workload;
use std::process::ExitCode;

/// Arguments of `nearmiss verify commands`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  nearmiss verify commands 'sort words.txt' 'sort --parallel=1 words.txt'
  nearmiss verify commands './old --check' './new --check'         two builds
  nearmiss verify commands './program' 'LD_BIND_NOW=1 ./program'   two environments
  nearmiss verify commands --metric 'rate ([0-9.]+)' --higher './bench a' './bench b'
  nearmiss verify commands --require-gain 5% './old' './new'       exit code 1 unless 5% are sure

A command's words are split as a shell splits them, variables set before it are set, and the
program runs without a shell. Where either command needs one (pipes, $variables, patterns), both
run through `/bin/sh -c`.")]
pub struct Args {
    /// What is compared with
    #[arg(value_name = "CMD1", value_parser = command)]
    first: String,
    /// What the verdict is about: a gain is a gain of this one
    #[arg(value_name = "CMD2", value_parser = command)]
    second: String,
    #[command(flatten)]
    how: How,
}

/// Runs the verb.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let (first, second) = (&args.first, &args.second);
    let mut notes = Vec::new();
    let (without, with) = match direct(first).zip(direct(second)) {
        Some(both) => both,
        None => {
            notes.push("Both commands ran through /bin/sh: its start is part of every time.".to_owned());
            let shell = |command: &str| Workload::new(["/bin/sh", "-c", command]);
            (shell(first), shell(second))
        }
    };
    for workload in [&without, &with] {
        workload.program()?;
    }
    let side = |name: &String, workload| SideCommand { name: name.clone(), workload, engagement: None };
    let stem = second.split_whitespace().next().unwrap_or_default().to_owned();
    let command = vec![first.clone(), second.clone()];
    let title = Title { stem, command, remedy: None, predicted: None, notes };
    compare_sides(&args.how, title, side(first, without), side(second, with), None)
}

/// A command that is there.
fn command(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Err("no command; write for example './program --option'".to_owned());
    }
    Ok(text.to_owned())
}

/// What only a shell understands, quoted or not: to take a harmless one for harmful costs a shell's start, on both sides.
const SHELL_ONLY: &str = "|&;<>()$`\\*?[]{}~#!\n";

/// Commands that are no programs.
const BUILT_IN: [&str; 23] = [
    ".", ":", "alias", "case", "cd", "command", "eval", "exec", "exit", "export", "for", "if", "read", "return", "set",
    "shift", "source", "time", "trap", "ulimit", "umask", "unset", "while",
];

/// A command that needs no shell.
fn direct(command: &str) -> Option<Workload> {
    if command.contains(|c| SHELL_ONLY.contains(c)) {
        return None;
    }
    let words = shlex::split(command)?;
    let variables: Vec<(&str, &str)> = words.iter().map_while(|word| variable(word)).collect();
    let argv = words.get(variables.len()..)?;
    let program = argv.first()?;
    let set = |workload: Workload, (name, value): &(&str, &str)| workload.env(*name, *value);
    (!BUILT_IN.contains(&program.as_str())).then(|| variables.iter().fold(Workload::new(argv), set))
}

/// `NAME=value`, as it may stand before a command.
fn variable(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let sound = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && name.chars().all(is_name);
    sound.then_some((name, value))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn words_and_variables_are_a_shells() {
        let argv = |command: &str| direct(command).unwrap().argv().to_vec();
        assert_eq!(argv("sort -k 2 'a file'"), ["sort", "-k", "2", "a file"]);
        assert_eq!(argv("env X=1 ./p \"\" it\"'\"s"), ["env", "X=1", "./p", "", "it's"]);
        let set = direct("X=1 Y='a b' ./p Z=2").unwrap();
        assert_eq!(set.argv(), ["./p", "Z=2"]);
        assert_eq!((set.variable("X").unwrap(), set.variable("Y").unwrap()), ("1".into(), "a b".into()));
    }

    #[test]
    fn what_only_a_shell_can_run_is_left_to_it() {
        for command in ["a | b", "a && b", "X=1", "echo $HOME", "ls *", "exit 3", "cd /; ls", "echo 'unclosed", ""] {
            assert!(direct(command).is_none(), "{command}");
        }
    }
}

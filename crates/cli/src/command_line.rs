//! Commands that are given as one string.

use nearmiss_workload::Workload;

/// Names and values that a command's environment has beside what it inherits.
pub type Variables = Vec<(String, String)>;

/// Returns a workload that runs the command in a shell.
pub fn shell(command: &str) -> Workload {
    Workload::new(["/bin/sh", "-c", command])
}

/// Characters that only a shell understands, quoted or not: to take a harmless one for harmful costs a shell's start,
/// on both sides.
const SHELL_ONLY: &str = "|&;<>()$`\\*?[]{}~#!\n";

/// Commands that are no programs.
const BUILT_IN: [&str; 23] = [
    ".", ":", "alias", "case", "cd", "command", "eval", "exec", "exit", "export", "for", "if", "read", "return", "set",
    "shift", "source", "time", "trap", "ulimit", "umask", "unset", "while",
];

/// A command that needs no shell, its words split as a shell splits them.
pub fn direct(command: &str) -> Option<Workload> {
    let (variables, argv) = split(command)?;
    let set = |workload: Workload, (name, value): &(String, String)| workload.env(name, value);
    Some(variables.iter().fold(Workload::new(&argv), set))
}

/// The variables that are set before a command, and the words of the command itself, where it needs no shell.
pub fn split(command: &str) -> Option<(Variables, Vec<String>)> {
    if command.contains(|c| SHELL_ONLY.contains(c)) {
        return None;
    }
    let words = shlex::split(command)?;
    let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    let variables: Variables = words.iter().map_while(|word| variable(word)).map(owned).collect();
    let argv = words.get(variables.len()..)?;
    let program = argv.first()?;
    (!BUILT_IN.contains(&program.as_str())).then(|| (variables, argv.to_vec()))
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
    fn a_command_for_a_shell_is_left_to_it() {
        for command in ["a | b", "a && b", "X=1", "echo $HOME", "ls *", "exit 3", "cd /; ls", "echo 'unclosed", ""] {
            assert!(direct(command).is_none(), "{command}");
        }
    }
}

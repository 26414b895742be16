//! The commands of a gate, as they are given and as they are recorded.

use crate::command_line::{Variables, split};
use nearmiss_record::words::quoted;
use nearmiss_workload::Workload;
use std::ffi::OsString;

/// A command that is recorded.
pub struct Gated {
    /// The command as text for a shell.
    pub text: String,
    /// Variables set ahead of the command.
    pub variables: Variables,
    /// Program and arguments.
    pub words: Vec<OsString>,
}

impl Gated {
    /// A command given as words. Errors: there is no such program.
    pub fn of(words: &[OsString]) -> anyhow::Result<Self> {
        let text: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        Gated { text: quoted(&text), variables: Vec::new(), words: words.to_vec() }.checked()
    }

    fn checked(self) -> anyhow::Result<Self> {
        // The guest would report it too, after its boot.
        Workload::new(self.words.iter().cloned()).program()?;
        Ok(self)
    }
}

/// Two commands given as strings; both run in a shell where either of them needs one. Errors: there is no such program.
pub fn both(old: &str, new: &str) -> anyhow::Result<[Gated; 2]> {
    let direct = split(old).zip(split(new));
    let shell = |text: &str| (Vec::new(), ["/bin/sh", "-c", text].map(str::to_owned).to_vec());
    let (first, second) = direct.unwrap_or_else(|| (shell(old), shell(new)));
    let gated = |text: &str, (variables, words): (_, Vec<String>)| {
        Gated { text: text.to_owned(), variables, words: words.into_iter().map(OsString::from).collect() }.checked()
    };
    Ok([gated(old, first)?, gated(new, second)?])
}

/// A command that is there.
pub fn text(given: &str) -> Result<String, String> {
    if given.trim().is_empty() {
        return Err("no command; write for example './program --option'".to_owned());
    }
    Ok(given.to_owned())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_run_in_a_shell_if_one_of_them_needs_one() {
        let words =
            |gated: &Gated| gated.words.iter().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>();
        let [old, new] = both("X=1 true a", "true 'b c'").unwrap();
        assert_eq!((words(&old), words(&new)), (vec!["true".into(), "a".into()], vec!["true".into(), "b c".into()]));
        assert_eq!(old.variables, [("X".to_owned(), "1".to_owned())]);
        let [old, new] = both("true a", "true | true").unwrap();
        assert_eq!([&old, &new].map(|it| words(it).join(" ")), ["/bin/sh -c true a", "/bin/sh -c true | true"]);
        assert!(both("true", "./no-such-program").is_err());
    }
}

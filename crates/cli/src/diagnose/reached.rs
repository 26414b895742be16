//! Notes on work of a command that its recorded parts did not reach, as far as they show it.

use nearmiss_analysis::{Detected, Traced};
use nearmiss_record::model::TaskRow;
use nearmiss_record::words::{listed, percent};
use std::collections::BTreeMap;

/// Shells that commands begin with when they are scripts.
const SHELLS: [&str; 6] = ["sh", "bash", "dash", "zsh", "ksh", "busybox"];
/// Share of the command's cycles from which on a shell is most of what was recorded.
const MOST: f64 = 0.5;

/// Returns notes for the reader of an answer on parts of a command; none where its end was reached.
pub fn notes(traced: &Traced, detected: &Detected<'_>) -> Vec<String> {
    if !traced.manifest.covered.is_some_and(|covered| covered.ended) {
        return Vec::new();
    }
    let lost = traced.suspected_before.difference(&detected.suspected()).copied().map(str::to_owned).collect();
    shell(&traced.model.tasks).into_iter().chain(not_seen_again(lost)).collect()
}

/// The command is a script, and its shell is most of what was recorded.
fn shell(tasks: &[TaskRow]) -> Option<String> {
    let mut by_name: BTreeMap<&str, u64> = BTreeMap::new();
    for task in tasks.iter().filter(|task| task.of_command) {
        *by_name.entry(&task.comm).or_default() += task.user.cycles + task.kernel.cycles;
    }
    let all: u64 = by_name.values().sum();
    let (name, cycles) = by_name.into_iter().max_by_key(|(_, cycles)| *cycles)?;
    let share = cycles as f64 / all.max(1) as f64;
    (SHELLS.contains(&name) && share > MOST).then(|| {
        format!(
            "{} of what was recorded is `{name}`: the command is a script, and the program that it starts was hardly \
             reached. Name that program in the command, by its path.",
            percent(share)
        )
    })
}

/// The first recording showed reasons to look at these remedies, and the second one came to other parts of the command.
fn not_seen_again(lost: Vec<String>) -> Option<String> {
    (!lost.is_empty()).then(|| {
        format!(
            "A first recording of the command gave reason to look at {}; the parts that were recorded for the answer show \
             none. --within 3m records more.",
            listed(&lost, "and")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearmiss_record::model::Tally;

    fn task(comm: &str, of_command: bool, cycles: u64) -> TaskRow {
        let user = Tally { cycles, ..Tally::default() };
        TaskRow { tid: 7, pid: 7, comm: comm.to_owned(), of_command, user, kernel: Tally::default() }
    }

    #[test]
    fn a_script_whose_shell_is_most_of_the_recording_is_named() {
        let text = shell(&[task("bash", true, 500), task("bash", true, 450), task("python3", true, 50)]);
        assert!(
            text.is_some_and(|text| text.starts_with("95% of what was recorded is `bash`: the command is a script"))
        );
        assert_eq!(shell(&[task("bash", true, 50), task("python3", true, 51)]), None);
        assert_eq!(shell(&[task("bash", false, 900), task("python3", true, 50)]), None, "another's shell");
        assert_eq!(shell(&[]), None);
    }

    #[test]
    fn suspicions_that_only_the_first_recording_had_are_named() {
        assert_eq!(not_seen_again(Vec::new()), None);
        let text = not_seen_again(["one", "other"].map(str::to_owned).to_vec());
        assert!(text.is_some_and(|text| text.contains("reason to look at one and other; the parts")));
    }
}

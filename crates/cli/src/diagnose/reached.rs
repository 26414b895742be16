//! Notes on work of a command that its recorded parts did not reach, as far as they show it.

use nearmiss_analysis::{Detected, Traced};
use nearmiss_record::model::TaskRow;
use nearmiss_record::run::Coverage;
use nearmiss_record::words::{counted, grouped, listed, percent};
use std::collections::BTreeMap;

/// Shells that commands begin with when they are scripts.
const SHELLS: [&str; 6] = ["sh", "bash", "dash", "zsh", "ksh", "busybox"];
/// Share of the command's cycles from which on a shell is most of what was recorded.
const MOST: f64 = 0.5;

/// Share of the cycles from which on page faults in pauses are worth a note.
const LEAST_IN_PAUSES: f64 = 0.03;
/// So many times as many pages in a pause as in a part: the parts do not stand for them.
const MANY_TIMES: f64 = 4.0;

/// Returns notes for the reader of an answer on parts of a command.
pub fn notes(traced: &Traced, detected: &Detected<'_>) -> Vec<String> {
    let Some(covered) = traced.manifest.covered else { return Vec::new() };
    let page_cycles = traced.machine().memory.first_touch_cycles;
    let faults = page_cycles.and_then(|each| page_faults_in_pauses(&covered, traced.model.totals.cycles, each.into()));
    let lost = || traced.suspected_before.difference(&detected.suspected()).copied().map(str::to_owned).collect();
    let beyond = covered.ended.then(|| shell(&traced.model.tasks).into_iter().chain(not_seen_again(lost())));
    beyond.into_iter().flatten().chain(faults).collect()
}

/// The kernel cleared pages in bursts, and the parts with so many cycles show few of them.
fn page_faults_in_pauses(covered: &Coverage, cycles: u64, page_cycles: u64) -> Option<String> {
    let recorded_share = covered.share_by_guest()?;
    let shown = covered.recorded_cleared_pages as f64 / recorded_share;
    let unseen_cycles = (covered.reached_cleared_pages as f64 - shown) * page_cycles as f64;
    let share = unseen_cycles / (cycles as f64 / recorded_share + unseen_cycles);
    let is_in_bursts = covered.reached_cleared_pages as f64 >= MANY_TIMES * shown && share >= LEAST_IN_PAUSES;
    is_in_bursts.then(|| {
        format!(
            "The kernel cleared {}, {} of them in the recorded parts: page faults come in bursts that the parts hardly \
             show. At the machine's price of {} a page they take about {} of the run. --within 10m records more of it, \
             --from time:5s another stretch.",
            counted(covered.reached_cleared_pages, "page"),
            grouped(covered.recorded_cleared_pages),
            counted(page_cycles, "cycle"),
            percent(share)
        )
    })
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
    fn page_faults_that_the_parts_hardly_show_are_named() {
        let covered = |recorded_cleared_pages| Coverage {
            reached_ns: 100,
            recorded_guest_ns: 1,
            reached_guest_ns: 100,
            recorded_cleared_pages,
            reached_cleared_pages: 1000,
            ..Coverage::default()
        };
        // A hundredth of the run has 200,000 cycles, and its page faults beyond those of the parts have 2 million.
        let text = page_faults_in_pauses(&covered(0), 200_000, 2_000);
        assert!(text.is_some_and(|text| {
            text.starts_with("The kernel cleared 1,000 pages, 0 of them in the recorded parts")
                && text.contains("At the machine's price of 2,000 cycles a page they take about 9.1% of")
        }));
        assert_eq!(page_faults_in_pauses(&covered(0), 1_000_000, 2_000), None, "2%");
        assert_eq!(page_faults_in_pauses(&covered(3), 200_000, 2_000), None, "three of ten are shown");
        assert_eq!(page_faults_in_pauses(&Coverage::default(), 200_000, 2_000), None, "nothing was counted");
    }

    #[test]
    fn suspicions_that_only_the_first_recording_had_are_named() {
        assert_eq!(not_seen_again(Vec::new()), None);
        let text = not_seen_again(["one", "other"].map(str::to_owned).to_vec());
        assert!(text.is_some_and(|text| text.contains("reason to look at one and other; the parts")));
    }
}

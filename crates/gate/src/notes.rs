//! Notes on a verdict: what it leaves open, and which limits guard nothing.

use crate::limits::Limits;
use nearmiss_record::gate::{JudgedFigure, Limit, Ruling};
use nearmiss_record::words::{counted, percent};

/// Returns the notes on a verdict that so many recordings of the new side gave, of which at most `most` were allowed.
pub fn notes(figures: &[JudgedFigure], limits: &Limits, recordings: usize, most: usize) -> Vec<String> {
    let unused = limits.unused(figures).into_iter();
    let of_limits = unused
        .map(|name| format!("--max-worse {name}: neither command makes this call, so the limit guards nothing now."));
    undecided(figures, recordings, most).into_iter().chain(repeats_badly(figures)).chain(of_limits).collect()
}

fn undecided(figures: &[JudgedFigure], recordings: usize, most: usize) -> Option<String> {
    let unclear = figures.iter().filter(|figure| figure.ruling == Ruling::Unclear).count();
    let more = if recordings < most { "and a few more would not" } else { "--at-most N records more" };
    (unclear > 0).then(|| {
        format!(
            "{} may be beyond the limit: {recordings} recordings did not decide, {more}.",
            counted(unclear as u64, "figure")
        )
    })
}

/// Returns a note where the command itself varies by more than the limit on its instructions.
fn repeats_badly(figures: &[JudgedFigure]) -> Option<String> {
    let own = figures.iter().find(|figure| figure.name == "user.instructions")?;
    let noise = own.noise / own.old.max(1.0);
    matches!(own.limit, Limit::Share(limit) if noise > limit).then(|| {
        format!(
            "The command does not repeat: its instructions vary by ±{}, more than their limit, so that a change as large \
             may pass.",
            percent(noise)
        )
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn figure(name: &str, noise: f64, ruling: Ruling) -> JudgedFigure {
        JudgedFigure {
            name: name.to_owned(),
            old: 1000.0,
            new: 1050.0,
            difference: 50.0,
            noise,
            limit: Limit::Share(0.02),
            ruling,
            causes: Vec::new(),
        }
    }

    fn noted(figures: &[JudgedFigure], limits: &str) -> Vec<String> {
        let mut given = Limits::default();
        given.add(limits).unwrap();
        notes(figures, &given, 10, 10)
    }

    #[test]
    fn a_verdict_that_leaves_nothing_open_has_no_note() {
        let figures =
            [figure("user.instructions", 20.0, Ruling::Within), figure("user.l2", 900.0, Ruling::NoDifference)];
        assert!(noted(&figures, "2%").is_empty());
    }

    #[test]
    fn what_a_verdict_leaves_open_is_noted() {
        let figures = [figure("user.instructions", 21.0, Ruling::Unclear)];
        let found = noted(&figures, "syscalls.opennat=0");
        let begin: Vec<&str> = found.iter().map(|note| note.split(':').next().unwrap()).collect();
        assert_eq!(
            begin,
            ["1 figure may be beyond the limit", "The command does not repeat", "--max-worse syscalls.opennat"]
        );
        assert!(found[0].ends_with("--at-most N records more."), "{}", found[0]);
    }
}

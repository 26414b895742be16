//! `--max-worse 2%`, `--max-worse instructions=0.5%,syscalls=0`: how much more each figure may be.

use crate::figure::{MISSES, MODES, OF_A_MODE, OF_ALL, level, taken_apart};
use nearmiss_record::gate::{JudgedFigure, Limit};
use std::collections::BTreeSet;

/// A share of few events is a share of so many: 2% of 40 page faults are 2 of them.
const FEW: f64 = 100.0;

/// Why a limit is none.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum LimitError {
    /// Not a share and not a count.
    #[error("`{0}` is no limit; write a share such as 2%, or a number of events such as 0")]
    NoLimit(String),
    /// Nothing is called so.
    #[error(
        "no figure is called `{0}`; there are instructions, loads, stores, l1 to l4, misses (all levels), coherence, \
         cycles, each also with user. or kernel. ahead of it, and walks, syscalls, syscalls.NAME, faults, switches; \
         user and kernel alone are all figures of a mode"
    )]
    NoFigure(String),
    /// Two limits in one text are for the same figure.
    #[error("`{0}` has two limits here; keep one of them")]
    Twice(String),
}

/// Limits by figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    of_all: Limit,
    /// As typed, in their order.
    named: Vec<(String, Limit)>,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { of_all: Limit::Share(0.02), named: Vec::new() }
    }
}

impl Limits {
    /// Adds the limits of one option, with commas between them. A later option's limit replaces an earlier one's.
    pub fn add(&mut self, text: &str) -> Result<(), LimitError> {
        let mut known = BTreeSet::new();
        for item in text.split(',') {
            let (name, limit) = match item.split_once('=') {
                Some((name, _)) if !is_figure(name.trim()) => return Err(LimitError::NoFigure(name.trim().to_owned())),
                Some((name, value)) => (Some(name.trim()), limit(value)?),
                None => (None, limit(item)?),
            };
            if !known.insert(name) {
                return Err(LimitError::Twice(name.unwrap_or("every figure").to_owned()));
            }
            match name {
                Some(name) => self.named.push((name.to_owned(), limit)),
                None => self.of_all = limit,
            }
        }
        Ok(())
    }

    /// Names of limits that fit none of these figures: of system calls that neither command makes.
    pub fn unused<'a>(&'a self, figures: &[JudgedFigure]) -> Vec<&'a str> {
        let fits_none = |name: &&str| figures.iter().all(|figure| fit(name, &figure.name).is_none());
        self.named.iter().map(|(name, _)| name.as_str()).filter(fits_none).collect()
    }

    /// The limit of a figure: the narrowest name that fits it, of two alike the last one.
    pub fn of(&self, figure: &str) -> Limit {
        let fitting = self.named.iter().filter_map(|(name, limit)| Some((fit(name, figure)?, *limit)));
        fitting.max_by_key(|(narrow, _)| *narrow).map_or(self.of_all, |(_, limit)| limit)
    }
}

/// Returns the number of further events that a limit allows.
pub(crate) fn allowed(limit: Limit, old: f64) -> f64 {
    match limit {
        Limit::Share(share) => share * old.max(FEW),
        Limit::Count(count) => count as f64,
    }
}

fn limit(text: &str) -> Result<Limit, LimitError> {
    let text = text.trim();
    let none = || LimitError::NoLimit(text.to_owned());
    let Some(percent) = text.strip_suffix('%') else { return text.parse().map(Limit::Count).map_err(|_| none()) };
    let share = percent.trim().parse::<f64>().map_err(|_| none())? / 100.0;
    if (0.0..=100.0).contains(&share) { Ok(Limit::Share(share)) } else { Err(none()) }
}

fn is_figure(name: &str) -> bool {
    let of_a_mode = |what: &str| OF_A_MODE.contains(&what) || what == MISSES || level(what).is_some_and(|it| it < 4);
    let (mode, what) = taken_apart(name);
    let whole = what.strip_prefix("syscalls.").is_some_and(|call| !call.is_empty()) || OF_ALL.contains(&what);
    MODES.contains(&name) || of_a_mode(what) || mode.is_none() && whole
}

/// Returns a rank of how narrowly a limit's name fits a figure.
fn fit(name: &str, figure: &str) -> Option<u8> {
    let ((mode, what), (its_mode, kind)) = (taken_apart(name), taken_apart(figure));
    if name == figure {
        return Some(9);
    }
    if its_mode.is_some_and(|mode| MODES[mode] == name) {
        return Some(1);
    }
    if mode.is_some() && mode != its_mode {
        return None;
    }
    let narrow = match what {
        what if what == kind => 6,
        MISSES if level(kind).is_some() => 2,
        "syscalls" if kind.starts_with("syscalls.") => 2,
        _ => return None,
    };
    Some(narrow + u8::from(mode.is_some()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn limits(texts: &[&str]) -> Limits {
        let mut limits = Limits::default();
        texts.iter().for_each(|text| limits.add(text).unwrap());
        limits
    }

    #[test]
    fn the_narrowest_name_decides() {
        let given = limits(&["3%", "misses=5%,kernel=10%", "user.l2 = 1%, l3=40, syscalls=0,syscalls.read=2"]);
        let of = |figure| given.of(figure).to_string();
        assert_eq!(of("user.instructions"), "3%");
        assert_eq!([of("user.l1"), of("user.l2"), of("user.l3")], ["5%", "1%", "40"]);
        assert_eq!([of("kernel.cycles"), of("kernel.l2"), of("kernel.l3")], ["10%", "5%", "40"]);
        assert_eq!([of("syscalls"), of("syscalls.write"), of("syscalls.read"), of("faults")], ["0", "0", "2", "3%"]);
        assert_eq!(limits(&["l1=1%", "l1=4%"]).of("user.l1").to_string(), "4%", "the last one");
        assert_eq!(limits(&[]).of("walks").to_string(), "2%");
    }

    #[test]
    fn a_text_that_is_no_limit_is_refused_by_name() {
        let error = |text: &str| Limits::default().add(text).unwrap_err();
        for text in ["", "much", "-1%", "0.02", "instructions=", "l1=1e9%", "2%,", "nan%"] {
            assert!(matches!(error(text), LimitError::NoLimit(_)), "{text}");
        }
        for text in ["1%,2%", "l1=1%, l1=2%"] {
            assert!(matches!(error(text), LimitError::Twice(_)), "{text}");
        }
        for text in ["speed=1%", "user.faults=1%", "l0=1%", "l5=1%", "syscalls.=0", "=2%", "user.kernel.l1=1%"] {
            assert!(matches!(error(text), LimitError::NoFigure(_)), "{text}");
        }
    }

    #[test]
    fn a_share_of_few_events_is_one_of_a_hundred() {
        assert_eq!([allowed(Limit::Share(0.02), 40.0), allowed(Limit::Share(0.02), 1000.0)], [2.0, 20.0]);
        assert_eq!([allowed(Limit::Share(0.0), 0.0), allowed(Limit::Count(7), 1e9)], [0.0, 7.0]);
    }

    #[test]
    fn a_limit_on_a_call_that_nobody_makes_is_named() {
        let figure = |name: &str| JudgedFigure {
            name: name.to_owned(),
            old: 1.0,
            new: 1.0,
            difference: 0.0,
            noise: 0.0,
            limit: Limit::Count(0),
            ruling: nearmiss_record::gate::Ruling::NoDifference,
            causes: Vec::new(),
        };
        let limits = limits(&["2%,syscalls.opennat=0,syscalls.read=0,user=1%"]);
        assert_eq!(limits.unused(&[figure("syscalls.read"), figure("user.l1")]), ["syscalls.opennat"]);
    }
}

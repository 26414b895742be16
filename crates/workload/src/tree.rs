//! A command's processes: its own, and all that descend from it, whoever has adopted them.

use std::collections::HashMap;
use std::fs;

/// Roots of a command's processes.
#[derive(Clone, Copy, Debug)]
pub struct Tree {
    /// The command's own process.
    main: libc::pid_t,
    /// Parent of the command's process, which adopts and reaps processes that lose their own parent; without one such
    /// processes are not found.
    keeper: Option<libc::pid_t>,
}

/// Facts on a process from `/proc/PID/stat`.
pub(crate) struct Stat {
    pub(crate) parent: libc::pid_t,
    /// Time on CPUs of the children that it waited for, and of theirs, in ticks.
    pub(crate) reaped_ticks: u64,
}

impl Stat {
    pub(crate) fn of(pid: libc::pid_t) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// The name may hold spaces and parentheses; what follows the last one counts from field 3.
    fn parse(text: &str) -> Option<Self> {
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
        let number = |field: usize| fields.get(field - 3).and_then(|text| text.parse::<u64>().ok());
        let parent = fields.get(1)?.parse().ok()?;
        Some(Stat { parent, reaped_ticks: number(16)?.saturating_add(number(17)?) })
    }
}

impl Tree {
    /// Makes the tree of a process that runs already; those of its descendants that lost their parents are not found.
    pub fn of(main: libc::pid_t) -> Self {
        Tree { main, keeper: None }
    }

    pub(crate) fn new(main: libc::pid_t, keeper: Option<libc::pid_t>) -> Self {
        Tree { main, keeper }
    }

    pub(crate) fn keeper(self) -> Option<libc::pid_t> {
        self.keeper
    }

    /// The processes that live now, parents first.
    pub fn processes(self) -> Vec<libc::pid_t> {
        let mut children: HashMap<libc::pid_t, Vec<libc::pid_t>> = HashMap::new();
        let listed = fs::read_dir("/proc").into_iter().flatten().flatten();
        for pid in listed.filter_map(|entry| entry.file_name().to_str()?.parse().ok()) {
            if let Some(stat) = Stat::of(pid) {
                children.entry(stat.parent).or_default().push(pid);
            }
        }
        let kept = self.keeper.map(|keeper| children.remove(&keeper).unwrap_or_default());
        let mut found = kept.unwrap_or_else(|| vec![self.main]);
        let mut next = 0;
        while let Some(pid) = found.get(next) {
            found.extend(children.remove(pid).unwrap_or_default());
            next += 1;
        }
        found
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_forge_the_fields_behind_it() {
        let stat = Stat::parse("7 (a) R 1 (b)) S 42 7 7 0 -1 0 1 2 3 4 500 600 70 80 20 0 1 0 5").unwrap();
        assert_eq!((stat.parent, stat.reaped_ticks), (42, 150));
        assert!(Stat::parse("7 (a").is_none());
    }
}

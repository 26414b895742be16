//! Whether the host's kernel killed a process for memory while a guest ran, as far as the kernel's counters show.

use std::fs;
use std::path::{Path, PathBuf};

/// The counters at one time.
pub(super) struct OomKills {
    machine: Counter,
    group: Option<Counter>,
}

struct Counter {
    file: PathBuf,
    kills: u64,
}

impl Counter {
    fn of(file: PathBuf) -> Self {
        let kills = kills_in(&file);
        Self { file, kills }
    }

    fn has_risen(&self) -> bool {
        kills_in(&self.file) > self.kills
    }
}

impl OomKills {
    pub(super) fn now() -> Self {
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        Self {
            machine: Counter::of("/proc/vmstat".into()),
            group: group_file(&groups, Path::new("/sys/fs/cgroup")).map(Counter::of),
        }
    }

    /// Returns the probable cause of the end of a program of ours that was killed by SIGKILL since then.
    pub(super) fn since(&self) -> Option<&'static str> {
        if self.group.as_ref().is_some_and(Counter::has_risen) {
            return Some(
                "the memory limit of the control group that nearmiss runs in was reached meanwhile, and the host's \
                 kernel killed a process of the group: give the guest less with --memory, or raise the limit",
            );
        }
        self.machine.has_risen().then_some(
            "the host's kernel killed a process for want of memory meanwhile, most likely this one: free some memory, \
             or give the guest less with --memory",
        )
    }
}

/// The file in which this process's control group counts its kills: version 2, or the memory controller of version 1.
fn group_file(groups: &str, mount: &Path) -> Option<PathBuf> {
    groups.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?.trim_start_matches('/'));
        match controllers {
            "" => Some(mount.join(path).join("memory.events")),
            _ if controllers.split(',').any(|name| name == "memory") => {
                Some(mount.join("memory").join(path).join("memory.oom_control"))
            }
            _ => None,
        }
        .filter(|file| file.is_file())
    })
}

/// The line `oom_kill N`, which all these files have; 0 where the kernel does not count.
fn kills_in(file: &Path) -> u64 {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_counter_that_rose_shows_which_memory_was_short() {
        let place = tempfile::tempdir().unwrap();
        let (machine, group) = (place.path().join("vmstat"), place.path().join("memory.events"));
        fs::write(&machine, "nr_free_pages 7\noom_kill 4\noom_kill_process 9\n").unwrap();
        fs::write(&group, "low 0\noom 3\noom_kill 2\noom_group_kill 0\n").unwrap();
        let kills = OomKills { machine: Counter::of(machine.clone()), group: Some(Counter::of(group.clone())) };
        assert_eq!(kills.since(), None);
        fs::write(&machine, "oom_kill 5\n").unwrap();
        assert!(kills.since().unwrap().contains("most likely this one"));
        fs::write(&group, "oom_kill 3\n").unwrap();
        assert!(kills.since().unwrap().contains("control group"));
    }

    #[test]
    fn the_control_group_of_either_version_is_found() {
        let place = tempfile::tempdir().unwrap();
        let second = place.path().join("user.slice/a/memory.events");
        let first = place.path().join("memory/b/memory.oom_control");
        for file in [&first, &second] {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "").unwrap();
        }
        let found = |groups| group_file(groups, place.path());
        assert_eq!(found("0::/user.slice/a\n"), Some(second));
        assert_eq!(found("11:cpu,cpuacct:/b\n3:memory:/b\n0::/\n"), Some(first));
        assert_eq!(found("0::/elsewhere\nnonsense\n"), None);
    }
}

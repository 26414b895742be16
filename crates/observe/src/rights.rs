//! Rights of this process, and what to type where it lacks some.

use std::fs;
use std::os::unix::fs::MetadataExt;

const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;
const CAP_BPF: u32 = 39;
/// The inode of the machine's first PID namespace (`PROC_PID_INIT_INO`).
const FIRST_PID_NAMESPACE: u64 = 0xeffffffc;

/// How far this process may look into the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rights {
    /// All rights that anybody has.
    Full,
    /// The capabilities are missing: an ordinary user, or a root from which they were taken.
    Capabilities,
    /// The capabilities hold in a user namespace alone: a container.
    UserNamespace,
    /// This process may look, but its process numbers are not the machine's: a privileged container.
    PidNamespace,
}

impl Rights {
    /// Returns the rights of this process, now.
    pub fn now() -> Rights {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let pid_namespace = fs::metadata("/proc/self/ns/pid").map_or(FIRST_PID_NAMESPACE, |m| m.ino());
        Rights::of(&read("/proc/self/status"), &read("/proc/self/uid_map"), pid_namespace)
    }

    fn of(status: &str, uid_map: &str, pid_namespace: u64) -> Rights {
        let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
        let mask = mask.and_then(|m| u64::from_str_radix(m.trim(), 16).ok()).unwrap_or(0);
        let has = |capability: u32| mask >> capability & 1 == 1;
        if !uid_map.is_empty() && uid_map.split_whitespace().collect::<Vec<_>>() != ["0", "0", "4294967295"] {
            Rights::UserNamespace
        } else if !(has(CAP_SYS_ADMIN) || has(CAP_BPF) && has(CAP_PERFMON)) {
            Rights::Capabilities
        } else if pid_namespace != FIRST_PID_NAMESPACE {
            Rights::PidNamespace
        } else {
            Rights::Full
        }
    }

    /// Returns what is missing, in a few words; empty where nothing is.
    pub fn missing(self) -> &'static str {
        match self {
            Rights::Full => "",
            Rights::Capabilities => "not allowed: it takes root, or CAP_BPF and CAP_PERFMON",
            Rights::UserNamespace => {
                "not allowed: this is a container (a user namespace), and its root has no rights over the kernel"
            }
            Rights::PidNamespace => {
                "this is a container (a PID namespace), with process numbers that are not the kernel's"
            }
        }
    }

    /// How to get it; empty where nothing is missing.
    pub fn to_enable(self) -> &'static str {
        match self {
            Rights::Full => "",
            Rights::Capabilities => "run as root, or: sudo setcap cap_bpf,cap_perfmon+ep $(command -v nearmiss)",
            Rights::UserNamespace => {
                "run nearmiss as root on the host: -p PID and --cgroup DIR reach into the container"
            }
            Rights::PidNamespace => {
                "run nearmiss on the host, or start the container with the host's PID namespace (--pid=host)"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: &str = "Name:\tx\nCapEff:\t000001ffffffffff\n";
    const MACHINE: &str = "         0          0 4294967295\n";

    #[test]
    fn each_thing_taken_away_is_named() {
        assert_eq!(Rights::of(ROOT, MACHINE, FIRST_PID_NAMESPACE), Rights::Full);
        assert_eq!(Rights::of("CapEff:\t0000000000000000\n", MACHINE, FIRST_PID_NAMESPACE), Rights::Capabilities);
        assert_eq!(Rights::of("CapEff:\t0000004000000000\n", MACHINE, FIRST_PID_NAMESPACE), Rights::Capabilities);
        assert_eq!(Rights::of("CapEff:\t000000c000000000\n", MACHINE, FIRST_PID_NAMESPACE), Rights::Full);
        assert_eq!(Rights::of(ROOT, "0 1000 1\n", FIRST_PID_NAMESPACE), Rights::UserNamespace);
        assert_eq!(Rights::of(ROOT, MACHINE, 4026532000), Rights::PidNamespace);
        assert_eq!(Rights::of("", "", FIRST_PID_NAMESPACE), Rights::Capabilities, "no /proc: nothing is promised");
    }
}

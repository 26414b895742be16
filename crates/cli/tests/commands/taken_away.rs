//! `nearmiss doctor` and `nearmiss observe` where BPF, types, `/sys`, root or the machine's own namespaces are taken
//! away: each prints in one line what is missing and what to type, gives what there is, and ends.

#![allow(clippy::unwrap_used)]

use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

const NEARMISS: &str = env!("CARGO_BIN_EXE_nearmiss");
const KERNEL_INSTRUMENTS: [&str; 4] =
    ["lock waits (--locks)", "polls (--polls)", "block I/O (--io)", "scheduler (--sched)"];

/// A copy of nearmiss that anybody may run, in a directory that anybody may write.
struct Taken {
    directory: tempfile::TempDir,
    prefix: Vec<&'static str>,
}

impl Taken {
    /// `prefix`: what takes something away and then runs its arguments; `None`, and a line, where it cannot.
    fn by(prefix: &[&'static str]) -> Option<Taken> {
        let skipped = |why: &str| println!("skipped: {}: {why}", prefix.join(" "));
        if !rustix::process::geteuid().is_root() {
            skipped("only root can take things away");
            return None;
        }
        let tried = Command::new(prefix[0]).args(&prefix[1..]).arg("true").output();
        match tried {
            Ok(out) if out.status.success() => {}
            Ok(out) => {
                skipped(String::from_utf8_lossy(&out.stderr).trim());
                return None;
            }
            Err(e) => {
                skipped(&e.to_string());
                return None;
            }
        }
        let directory = tempfile::tempdir().unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(directory.path(), mode).unwrap();
        std::fs::copy(NEARMISS, directory.path().join("nearmiss")).unwrap();
        Some(Taken { directory, prefix: prefix.to_vec() })
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let program: PathBuf = self.directory.path().join("nearmiss");
        let started = Instant::now();
        let out = Command::new(self.prefix[0])
            .args(&self.prefix[1..])
            .arg(program)
            .args(arguments)
            .current_dir(self.directory.path())
            .output()
            .unwrap();
        assert!(started.elapsed() < Duration::from_secs(60), "{} hangs", self.prefix.join(" "));
        out
    }

    fn doctor(&self) -> Value {
        let out = self.run(&["doctor", "--quick", "--json"]);
        assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stderr));
        serde_json::from_slice(&out.stdout).unwrap()
    }

    /// Returns the messages of a run of `true`.
    fn observe(&self) -> String {
        let out = self.run(&["observe", "--", "sh", "-c", "for i in 1 2 3 4 5 6 7 8; do true | true; done"]);
        let text = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(0), "{text}");
        text
    }
}

fn row<'a>(doctor: &'a Value, name: &str) -> &'a Value {
    let rows = doctor["rows"].as_array().unwrap();
    rows.iter().find(|r| r["name"] == name).unwrap_or_else(|| panic!("no row {name}"))
}

/// All kernel instruments are missing, for this reason, with this to type.
fn no_kernel_instruments(doctor: &Value, found: &str, todo: &str) {
    for name in KERNEL_INSTRUMENTS {
        let row = row(doctor, name);
        assert_eq!(row["state"], "missing", "{row}");
        assert!(row["found"].as_str().unwrap().contains(found), "{row}");
        assert!(row["todo"].as_str().unwrap().contains(todo), "{row}");
    }
}

/// One line of the report for all four.
fn is_printed_once(text: &str, expected: &str) {
    let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(joined.contains(&format!("no locks, polls, io, sched: {expected}")), "no `{expected}` in {text}");
    assert!(joined.contains("Where time goes"), "{text}");
}

#[test]
fn root_without_its_capabilities() {
    let Some(taken) = Taken::by(&["setpriv", "--inh-caps=-all", "--bounding-set=-bpf,-perfmon,-sys_admin"]) else {
        return;
    };
    no_kernel_instruments(&taken.doctor(), "CAP_BPF and CAP_PERFMON", "setcap cap_bpf,cap_perfmon+ep");
    is_printed_once(&taken.observe(), "not allowed: it takes root, or CAP_BPF and CAP_PERFMON; run as root");
}

#[test]
fn an_ordinary_user() {
    let nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--bounding-set=-all"];
    let Some(taken) = Taken::by(&nobody) else { return };
    let doctor = taken.doctor();
    no_kernel_instruments(&doctor, "CAP_BPF and CAP_PERFMON", "run as root");
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    let clock = row(&doctor, "clock profile (--clock)");
    match paranoid.trim().parse::<i32>() {
        Ok(0..=1) => assert_eq!(clock["found"], "own processes only, kernel included"),
        Ok(2) => {
            assert_eq!(clock["state"], "limited");
            assert_eq!(clock["found"], "own processes only, without kernel code");
            assert_eq!(clock["todo"], "sysctl kernel.perf_event_paranoid=1, or run as root");
            is_printed_once(&taken.observe(), "not allowed");
        }
        Ok(3..) => assert_eq!(clock["state"], "missing"),
        _ => {}
    }
}

#[test]
fn an_ordinary_user_with_two_capabilities_has_it_all() {
    let caps = "--inh-caps=-all,+bpf,+perfmon";
    let bounds = "--bounding-set=-all,+bpf,+perfmon";
    let ambient = "--ambient-caps=-all,+bpf,+perfmon";
    let prefix = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", bounds, caps, ambient];
    let Some(taken) = Taken::by(&prefix) else { return };
    if nearmiss_observe::bpf::usable().is_err() {
        println!("skipped: there is no BPF here to be lent");
        return;
    }
    let doctor = taken.doctor();
    for name in KERNEL_INSTRUMENTS {
        assert_ne!(row(&doctor, name)["state"], "missing", "{}", row(&doctor, name));
    }
    assert!(!taken.observe().contains("no locks"));
}

#[test]
fn a_container_of_an_ordinary_user() {
    let Some(taken) = Taken::by(&["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]) else {
        return;
    };
    no_kernel_instruments(&taken.doctor(), "a user namespace", "as root on the host");
    is_printed_once(&taken.observe(), "not allowed: this is a container (a user namespace)");
}

#[test]
fn a_privileged_container() {
    let Some(taken) = Taken::by(&["unshare", "--pid", "--fork", "--mount-proc"]) else { return };
    no_kernel_instruments(&taken.doctor(), "a PID namespace", "--pid=host");
    is_printed_once(&taken.observe(), "this is a container (a PID namespace)");
}

#[test]
fn a_kernel_without_type_information() {
    let hide = "mount --bind /dev/null /sys/kernel/btf/vmlinux && exec \"$@\"";
    let Some(taken) = Taken::by(&["unshare", "--mount", "sh", "-c", hide, "sh"]) else { return };
    no_kernel_instruments(&taken.doctor(), "no type information", "CONFIG_DEBUG_INFO_BTF");
    is_printed_once(&taken.observe(), "no type information of the kernel");
}

#[test]
fn no_sys_at_all() {
    let hide = "mount -t tmpfs none /sys && exec \"$@\"";
    let Some(taken) = Taken::by(&["unshare", "--mount", "sh", "-c", hide, "sh"]) else { return };
    no_kernel_instruments(&taken.doctor(), "no type information", "CONFIG_DEBUG_INFO_BTF");
    let text = taken.observe();
    is_printed_once(&text, "no type information of the kernel");
    assert!(text.contains("samples at 499 Hz"), "{text}");
}

#[test]
fn no_trace_file_system() {
    let hide = "umount -l /sys/kernel/tracing /sys/kernel/debug 2>/dev/null; exec \"$@\"";
    let Some(taken) = Taken::by(&["unshare", "--mount", "sh", "-c", hide, "sh"]) else { return };
    if nearmiss_observe::bpf::usable().is_err() {
        println!("skipped: no BPF here");
        return;
    }
    let doctor = taken.doctor();
    for name in KERNEL_INSTRUMENTS {
        assert_ne!(row(&doctor, name)["state"], "missing", "{}", row(&doctor, name));
    }
}

#[test]
fn a_performance_monitoring_unit_is_promised_only_where_it_counts() {
    let out = Command::new(NEARMISS).args(["doctor", "--quick", "--json"]).output().unwrap();
    let doctor: Value = serde_json::from_slice(&out.stdout).unwrap();
    let misses = row(&doctor, "miss profile (--misses)");
    if nearmiss_observe::perf::has_pmu() {
        assert_eq!(misses["state"], "works");
    } else {
        assert_eq!(misses["state"], "missing");
        assert!(misses["found"].as_str().unwrap().contains("performance-monitoring unit"), "{misses}");
        assert!(misses["todo"].as_str().unwrap().contains("nearmiss trace -- CMD"), "{misses}");
        let only = Command::new(NEARMISS).args(["observe", "--misses", "--", "true"]).output().unwrap();
        let text = String::from_utf8_lossy(&only.stderr);
        assert_eq!(only.status.code(), Some(125), "{text}");
        assert_eq!(text.trim_end().lines().count(), 1, "{text}");
        assert!(text.contains("performance-monitoring unit"), "{text}");
    }
}

#[test]
fn a_user_who_may_not_count_the_kernel_counts_user_mode() {
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    if paranoid.trim() != "2" {
        println!("skipped: kernel.perf_event_paranoid is {} here, and the test is about 2", paranoid.trim());
        return;
    }
    let Some(taken) = Taken::by(&["setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups"]) else {
        return;
    };
    let out = taken.run(&["verify", "commands", "--pairs", "8", "--count", "page-faults", "true", "true"]);
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(text.contains("page-faults:u: "), "{text}{}", String::from_utf8_lossy(&out.stderr));
}

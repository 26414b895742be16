//! Parts of a process that cannot be restored in the guest, found before anything is stopped.

use crate::process::Process;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// An obstacle, and the way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// A kernel's thread, or a process that has ended.
    NoProgram,
    /// A debugger or another tracer.
    Traced(i32),
    /// This nearmiss is the process, or among its descendants.
    Ours,
    /// The process is the first one of its PID namespace.
    First,
    /// Namespaces that are not those of nearmiss.
    Namespaces(Vec<&'static str>),
    /// The process is another user's, and nearmiss may not read its limits.
    Limits,
    /// The process holds a device.
    Device(String),
    /// The process holds something of the kernel that has no state to copy.
    Kernel(&'static str),
}

impl std::fmt::Display for Obstacle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Obstacle::NoProgram => f.write_str("has no memory of its own: it is a thread of the kernel, or has ended"),
            Obstacle::Traced(by) => {
                write!(f, "is traced by process {by}, a debugger perhaps: let that one detach first")
            }
            Obstacle::Ours => f.write_str("is an ancestor of this nearmiss: start nearmiss from elsewhere"),
            Obstacle::First => f.write_str(
                "has the number 1, which only the first process of a PID namespace can have: start the container with an \
                 init ahead of it, as `docker run --init` does",
            ),
            Obstacle::Namespaces(kinds) => write!(
                f,
                "has namespaces of its own ({}), as containers and services have: run nearmiss inside the container, or \
                 trace the command itself with `-- CMD`",
                kinds.join(", ")
            ),
            Obstacle::Limits => f.write_str(
                "is another user's, and its limits cannot be read without CAP_SYS_RESOURCE, which this container does not \
                 give: start the container with --cap-add SYS_RESOURCE, or run nearmiss on the host",
            ),
            Obstacle::Device(path) => write!(
                f,
                "uses the device {path}, with state outside its memory: trace the command itself with `-- CMD`, \
                 without the device"
            ),
            Obstacle::Kernel(what) => {
                write!(
                    f,
                    "uses {what}, which cannot be restored: switch that off in the program, or trace it with `-- CMD`"
                )
            }
        }
    }
}

/// The first thing that stands in the way of a process, if there is one.
pub fn obstacles(process: &Process) -> Option<Obstacle> {
    if fs::read_link(process.file("exe")).is_err() {
        return Some(Obstacle::NoProgram);
    }
    if process.pid == 1 {
        return Some(Obstacle::First);
    }
    if process.tracer != 0 {
        return Some(Obstacle::Traced(process.tracer));
    }
    namespaces(process)
        .or_else(|| limits(process))
        .or_else(|| process.descriptors().iter().find_map(|(_, target)| of_file(target)))
        .or_else(|| mapped(process))
}

fn namespaces(process: &Process) -> Option<Obstacle> {
    const KINDS: [&str; 7] = ["mnt", "pid", "net", "ipc", "uts", "user", "time"];
    let of = |base: &Path, kind: &str| fs::read_link(base.join(kind)).ok();
    let (theirs, ours) = (process.file("ns"), Path::new("/proc/self/ns"));
    let other: Vec<&str> = KINDS.into_iter().filter(|kind| of(&theirs, kind) != of(ours, kind)).collect();
    (!other.is_empty()).then_some(Obstacle::Namespaces(other))
}

/// An obstacle where CRIU may not read the limits of another user's process, as `prlimit` requires.
fn limits(process: &Process) -> Option<Obstacle> {
    const SYS_RESOURCE: u32 = 24;
    let owner = |path: &Path| fs::metadata(path).map(|found| found.uid()).ok();
    if owner(&process.file("")) == owner(Path::new("/proc/self")) {
        return None;
    }
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let held = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    let held = u64::from_str_radix(held.trim(), 16).ok()?;
    (held >> SYS_RESOURCE & 1 == 0).then_some(Obstacle::Limits)
}

fn mapped(process: &Process) -> Option<Obstacle> {
    let maps = fs::read_to_string(process.file("maps")).unwrap_or_default();
    let files = maps.lines().filter_map(|line| line.find('/').map(|at| &line[at..]));
    files.filter(|path| path.starts_with("/dev/")).find_map(|path| of_file(Path::new(path)))
}

/// An open or mapped file, if it cannot be restored.
fn of_file(target: &Path) -> Option<Obstacle> {
    const KERNELS: [(&str, &str); 7] = [
        ("anon_inode:[io_uring]", "io_uring"),
        ("anon_inode:[userfaultfd]", "userfaultfd"),
        ("anon_inode:[perf_event]", "performance events"),
        ("anon_inode:[fanotify]", "fanotify"),
        ("anon_inode:bpf", "BPF"),
        ("anon_inode:[bpf", "BPF"),
        ("anon_inode:kvm", "KVM"),
    ];
    const FINE: [&str; 10] = ["null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts/", "shm/", "hugepages/"];
    let text = target.to_string_lossy();
    if let Some((_, what)) = KERNELS.iter().find(|(start, _)| text.starts_with(start)) {
        return Some(Obstacle::Kernel(what));
    }
    // Memory that processes share without a file is mapped as a deleted one of `/dev/zero`.
    let device = text.strip_prefix("/dev/")?;
    let device = device.strip_suffix(" (deleted)").unwrap_or(device);
    let fine = FINE.iter().any(|fine| device == *fine || fine.ends_with('/') && device.starts_with(fine));
    (!fine).then(|| Obstacle::Device(text.into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_and_kernel_objects_are_named() {
        let of = |path: &str| of_file(Path::new(path));
        assert_eq!(of("/dev/null").or(of("/dev/pts/3")).or(of("/dev/shm/x")).or(of("/home/dev/x")), None);
        assert_eq!(of("/dev/zero (deleted)"), None);
        assert_eq!(of("/dev/nvidia0"), Some(Obstacle::Device("/dev/nvidia0".into())));
        assert_eq!(of("/dev/zero2"), Some(Obstacle::Device("/dev/zero2".into())));
        assert_eq!(of("anon_inode:[io_uring]"), Some(Obstacle::Kernel("io_uring")));
        assert_eq!(of("anon_inode:[eventpoll]"), None);
    }
}

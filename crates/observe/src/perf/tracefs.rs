//! Tracepoints by name. An unattached mount of a trace file system serves where none is mounted: it is nowhere in the
//! tree of files, and gone with this process.

use super::cpus::online_cpus;
use perf_event_open_sys::{bindings as sys, ioctls};
use rustix::fs::{Mode, OFlags, openat};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::OnceLock;

/// The kernel's number of a tracepoint; `None` where there is none of that name, or the trace file system is out of
/// reach.
pub fn point_id(system: &str, point: &str) -> Option<u64> {
    let path = format!("events/{system}/{point}/id");
    let mounted = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
    let text = mounted.iter().find_map(|root| fs::read_to_string(format!("{root}/{path}")).ok());
    text.or_else(|| read_unattached(&path))?.trim().parse().ok()
}

fn read_unattached(path: &str) -> Option<String> {
    static TRACEFS: OnceLock<Option<OwnedFd>> = OnceLock::new();
    let root = TRACEFS.get_or_init(|| mount().ok()).as_ref()?;
    let file = openat(root, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut text = String::new();
    File::from(file).read_to_string(&mut text).ok()?;
    Some(text)
}

fn mount() -> rustix::io::Result<OwnedFd> {
    let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::MOUNT_ATTR_RDONLY)
}

/// Runs a BPF program of the tracepoint kind at a tracepoint, on all CPUs, for as long as the descriptor is open.
pub fn attach_to_point(system: &str, point: &str, program: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let id = point_id(system, point).ok_or_else(|| io::Error::other("no such tracepoint"))?;
    let mut attr = sys::perf_event_attr::default();
    attr.type_ = sys::PERF_TYPE_TRACEPOINT;
    attr.size = size_of::<sys::perf_event_attr>() as u32;
    attr.config = id;
    // One CPU's event is enough: the program belongs to the tracepoint.
    let cpu = online_cpus().first().map_or(0, |cpu| *cpu as i32);
    // SAFETY: the attribute is fully initialised and the kernel only reads it (and writes its size on E2BIG).
    let fd = unsafe { perf_event_open_sys::perf_event_open(&mut attr, -1, cpu, -1, sys::PERF_FLAG_FD_CLOEXEC.into()) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a fresh descriptor that nobody else owns.
    let event = unsafe { OwnedFd::from_raw_fd(fd) };
    // SAFETY: an open perf event and an open BPF program.
    if unsafe { ioctls::SET_BPF(event.as_raw_fd(), program.as_raw_fd() as u32) } < 0
        // SAFETY: an open perf event.
        || unsafe { ioctls::ENABLE(event.as_raw_fd(), 0) } < 0
    {
        return Err(io::Error::last_os_error());
    }
    Ok(event)
}

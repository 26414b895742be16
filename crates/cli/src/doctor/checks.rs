//! The rows of `doctor`, in the order in which a user meets what they are about.

use super::probe::Probe;
use super::{Row, State};

/// Where distributions put the server of the host's files.
const FILE_SERVERS: [&str; 3] = ["/usr/lib/qemu/virtiofsd", "/usr/libexec/virtiofsd", "/usr/libexec/qemu/virtiofsd"];
/// The guest takes half of what is free; a smaller guest has no room for the overlay.
const LEAST_FREE_MIB: u64 = 1024;
const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;
const CAP_BPF: u32 = 39;

/// Everything that is looked at.
pub fn rows(probe: &dyn Probe) -> Vec<Row> {
    vec![
        isa(probe),
        emulator(probe),
        plugin(probe),
        file_server(probe),
        kernel(probe),
        privilege(probe),
        memory(probe),
        Row {
            verb: "trace",
            name: "KVM",
            state: State::NotNeeded,
            found: "the tap translates every instruction itself".into(),
            todo: String::new(),
        },
        caches(probe),
        counters(probe),
        samples(probe),
        bpf(probe),
        lock_events(probe),
    ]
}

fn row(verb: &'static str, name: &'static str, state: State, found: impl Into<String>, todo: impl Into<String>) -> Row {
    Row { verb, name, state, found: found.into(), todo: todo.into() }
}

fn isa(probe: &dyn Probe) -> Row {
    match probe.isa() {
        "x86_64" => row("trace", "instruction set", State::Works, "x86_64", ""),
        other => row(
            "trace",
            "instruction set",
            State::Missing,
            format!("{other}: the guest is x86_64 and runs this machine's programs"),
            "trace on an x86_64 machine; a run can be reported anywhere",
        ),
    }
}

fn emulator(probe: &dyn Probe) -> Row {
    match probe.emulator() {
        Ok(found) => row("trace", "emulator", State::Works, found, ""),
        Err(why) => row("trace", "emulator", State::Missing, why, "apt-get install qemu-system-x86"),
    }
}

fn plugin(probe: &dyn Probe) -> Row {
    if probe.plugin() {
        row("trace", "plugin", State::Works, "built into this binary", "")
    } else {
        row("trace", "plugin", State::Missing, "this binary was built without native/tap", "make build")
    }
}

fn file_server(probe: &dyn Probe) -> Row {
    match FILE_SERVERS.into_iter().find(|path| probe.exists(path)) {
        Some(path) => row("trace", "file server", State::Works, path, ""),
        None => row(
            "trace",
            "file server",
            State::Missing,
            "no virtiofsd",
            "apt-get install qemu-system-common (Debian 12) or virtiofsd (later)",
        ),
    }
}

fn kernel(probe: &dyn Probe) -> Row {
    match probe.kernel() {
        Ok(release) => row("trace", "guest kernel", State::Works, release, ""),
        Err(why) => row("trace", "guest kernel", State::Missing, why, "scripts/setup-kernel.sh"),
    }
}

fn privilege(probe: &dyn Probe) -> Row {
    const NAME: &str = "privilege";
    if probe.root() {
        return row("trace", NAME, State::Works, "root", "");
    }
    let off = |path: &str, value: &str| probe.read(path).is_some_and(|v| v == value);
    if off("/proc/sys/kernel/unprivileged_userns_clone", "0") {
        let todo = "sysctl kernel.unprivileged_userns_clone=1, or run as root";
        return row("trace", NAME, State::Missing, "user namespaces are for root only", todo);
    }
    if off("/proc/sys/user/max_user_namespaces", "0") {
        let todo = "sysctl user.max_user_namespaces=10000, or run as root";
        return row("trace", NAME, State::Missing, "user namespaces are switched off", todo);
    }
    if off("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1") {
        let todo = "sysctl kernel.apparmor_restrict_unprivileged_userns=0, or run as root";
        return row("trace", NAME, State::Missing, "AppArmor restricts user namespaces", todo);
    }
    row("trace", NAME, State::Works, "an ordinary user, in a user namespace", "")
}

fn memory(probe: &dyn Probe) -> Row {
    let free_mib = probe.read("/proc/meminfo").and_then(|text| {
        let line = text.lines().find_map(|l| l.strip_prefix("MemAvailable:").map(str::to_owned))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib / 1024)
    });
    match free_mib {
        None => row("trace", "memory", State::Limited, "unknown: no MemAvailable in /proc/meminfo", "give --memory"),
        Some(mib) if mib < LEAST_FREE_MIB => row(
            "trace",
            "memory",
            State::Limited,
            format!("{mib} MiB free; the guest gets half, which is little"),
            format!("free memory until {LEAST_FREE_MIB} MiB are available"),
        ),
        Some(mib) => row("trace", "memory", State::Works, format!("{mib} MiB free; the guest gets half"), ""),
    }
}

fn caches(probe: &dyn Probe) -> Row {
    match probe.caches() {
        Ok(found) => row("model", "this machine's caches", State::Works, found, ""),
        Err(why) => row("model", "this machine's caches", State::Limited, why, "name a machine: trace -m zen4-genoa"),
    }
}

/// Has root's rights or one of these capabilities.
fn may(probe: &dyn Probe, capabilities: &[u32]) -> bool {
    let effective = probe.read("/proc/self/status").and_then(|status| {
        let mask = status.lines().find_map(|l| l.strip_prefix("CapEff:").map(str::trim).map(str::to_owned))?;
        u64::from_str_radix(&mask, 16).ok()
    });
    effective.is_some_and(|mask| capabilities.iter().any(|&c| mask >> c & 1 == 1))
}

fn counters(probe: &dyn Probe) -> Row {
    let devices = ["cpu", "cpu_core", "armv8_pmuv3_0"];
    match devices.into_iter().find(|d| probe.exists(&format!("/sys/bus/event_source/devices/{d}"))) {
        Some(device) => row("observe", "hardware counters", State::Works, format!("PMU `{device}`"), ""),
        None => row(
            "observe",
            "hardware counters",
            State::Missing,
            "no PMU: a virtual machine whose host gives none",
            "hardware counters: on a virtual machine ask for its PMU; nearmiss trace needs none",
        ),
    }
}

fn samples(probe: &dyn Probe) -> Row {
    let Some(text) = probe.read("/proc/sys/kernel/perf_event_paranoid") else {
        return row(
            "observe",
            "sampling",
            State::Missing,
            "the kernel has no perf events",
            "boot a kernel with CONFIG_PERF_EVENTS",
        );
    };
    let level: i32 = text.parse().unwrap_or(2);
    if may(probe, &[CAP_SYS_ADMIN, CAP_PERFMON]) || level < 1 {
        return row(
            "observe",
            "sampling",
            State::Works,
            format!("of user and kernel (perf_event_paranoid {level})"),
            "",
        );
    }
    let todo = "kernel samples: sysctl kernel.perf_event_paranoid=0, or run as root";
    match level {
        1 => row("observe", "sampling", State::Works, "of own processes, user and kernel (perf_event_paranoid 1)", ""),
        2 => {
            row("observe", "sampling", State::Limited, "of own processes, user mode only (perf_event_paranoid 2)", todo)
        }
        _ => row("observe", "sampling", State::Missing, format!("forbidden (perf_event_paranoid {level})"), todo),
    }
}

fn bpf(probe: &dyn Probe) -> Row {
    const NAME: &str = "BPF";
    if !probe.exists("/sys/kernel/btf/vmlinux") {
        let todo = "boot a kernel with CONFIG_DEBUG_INFO_BTF (Debian's have it)";
        return row("observe", NAME, State::Missing, "the kernel tells no types (BTF)", todo);
    }
    if may(probe, &[CAP_SYS_ADMIN, CAP_BPF]) {
        row("observe", NAME, State::Works, "with the kernel's types (BTF)", "")
    } else {
        row(
            "observe",
            NAME,
            State::Missing,
            "needs root or CAP_BPF and CAP_PERFMON",
            "locks, polls and block I/O: run as root",
        )
    }
}

fn lock_events(probe: &dyn Probe) -> Row {
    let places =
        ["/sys/kernel/tracing/events/lock/contention_begin", "/sys/kernel/debug/tracing/events/lock/contention_begin"];
    if places.into_iter().any(|p| probe.exists(p)) {
        return row("observe", "lock events", State::Works, "lock:contention_begin and _end", "");
    }
    if may(probe, &[CAP_SYS_ADMIN]) {
        let todo = "lock events: mount -t tracefs tracefs /sys/kernel/tracing (kernel 5.19 or later)";
        row("observe", "lock events", State::Missing, "no lock:contention_begin", todo)
    } else {
        row(
            "observe",
            "lock events",
            State::Missing,
            "not visible to this user",
            "locks, polls and block I/O: run as root",
        )
    }
}

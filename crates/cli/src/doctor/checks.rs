//! The rows of `doctor`, in the order in which a user needs their subjects.

use super::probe::{Emulator, Probe};
use super::{Row, State};

/// Paths of the server of the host's files in distributions.
const FILE_SERVERS: [&str; 3] = ["/usr/lib/qemu/virtiofsd", "/usr/libexec/virtiofsd", "/usr/libexec/qemu/virtiofsd"];
/// The guest takes half of what is free; a smaller guest has no room for the overlay.
const LEAST_FREE_MIB: u64 = 1024;

/// Everything that is looked at.
pub fn rows(probe: &dyn Probe) -> Vec<Row> {
    let mut rows = vec![
        isa(probe),
        emulator(probe),
        plugin(probe),
        file_server(probe),
        kernel(probe),
        privilege(probe),
        memory(probe),
    ];
    rows.extend(trial(probe, &rows));
    rows.extend([
        Row {
            verb: "trace",
            name: "KVM".into(),
            state: State::NotNeeded,
            found: "the tap translates every instruction itself".into(),
            todo: String::new(),
        },
        caches(probe),
        snapshots(probe),
    ]);
    rows.extend(instruments(probe));
    rows.extend(remedies(probe));
    rows
}

fn row(
    verb: &'static str,
    name: impl Into<String>,
    state: State,
    found: impl Into<String>,
    todo: impl Into<String>,
) -> Row {
    Row { verb, name: name.into(), state, found: found.into(), todo: todo.into() }
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
        Ok(Emulator { found, caution: None }) => row("trace", "emulator", State::Works, found, ""),
        Ok(Emulator { found, caution: Some(caution) }) => {
            let todo = "use a release that was tested: NEARMISS_QEMU=PATH names another emulator";
            row("trace", "emulator", State::Limited, format!("{found}: {caution}"), todo)
        }
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
        Err(why) => row("trace", "guest kernel", State::Missing, why, "nearmiss kernel --unpack"),
    }
}

/// Returns the row on the needs of `-p` besides a guest.
fn snapshots(probe: &dyn Probe) -> Row {
    const NAME: &str = "snapshots (CRIU)";
    const NEWER: &str = "scripts/setup-criu.sh";
    match probe.snapshots() {
        Err(why) => row("trace -p", NAME, State::Missing, why, NEWER),
        Ok((found, _)) if !probe.may_freeze() => {
            let todo = if probe.root() { "run outside of this container" } else { "run as root" };
            row("trace -p", NAME, State::Limited, format!("{found}: for root with all capabilities"), todo)
        }
        Ok((found, Some(limit))) => row("trace -p", NAME, State::Limited, format!("{found}: {limit}"), NEWER),
        Ok((found, None)) => row("trace -p", NAME, State::Works, found, ""),
    }
}

fn privilege(probe: &dyn Probe) -> Row {
    const NAME: &str = "privilege";
    if let Some((found, todo)) = no_namespaces(probe) {
        return row("trace", NAME, State::Missing, found, todo);
    }
    let found = if probe.root() { "root" } else { "an ordinary user, in a user namespace" };
    row("trace", NAME, State::Works, found, "")
}

/// Why there are no namespaces for a guest, and what to do.
fn no_namespaces(probe: &dyn Probe) -> Option<(&'static str, &'static str)> {
    let off = |path: &str, value: &str| !probe.root() && probe.read(path).is_some_and(|v| v == value);
    if off("/proc/sys/kernel/unprivileged_userns_clone", "0") {
        let todo = "sysctl kernel.unprivileged_userns_clone=1, or run as root";
        return Some(("user namespaces are for root only", todo));
    }
    if off("/proc/sys/user/max_user_namespaces", "0") {
        let todo = "sysctl user.max_user_namespaces=10000, or run as root";
        return Some(("user namespaces are switched off", todo));
    }
    if off("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1") {
        let todo = "sysctl kernel.apparmor_restrict_unprivileged_userns=0, or run as root";
        return Some(("AppArmor restricts user namespaces", todo));
    }
    if probe.namespaces() {
        return None;
    }
    if is_filtered(probe) {
        let todo = "start the container with --cap-add SYS_ADMIN, or trace on the host; docs/containers.md has more";
        return Some(("a seccomp filter, as containers have one, forbids namespaces", todo));
    }
    Some(("the kernel refuses namespaces", "run as root on the host"))
}

/// Whether a filter restricts the system calls of this process.
fn is_filtered(probe: &dyn Probe) -> bool {
    let status = probe.read("/proc/self/status").unwrap_or_default();
    status.lines().filter_map(|line| line.strip_prefix("Seccomp:")).any(|mode| mode.trim() == "2")
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

/// A guest is tried where nothing that it needs is missing.
fn trial(probe: &dyn Probe, parts: &[Row]) -> Option<Row> {
    if parts.iter().any(|row| row.state == State::Missing) {
        return None;
    }
    Some(match probe.trial()? {
        Ok(found) => row("trace", "a trace of `true`", State::Works, found, ""),
        Err(why) => {
            let todo = "repair what this line names, then try `nearmiss trace -- true`";
            row("trace", "a trace of `true`", State::Missing, why, todo)
        }
    })
}

fn caches(probe: &dyn Probe) -> Row {
    match probe.caches() {
        Ok(found) => row("model", "this machine's caches", State::Works, found, ""),
        Err(why) => row("model", "this machine's caches", State::Limited, why, "name a machine: trace -m zen4-genoa"),
    }
}

/// The instruments of `observe`, each tried.
fn instruments(probe: &dyn Probe) -> Vec<Row> {
    let rows = probe.instruments().into_iter().map(|c| {
        let state = match (c.works, c.why_not.is_empty()) {
            (true, true) => State::Works,
            (true, false) => State::Limited,
            (false, _) => State::Missing,
        };
        row("observe", c.what, state, if c.why_not.is_empty() { "tried".to_owned() } else { c.why_not }, c.what_to_type)
    });
    rows.collect()
}

/// Returns the rows on the needs of each remedy, tried.
fn remedies(probe: &dyn Probe) -> Vec<Row> {
    let rows = probe.remedies().into_iter().map(|(remedy, ability)| {
        let name = format!("{remedy} ({})", ability.name);
        match ability.state {
            Ok(found) => row("apply", name, State::Works, found, ""),
            Err(inability) => row("apply", name, State::Missing, inability.why, inability.todo),
        }
    });
    rows.collect()
}

//! Translates names of events, as `perf list` has them, to the kernel's numbers.

use super::PerfError;
use super::tracefs::point_id;
use perf_event_open_sys::bindings as sys;
use std::fs;
use std::path::Path;

/// Meaning of an event's samples in the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Time spent.
    Clock,
    /// Misses.
    Misses,
    /// The accesses that could have missed, for P1's ratio.
    References,
    /// Anything else the user named.
    Other,
}

impl Role {
    /// The word the record uses.
    pub fn word(self) -> &'static str {
        match self {
            Role::Clock => "clock",
            Role::Misses => "misses",
            Role::References => "references",
            Role::Other => "other",
        }
    }
}

/// How often to sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// So many samples a second on a busy CPU; the kernel adjusts the period.
    Frequency(u64),
    /// One sample for so many events.
    Period(u64),
}

/// An event to sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventSpec {
    /// Name, as in `perf list`.
    pub name: String,
    /// Meaning of its samples.
    pub role: Role,
    /// How often.
    pub rate: Rate,
    pub(crate) kind: u32,
    pub(crate) config: u64,
    pub(crate) config1: u64,
}

impl EventSpec {
    /// Whether it needs a performance-monitoring unit.
    pub fn needs_pmu(&self) -> bool {
        !matches!(self.kind, sys::PERF_TYPE_SOFTWARE | sys::PERF_TYPE_TRACEPOINT)
    }
}

const HARDWARE: [(&str, u32); 10] = [
    ("cycles", sys::PERF_COUNT_HW_CPU_CYCLES),
    ("cpu-cycles", sys::PERF_COUNT_HW_CPU_CYCLES),
    ("instructions", sys::PERF_COUNT_HW_INSTRUCTIONS),
    ("cache-references", sys::PERF_COUNT_HW_CACHE_REFERENCES),
    ("cache-misses", sys::PERF_COUNT_HW_CACHE_MISSES),
    ("branches", sys::PERF_COUNT_HW_BRANCH_INSTRUCTIONS),
    ("branch-misses", sys::PERF_COUNT_HW_BRANCH_MISSES),
    ("bus-cycles", sys::PERF_COUNT_HW_BUS_CYCLES),
    ("stalled-cycles-frontend", sys::PERF_COUNT_HW_STALLED_CYCLES_FRONTEND),
    ("stalled-cycles-backend", sys::PERF_COUNT_HW_STALLED_CYCLES_BACKEND),
];

const SOFTWARE: [(&str, u32); 11] = [
    ("cpu-clock", sys::PERF_COUNT_SW_CPU_CLOCK),
    ("task-clock", sys::PERF_COUNT_SW_TASK_CLOCK),
    ("page-faults", sys::PERF_COUNT_SW_PAGE_FAULTS),
    ("faults", sys::PERF_COUNT_SW_PAGE_FAULTS),
    ("minor-faults", sys::PERF_COUNT_SW_PAGE_FAULTS_MIN),
    ("major-faults", sys::PERF_COUNT_SW_PAGE_FAULTS_MAJ),
    ("context-switches", sys::PERF_COUNT_SW_CONTEXT_SWITCHES),
    ("cs", sys::PERF_COUNT_SW_CONTEXT_SWITCHES),
    ("cpu-migrations", sys::PERF_COUNT_SW_CPU_MIGRATIONS),
    ("alignment-faults", sys::PERF_COUNT_SW_ALIGNMENT_FAULTS),
    ("emulation-faults", sys::PERF_COUNT_SW_EMULATION_FAULTS),
];

const CACHES: [(&str, u64); 7] =
    [("L1-dcache", 0), ("L1-icache", 1), ("LLC", 2), ("dTLB", 3), ("iTLB", 4), ("branch", 5), ("node", 6)];

const CACHE_EVENTS: [(&str, u64); 6] = [
    ("-loads", 0),
    ("-load-misses", 0x1_0000),
    ("-stores", 0x100),
    ("-store-misses", 0x1_0100),
    ("-prefetches", 0x200),
    ("-prefetch-misses", 0x1_0200),
];

/// Finds an event by name: generic hardware and software events, `LLC-load-misses` and its like, `rNNN`, the names under
/// `/sys/bus/event_source/devices/cpu/events`, `PMU/name/` and `subsystem:tracepoint`.
pub fn event(name: &str, role: Role, rate: Rate) -> Result<EventSpec, PerfError> {
    let found = hardware_or_software(name)
        .or_else(|| cache_event(name))
        .or_else(|| raw_event(name))
        .or_else(|| tracepoint(name))
        .or_else(|| described(Path::new("/sys/bus/event_source/devices"), name));
    let (kind, config, config1) = found.ok_or_else(|| PerfError::UnknownEvent(name.to_owned()))?;
    Ok(EventSpec { name: name.to_owned(), role, rate, kind, config, config1 })
}

type Code = (u32, u64, u64);

fn hardware_or_software(name: &str) -> Option<Code> {
    let find = |table: &[(&str, u32)]| table.iter().find(|(n, _)| *n == name).map(|(_, c)| u64::from(*c));
    find(&HARDWARE)
        .map(|c| (sys::PERF_TYPE_HARDWARE, c, 0))
        .or_else(|| find(&SOFTWARE).map(|c| (sys::PERF_TYPE_SOFTWARE, c, 0)))
}

fn cache_event(name: &str) -> Option<Code> {
    CACHES.iter().find_map(|(cache, id)| {
        let rest = name.strip_prefix(cache)?;
        let (_, operation) = CACHE_EVENTS.iter().find(|(n, _)| *n == rest)?;
        Some((sys::PERF_TYPE_HW_CACHE, id | operation, 0))
    })
}

fn raw_event(name: &str) -> Option<Code> {
    let digits = name.strip_prefix('r')?;
    u64::from_str_radix(digits, 16).ok().map(|config| (sys::PERF_TYPE_RAW, config, 0))
}

fn tracepoint(name: &str) -> Option<Code> {
    let (system, point) = name.split_once(':')?;
    if [system, point].iter().any(|part| part.is_empty() || part.contains(['/', '.'])) {
        return None;
    }
    Some((sys::PERF_TYPE_TRACEPOINT, point_id(system, point)?, 0))
}

/// `name` of the CPU's own unit, or `unit/name/`, by the descriptions the kernel exports.
fn described(devices: &Path, name: &str) -> Option<Code> {
    let (unit, event) = match name.trim_end_matches('/').split_once('/') {
        Some(pair) => pair,
        None => ("cpu", name),
    };
    if event.is_empty() || unit.contains("..") || event.contains("..") {
        return None;
    }
    let unit = devices.join(unit);
    let kind = fs::read_to_string(unit.join("type")).ok()?.trim().parse().ok()?;
    let terms = fs::read_to_string(unit.join("events").join(event)).unwrap_or_else(|_| event.to_owned());
    let (mut config, mut config1) = (0, 0);
    for term in terms.trim().split(',') {
        let (key, value) = term.split_once('=').unwrap_or((term, "1"));
        let value = match value.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).ok()?,
            None => value.parse().ok()?,
        };
        let format = fs::read_to_string(unit.join("format").join(key)).ok()?;
        let (word, ranges) = format.trim().split_once(':')?;
        let field = match word {
            "config" => &mut config,
            "config1" => &mut config1,
            _ => return None,
        };
        *field |= spread(value, ranges)?;
    }
    Some((kind, config, config1))
}

/// Places a value's low bits at the bit ranges of a format such as `0-7,32-35`.
fn spread(mut value: u64, ranges: &str) -> Option<u64> {
    let mut out = 0;
    for range in ranges.split(',') {
        let (low, high) = range.split_once('-').unwrap_or((range, range));
        let (low, high): (u32, u32) = (low.parse().ok()?, high.parse().ok()?);
        let bits = high.checked_sub(low)? + 1;
        if high > 63 {
            return None;
        }
        let mask = u64::MAX >> (64 - bits);
        out |= (value & mask) << low;
        value = value.checked_shr(bits).unwrap_or(0);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(name: &str) -> Option<Code> {
        let e = event(name, Role::Other, Rate::Period(1)).ok()?;
        Some((e.kind, e.config, e.config1))
    }

    #[test]
    fn names_map_to_the_kernels_numbers() {
        assert_eq!(code("cycles"), Some((0, 0, 0)));
        assert_eq!(code("cache-misses"), Some((0, 3, 0)));
        assert_eq!(code("page-faults"), Some((1, 2, 0)));
        assert_eq!(code("LLC-load-misses"), Some((3, 0x1_0002, 0)));
        assert_eq!(code("L1-dcache-stores"), Some((3, 0x100, 0)));
        assert_eq!(code("r01c2"), Some((4, 0x1c2, 0)));
        assert_eq!(code("no-such-event"), None);
        assert_eq!(code("../../../etc/passwd"), None);
    }

    #[test]
    fn values_are_spread_over_their_bits() {
        assert_eq!(spread(0x64, "0-7,32-35"), Some(0x64));
        assert_eq!(spread(0x1c2, "0-7,32-35"), Some(0x1_0000_00c2));
        assert_eq!(spread(1, "23"), Some(1 << 23));
        assert_eq!(spread(1, "64"), None);
    }

    #[test]
    fn units_describe_their_events() {
        let root = tempfile::tempdir().unwrap();
        let unit = root.path().join("cpu");
        fs::create_dir_all(unit.join("events")).unwrap();
        fs::create_dir_all(unit.join("format")).unwrap();
        fs::write(unit.join("type"), "4\n").unwrap();
        fs::write(unit.join("events/l2-misses"), "event=0x164,umask=0x9\n").unwrap();
        fs::write(unit.join("format/event"), "config:0-7,32-35\n").unwrap();
        fs::write(unit.join("format/umask"), "config:8-15\n").unwrap();
        assert_eq!(described(root.path(), "l2-misses"), Some((4, 0x1_0000_0964, 0)));
        assert_eq!(described(root.path(), "cpu/event=0x64,umask=1/"), Some((4, 0x164, 0)));
        assert_eq!(described(root.path(), "cpu/nonsense/"), None);
    }
}

//! CPUs, caches and nodes as listed by sysfs.

use super::HostError;
use nearmiss_record::machine::CacheKind;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A machine, as listed by the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Processor's name.
    pub model: String,
    /// Processor's vendor as `/proc/cpuinfo` has it: `AuthenticAMD`; of an Arm core its implementer's number.
    pub vendor: String,
    /// Processor's family by its vendor's numbers.
    pub family: Option<u32>,
    /// Highest clock the kernel names, in MHz.
    pub clock_mhz: Option<u32>,
    /// CPUs of each core, by package: `packages[p][c]` are the hardware threads of a core.
    pub packages: Vec<Vec<Vec<u32>>>,
    /// CPUs of each memory node that has CPUs.
    pub nodes: Vec<Vec<u32>>,
    /// Caches of the first CPU.
    pub caches: Vec<FoundCache>,
    /// Some CPU has other caches than the first.
    pub caches_differ: bool,
}

/// A cache of one CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundCache {
    /// 1 is nearest.
    pub level: u8,
    /// Contents: data, instructions or both.
    pub kind: CacheKind,
    /// Capacity in bytes.
    pub size: u64,
    /// Lines a set, if listed.
    pub ways: Option<u32>,
    /// Line size in bytes.
    pub line: u64,
    /// CPUs that share this instance.
    pub cpus: Vec<u32>,
}

impl Found {
    /// All CPUs.
    pub fn cpus(&self) -> impl Iterator<Item = u32> {
        self.packages.iter().flatten().flatten().copied()
    }
}

/// Reads `ROOT/sys` and `ROOT/proc/cpuinfo`.
pub fn discover(root: &Path) -> Result<Found, HostError> {
    let system = root.join("sys/devices/system");
    let online = cpu_list(&system.join("cpu/online"))?;
    let Some(&first) = online.first() else {
        return Err(unexpected(&system.join("cpu/online"), "", "a list of CPUs"));
    };
    let mut packages: BTreeMap<u32, BTreeSet<Vec<u32>>> = BTreeMap::new();
    for &cpu in &online {
        let topology = system.join(format!("cpu/cpu{cpu}/topology"));
        let package: u32 = number(&topology.join("physical_package_id")).unwrap_or(0);
        let siblings = cpu_list(&topology.join("thread_siblings_list")).unwrap_or_else(|_| vec![cpu]);
        packages.entry(package).or_default().insert(siblings.into_iter().filter(|c| online.contains(c)).collect());
    }
    let caches = caches_of(&system, first)?;
    let shape = |caches: &[FoundCache]| -> Vec<_> {
        caches.iter().map(|c| (c.level, c.kind, c.size, c.ways, c.line, c.cpus.len())).collect()
    };
    let reference = shape(&caches);
    let mut caches_differ = false;
    for &cpu in &online {
        caches_differ |= shape(&caches_of(&system, cpu)?) != reference;
    }
    let cpuinfo = fs::read_to_string(root.join("proc/cpuinfo")).unwrap_or_default();
    let field = |name: &str| {
        cpuinfo
            .lines()
            .find_map(|l| l.split_once(':').filter(|(k, _)| k.trim() == name).map(|(_, v)| v.trim().to_owned()))
    };
    let max_khz = number::<u64>(&system.join(format!("cpu/cpu{first}/cpufreq/cpuinfo_max_freq"))).ok();
    let clock_mhz = max_khz
        .map(|khz| khz / 1000)
        .or_else(|| field("cpu MHz").and_then(|t| t.parse::<f64>().ok()).map(|mhz| mhz.round() as u64))
        .and_then(|mhz| u32::try_from(mhz).ok());
    Ok(Found {
        model: field("model name").or_else(|| field("CPU implementer")).unwrap_or_else(|| "unknown processor".into()),
        vendor: field("vendor_id").or_else(|| field("CPU implementer")).unwrap_or_default(),
        family: field("cpu family").and_then(|family| family.parse().ok()),
        clock_mhz,
        packages: packages.into_values().map(|cores| cores.into_iter().collect()).collect(),
        nodes: nodes(&system, &online)?,
        caches,
        caches_differ,
    })
}

/// CPUs by node; one node of all CPUs if the kernel lists no nodes. Nodes without CPUs (memory only) are left out.
fn nodes(system: &Path, online: &[u32]) -> Result<Vec<Vec<u32>>, HostError> {
    let Ok(numbers) = cpu_list(&system.join("node/online")) else {
        return Ok(vec![online.to_vec()]);
    };
    let mut nodes = Vec::new();
    for node in numbers {
        let mut cpus = cpu_list(&system.join(format!("node/node{node}/cpulist")))?;
        cpus.retain(|c| online.contains(c));
        if !cpus.is_empty() {
            nodes.push(cpus);
        }
    }
    if nodes.is_empty() {
        nodes.push(online.to_vec());
    }
    Ok(nodes)
}

fn caches_of(system: &Path, cpu: u32) -> Result<Vec<FoundCache>, HostError> {
    let directory = system.join(format!("cpu/cpu{cpu}/cache"));
    let mut caches = Vec::new();
    for index in 0.. {
        let at = directory.join(format!("index{index}"));
        if !at.is_dir() {
            break;
        }
        let kind_file = at.join("type");
        let kind = match text(&kind_file)?.as_str() {
            "Data" => CacheKind::Data,
            "Instruction" => CacheKind::Instruction,
            "Unified" => CacheKind::Unified,
            other => return Err(unexpected(&kind_file, other, "Data, Instruction or Unified")),
        };
        let size_file = at.join("size");
        let size_text = text(&size_file)?;
        let size = nearmiss_record::units::Bytes::parse(&size_text)
            .map_err(|_| unexpected(&size_file, &size_text, "a size such as 32K"))?;
        caches.push(FoundCache {
            level: number(&at.join("level"))?,
            kind,
            size: size.0,
            ways: number(&at.join("ways_of_associativity")).ok().filter(|&w| w > 0),
            line: number(&at.join("coherency_line_size")).unwrap_or(64),
            cpus: cpu_list(&at.join("shared_cpu_list")).unwrap_or_else(|_| vec![cpu]),
        });
    }
    if caches.is_empty() { Err(HostError::NoCaches(directory)) } else { Ok(caches) }
}

fn text(path: &Path) -> Result<String, HostError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(text.trim().to_owned()),
        Err(why) => Err(HostError::Unreadable { path: path.to_owned(), why }),
    }
}

fn unexpected(path: &Path, found: &str, expected: &'static str) -> HostError {
    HostError::Unexpected { path: PathBuf::from(path), found: found.to_owned(), expected }
}

fn number<T: std::str::FromStr>(path: &Path) -> Result<T, HostError> {
    let text = text(path)?;
    text.parse().map_err(|_| unexpected(path, &text, "a number"))
}

/// A kernel list: `0-3,8,10-11`. At most 4,096 CPUs are taken: a list is not trusted with memory.
fn cpu_list(path: &Path) -> Result<Vec<u32>, HostError> {
    let text = text(path)?;
    let wrong = || unexpected(path, &text, "a list such as 0-3,8");
    let mut cpus = Vec::new();
    for part in text.split(',').filter(|p| !p.is_empty()) {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        let low: u32 = low.parse().map_err(|_| wrong())?;
        let high: u32 = high.parse().map_err(|_| wrong())?;
        if high < low || high - low >= MAX_CPUS || cpus.len() >= MAX_CPUS as usize {
            return Err(wrong());
        }
        cpus.extend(low..=high);
    }
    Ok(cpus)
}

const MAX_CPUS: u32 = 4096;

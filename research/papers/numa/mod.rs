//! P4: *Linux Optimization for Commercial Workload on NUMA Machine* (2002). See `README.md` here.

pub mod chassis;
pub mod clock;
pub mod figures;
pub mod homes;
pub mod load;
pub mod memory;
mod pictures;
mod placed;
pub mod pools;
pub mod recorded;
pub mod replica;
pub mod tables;
pub mod tasks;

use crate::record::{PaperRecord, Parameter, SCHEMA};
use crate::{PaperError, PaperOptions};
use load::Load;
use nearmiss_record::words::grouped;
use recorded::Server;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Title and year.
pub const TITLE: &str = "Linux Optimization for Commercial Workload on NUMA Machine (2002)";

/// Placements that are added up.
pub const SEEDS: [u64; 2] = [1, 2];

/// Which kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// One pool of each kind of object; pages by node.
    Base,
    /// M: pools by node, caches by CPU.
    Pools,
    /// MP: also, processes are bound round robin.
    PoolsBound,
}

impl Kernel {
    /// All, in the order of their numbers.
    pub const ALL: [Kernel; 3] = [Kernel::Base, Kernel::Pools, Kernel::PoolsBound];

    /// Returns whether pools are by node.
    pub fn by_node(self) -> bool {
        self != Kernel::Base
    }

    /// Returns whether processes stay on their CPU.
    pub fn binds(self) -> bool {
        self == Kernel::PoolsBound
    }
}

/// WebBench.
pub const WEB: Load = Load {
    processes: 64,
    private_pages: 8,
    touches_first: false,
    lasting_pages: 8192,
    same_cpu_percent: 45,
    packet_instructions: 1400,
    pool_instructions: 260,
    received: 8,
    sent: 5,
    acknowledged: 5,
    packet_lines: 46,
    file_lines: 0,
    connections: 1,
    locked_instructions: 4000,
    locked_calls: 2,
    user_instructions: 18_000,
    user_lines: 150,
    kernel_instructions: 6_000,
    shared_lines: 1050,
    lasting_lines: 560,
    lately_lines: 220,
};

/// ServerBench.
pub const SERVER: Load = Load {
    processes: 16,
    private_pages: 64,
    touches_first: true,
    lasting_pages: 16384,
    same_cpu_percent: 45,
    packet_instructions: 1400,
    pool_instructions: 260,
    received: 3,
    sent: 2,
    acknowledged: 1,
    packet_lines: 46,
    file_lines: 512,
    connections: 0,
    locked_instructions: 4000,
    locked_calls: 1,
    user_instructions: 580_000,
    user_lines: 1100,
    kernel_instructions: 40_000,
    shared_lines: 60,
    lasting_lines: 450,
    lately_lines: 60,
};

/// Simulates and records the requested tables, and draws their pictures.
pub(crate) fn run(options: &PaperOptions<'_>) -> Result<PaperRecord, PaperError> {
    let wanted = options.wanted;
    let of_table = |name: &str, parts: usize| if wanted(name) { parts } else { 0 };
    let recorded = recorded::parts(options.scale);
    let parts = of_table("a", replica::PARTS)
        + of_table("b", replica::PARTS)
        + of_table("c", recorded)
        + of_table("d", recorded);
    let so_far = AtomicUsize::new(0);
    let done = || (options.progress)(so_far.fetch_add(1, Ordering::Relaxed) + 1, parts);
    let (mut tables, mut pictures) = (Vec::new(), Vec::new());
    if wanted("a") {
        let runs = replica::runs(WEB, &done)?;
        tables.push(tables::web(&runs, figures::WEB));
        pictures.extend(pictures::of("WebBench", [5, 8, 10, 12], &runs, figures::WEB));
    }
    if wanted("b") {
        let runs = replica::runs(SERVER, &done)?;
        tables.push(tables::server(&runs, figures::SERVER));
        pictures.extend(pictures::of("ServerBench", [6, 9, 11, 13], &runs, figures::SERVER));
    }
    for (name, server) in [("c", Server::Nginx), ("d", Server::Mixed)] {
        if wanted(name) {
            tables.push(recorded::table(options, server, &done)?);
        }
    }
    let is_simulated = wanted("a") || wanted("b");
    let parameters = if is_simulated { parameters() } else { Vec::new() };
    let (name, known) = ("numa", "modelled");
    Ok(PaperRecord { schema: SCHEMA, name, title: TITLE, known, parameters, tables, pictures, here: None })
}

fn parameters() -> Vec<Parameter> {
    let row = |name: &str, of: fn(&Load) -> u64, unit: &str, how: &str| Parameter {
        name: name.to_owned(),
        value: format!("{} and {}{unit}", grouped(of(&WEB)), grouped(of(&SERVER))),
        how: how.to_owned(),
    };
    vec![
        row(
            "instructions of the kernel beside what follows",
            |l| l.kernel_instructions,
            "",
            "fitted: overhead of the base kernel, WebBench, 43%",
        ),
        row("lines that all CPUs write, a request", |l| l.shared_lines, "", "fitted: r and l-m by M, WebBench, -15% each"),
        row(
            "memory of a packet is given back on the CPU that allocated it",
            |l| l.same_cpu_percent,
            "%",
            "fitted: r and l-m by M, WebBench, -15% each; else on any other CPU",
        ),
        row(
            "lines of its own that a process uses, a request",
            |l| l.user_lines,
            "",
            "fitted: overhead of the base kernel, ServerBench, 16%",
        ),
        row(
            "lines of memory that lasts, a request",
            |l| l.lasting_lines,
            "",
            "fitted: node locality of NUMA-MP, ServerBench, 75%",
        ),
        row("instructions of kmalloc and kfree under the lock", |l| l.pool_instructions, "", "fitted: overhead of M, WebBench, 28%; in a CPU's cache 100"),
        row("instructions of a packet beside its copy", |l| l.packet_instructions, "", "fitted: OS time saved by M, WebBench, 20%"),
        row("packets that come, a request", |l| l.received, "", "assumed: handshake, request, acknowledgements"),
        row("packets of data that go, a request", |l| l.sent, "", "assumed: files of some 7 KB; a reply of 3 KB"),
        row("packets without data that go, a request", |l| l.acknowledged, "", "assumed"),
        row("lines from files to the process, a request", |l| l.file_lines, "", "assumed: 16 KB"),
        row("instructions under the kernel lock, a call", |l| l.locked_instructions, "", "assumed"),
        row("instructions of the process, a request", |l| l.user_instructions, "", "fitted: overhead of the base kernel, ServerBench, 16%; little user time, and much"),
        row("pages of a process", |l| l.private_pages as u64, "", "assumed; ServerBench's are touched first by itself"),
        row("pages of memory that lasts", |l| l.lasting_pages as u64, "", "assumed: files, directories, inodes"),
        row("lines of pages that go round on a node, a request", |l| l.lately_lines, "", "assumed"),
        Parameter {
            name: "locks of the allocator".to_owned(),
            value: "one for all pools; under M one a node".to_owned(),
            how: "assumed".to_owned(),
        },
        Parameter {
            name: "what the bus and a lock add".to_owned(),
            value: "waits as M/D/1 at the load of the node's other CPUs; a lock comes with one line and a transaction a spinner"
                .to_owned(),
            how: "assumed; latencies and cycles a transaction are those of the machine file".to_owned(),
        },
    ]
}

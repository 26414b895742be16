//! Records of runs made by hand. Every table adds up because every event is entered into all of them.

pub mod chromium;
pub mod server;

use nearmiss_record::machine::*;
use nearmiss_record::model::*;
use nearmiss_record::policy::{Order, Policy};
use nearmiss_record::run::{Filter, Manifest};
use nearmiss_record::units::Bytes;

/// Builds a run event by event.
pub struct Builder {
    pub manifest: Manifest,
    pub model: ModelRecord,
}

/// A group of equal references.
#[derive(Clone)]
pub struct Event<'a> {
    pub function: &'a str,
    pub object: &'a str,
    pub task: u32,
    pub cpu: usize,
    pub offset: u32,
    pub count: u64,
    pub store: bool,
    /// Class of the miss at each level; shorter than the levels: it hit there.
    pub missed: &'a [MissClass],
    pub sets: &'a [u32],
    pub remote: bool,
}

impl Default for Event<'_> {
    fn default() -> Self {
        Event {
            function: "main",
            object: "heap",
            task: 100,
            cpu: 0,
            offset: 0,
            count: 0,
            store: false,
            missed: &[],
            sets: &[],
            remote: false,
        }
    }
}

pub fn machine(caches: &[(u8, u64, u32)]) -> Machine {
    Machine {
        name: "test-2cpu".into(),
        title: "Two CPUs for tests".into(),
        isa: "x86-64".into(),
        clock_mhz: 2000,
        cycles_per_instruction: 1.0,
        topology: Topology { packages: 1, cores_per_package: 2, threads_per_core: 1, cores_per_cluster: 0 },
        memory: Memory {
            nodes: 1,
            page_size: Bytes(4096),
            placement: Placement::Random,
            placement_seed: 1,
            first_touch_cycles: None,
            large_first_touch_cycles: None,
        },
        caches: caches
            .iter()
            .map(|(level, size, ways)| Cache {
                level: *level,
                kind: if *level == 1 { CacheKind::Data } else { CacheKind::Unified },
                size: Bytes(*size),
                ways: *ways,
                line: Bytes(64),
                shared_by: Sharing::Core,
                replacement: Replacement::Lru,
                seed: 0,
                inclusion: Inclusion::None,
                index: Index::Physical,
                hashed_bits: 0,
                others_lines: 0,
            })
            .collect(),
        coherence: Protocol::Mesi,
        latency: Latency {
            level_cycles: vec![4, 14, 46, 60][..caches.len()].to_vec(),
            core_clean_cycles: 60,
            core_modified_cycles: 90,
            remote_cache_cycles: 150,
            memory_local_cycles: 250,
            memory_remote_cycles: 400,
        },
        tlb: None,
        core: None,
        streams: None,
        store_aliasing: None,
        overlap: 0.0,
        bus: Bus { transaction_cycles: 4, shared_by: BusSharing::Machine, channels: 1 },
        write_combining_buffers: 8,
        noise: None,
        sources: Default::default(),
    }
}

impl Builder {
    pub fn new(command: &[&str], caches: &[(u8, u64, u32)]) -> Self {
        let machine = machine(caches);
        let sets = machine
            .caches
            .iter()
            .map(|c| {
                let sets = (c.size.0 / u64::from(c.ways) / 64) as usize;
                let cache = if c.level == 1 { "L1d".into() } else { format!("L{}", c.level) };
                SetMap {
                    cache,
                    ways: c.ways,
                    misses: vec![0; sets],
                    conflict_misses: vec![0; sets],
                    lines: vec![1; sets],
                }
            })
            .collect();
        let empty = || Tally { levels: vec![LevelTally::default(); caches.len()], ..Tally::default() };
        Builder {
            manifest: Manifest {
                schema: "nearmiss/manifest/1".into(),
                nearmiss: "0.1.0".into(),
                command: command.iter().map(|s| s.to_string()).collect(),
                cwd: "/home/user".into(),
                started: "2026-01-01T00:00:00Z".into(),
                recorder: "tap".into(),
                machine: "test-2cpu".into(),
                cpus: 2,
                kernel: "6.12.0-cloud-amd64".into(),
                emulator: "QEMU 7.2.0".into(),
                exit_status: Some(0),
                filter: Filter {
                    line_log2: 6,
                    index_low: 6,
                    index_bits: 6,
                    clear_on_slice: false,
                    fetches: true,
                    contexts: true,
                    ..Filter::default()
                },
                clock: "instructions".into(),
                window_ns: 2_340_000_000,
                boot_ns: 2_600_000_000,
                restored: false,
                warm: None,
                notes: vec!["DMA and page walks are not seen.".into()],
                ..Manifest::default()
            },
            model: ModelRecord {
                schema: SCHEMA.into(),
                machine,
                policy: Policy::default(),
                order: Order::Recorded,
                only_user: false,
                notes: vec![],
                totals: empty(),
                stalls: StallSources { levels: vec![0; caches.len()], ..Default::default() },
                parts: vec![],
                ranges: None,
                others: empty(),
                idle: empty(),
                ticks: empty(),
                functions: vec![],
                other_functions: vec![],
                lines: vec![],
                instructions: vec![],
                stacks: vec![],
                callers: vec![],
                objects: vec![],
                tasks: vec![],
                cpus: vec![empty(), empty()],
                nodes: vec![],
                page_offsets: PageOffsets { bin_bytes: 32, user: vec![0; 128], kernel: vec![0; 128] },
                sets,
                blame: vec![],
                shared_lines: vec![],
                curve: None,
                translation: None,
            },
        }
    }

    pub fn function(&mut self, name: &str, module: &str) -> &mut Self {
        let kernel = module == "[kernel]";
        self.model.functions.push(FunctionRow {
            name: name.into(),
            module: module.into(),
            kernel,
            tally: Tally::default(),
        });
        self
    }

    pub fn object(
        &mut self,
        kind: ObjectKind,
        name: &str,
        count: u64,
        size: Option<u64>,
        alignment: Option<u64>,
    ) -> &mut Self {
        self.model.objects.push(ObjectRow {
            kind,
            name: name.into(),
            allocated_at: if kind == ObjectKind::Heap { vec!["main".into(), "new_task".into()] } else { vec![] },
            count,
            size_bytes: size,
            alignment_bytes: alignment,
            tally: Tally::default(),
            curve: None,
        });
        self
    }

    pub fn task(&mut self, tid: u32, comm: &str) -> &mut Self {
        let row = TaskRow {
            tid,
            pid: 100,
            comm: comm.into(),
            of_command: true,
            user: Tally::default(),
            kernel: Tally::default(),
        };
        self.model.tasks.push(row);
        self
    }

    /// A task that is not the command's, in one function.
    pub fn stranger(&mut self, tid: u32, comm: &str, function: &str, instructions: u64) -> &mut Self {
        self.task(tid, comm);
        let kernel = Tally { instructions, cycles: instructions, ..self.model.others.clone() };
        self.model.others += &kernel;
        let (name, module) = (function.to_owned(), "[kernel]".to_owned());
        self.model.other_functions.push(FunctionRow { name, module, kernel: true, tally: kernel.clone() });
        if let Some(row) = self.model.tasks.last_mut() {
            (row.of_command, row.kernel) = (false, kernel);
        }
        self
    }

    /// Instructions without references: one cycle each.
    pub fn work(&mut self, function: &str, task: u32, cpu: usize, instructions: u64) -> &mut Self {
        let tally = Tally { instructions, cycles: instructions, ..Tally::default() };
        self.enter(function, None, task, cpu, &tally);
        self
    }

    pub fn event(&mut self, e: Event<'_>) -> &mut Self {
        let depth = self.model.totals.levels.len();
        let mut tally = Tally {
            instructions: e.count,
            line_accesses: e.count,
            levels: vec![LevelTally::default(); depth],
            ..Tally::default()
        };
        *(if e.store { &mut tally.stores } else { &mut tally.loads }) = e.count;
        for (i, class) in e.missed.iter().enumerate() {
            let level = &mut tally.levels[i];
            (if e.store { &mut level.store_misses } else { &mut level.load_misses })[*class as usize] = e.count;
            let map = &mut self.model.sets[i];
            for (n, set) in e.sets.iter().enumerate() {
                let set = *set as usize % map.misses.len();
                // The remainder goes to the first set.
                let share = e.count / e.sets.len() as u64 + if n == 0 { e.count % e.sets.len() as u64 } else { 0 };
                map.misses[set] += share;
                map.lines[set] += 5;
                if *class == MissClass::Conflict {
                    map.conflict_misses[set] += share;
                }
            }
        }
        let latency = &self.model.machine.latency;
        let shared = e.missed.iter().any(|c| matches!(c, MissClass::TrueSharing | MissClass::FalseSharing));
        let stalls = &mut self.model.stalls;
        let (cycles, bin) = match e.missed.len() {
            0 => (0, None),
            _ if shared => (latency.core_modified_cycles, Some(&mut stalls.coherence)),
            n if n < depth => (latency.level_cycles[n], Some(&mut stalls.levels[n])),
            _ if e.remote => (latency.memory_remote_cycles, Some(&mut stalls.memory_remote)),
            _ => (latency.memory_local_cycles, Some(&mut stalls.memory_local)),
        };
        tally.stall_cycles = u64::from(cycles) * e.count;
        tally.cycles = tally.instructions + tally.stall_cycles;
        if let Some(bin) = bin {
            *bin += tally.stall_cycles;
        }
        if e.missed.len() == depth {
            let bus = &mut tally.bus;
            *(if shared {
                &mut bus.read_local_modified
            } else if e.remote {
                &mut bus.read_remote
            } else {
                &mut bus.read_local_none
            }) = e.count;
            if e.store {
                bus.write_backs = e.count;
            }
            let kernel = self.model.functions.iter().any(|f| f.name == e.function && f.kernel);
            let offsets = &mut self.model.page_offsets;
            let bin = (e.offset / offsets.bin_bytes) as usize;
            (if kernel { &mut offsets.kernel } else { &mut offsets.user })[bin] += tally.bus.transactions();
        }
        if !e.missed.is_empty() {
            let misses = tally.levels.iter().map(|l| l.misses()).collect();
            let frames = ["main", "serve", e.function].map(String::from).to_vec();
            self.model.stacks.push(StackRow { frames, misses, stall_cycles: tally.stall_cycles, cycles: tally.cycles });
        }
        self.enter(e.function, Some(e.object), e.task, e.cpu, &tally);
        self
    }

    fn enter(&mut self, function: &str, object: Option<&str>, task: u32, cpu: usize, tally: &Tally) {
        let model = &mut self.model;
        model.totals += tally;
        model.cpus[cpu] += tally;
        let row = model.functions.iter_mut().find(|f| f.name == function).expect("function is declared");
        row.tally += tally;
        let kernel = row.kernel;
        let row = model.tasks.iter_mut().find(|t| t.tid == task).expect("task is declared");
        *(if kernel { &mut row.kernel } else { &mut row.user }) += tally;
        if let Some(object) = object {
            let row = model.objects.iter_mut().find(|o| o.name == object).expect("object is declared");
            row.tally += tally;
        }
    }

    pub fn report(self) -> nearmiss_report::load::Report {
        nearmiss_report::load::Report::new(self.manifest, self.model).expect("the record is sound")
    }
}

use MissClass::*;

/// A run queue as in Linux 2.4: every task's words on the same few sets, walked under a lock.
pub fn run_queue() -> Builder {
    queue(400_000, 700)
}

/// The run queue in another build, colored: nine of ten visits that missed for crowding hit, and its copies miss more.
pub fn run_queue_colored() -> Builder {
    let mut b = queue(40_000, 2_700);
    for function in b.model.functions.iter_mut().filter(|f| f.module == "/usr/bin/aligned-tasks") {
        function.module = "/opt/colored/aligned-tasks-2".into();
    }
    b.manifest.command = ["aligned-tasks-2", "--tasks", "1024"].map(String::from).to_vec();
    b.manifest.started = "2026-01-01T00:10:00Z".into();
    b
}

/// A queue with 400,000 visits of a task to its own words; so many miss for crowding, and so many copies miss.
fn queue(crowded: u64, copied: u64) -> Builder {
    let mut b =
        Builder::new(&["aligned-tasks", "--tasks", "1024"], &[(1, 32 << 10, 8), (2, 512 << 10, 8), (3, 4 << 20, 16)]);
    b.function("schedule", "[kernel]").function("copy_user", "[kernel]").function("do_softirq", "[kernel]");
    b.function("main", "/usr/bin/aligned-tasks")
        .function("serve", "/usr/bin/aligned-tasks")
        .function("malloc", "/usr/lib/libc.so.6");
    b.function("memcpy", "/usr/lib/libc.so.6")
        .function("parse_request", "/usr/bin/aligned-tasks")
        .function("[unattributed]", "[unknown]");
    b.object(ObjectKind::Slab, "task", 1024, Some(8192), Some(8192));
    b.object(ObjectKind::Heap, "requests.c:41 new_request", 5000, Some(320), Some(16));
    b.object(ObjectKind::Stack, "stack of thread 2", 1, Some(8 << 20), Some(4096));
    b.object(ObjectKind::Global, "runqueue_lock", 1, Some(64), Some(64));
    b.object(ObjectKind::PageCache, "/srv/www/index.html", 12, None, Some(4096));
    b.object(ObjectKind::Unattributed, "[unattributed]", 0, None, None);
    b.task(100, "aligned-tasks")
        .task(101, "worker")
        .task(102, "worker")
        .task(103, "worker")
        .task(104, "worker")
        .task(105, "worker")
        .stranger(33, "khugepaged", "collapse_huge_page", 23_153_276);
    for (i, tid) in (100..106).enumerate() {
        let cpu = i % 2;
        b.work("serve", tid, cpu, 900_000).work("main", tid, cpu, 50_000).work("schedule", tid, cpu, 700_000);
        b.event(Event {
            function: "schedule",
            object: "task",
            task: tid,
            cpu,
            offset: 0x20,
            count: crowded,
            missed: &[Conflict, Conflict],
            sets: &[0, 256],
            ..Event::default()
        });
        if crowded < 400_000 {
            let count = 400_000 - crowded;
            b.event(Event { function: "schedule", object: "task", task: tid, cpu, count, ..Event::default() });
        }
        b.event(Event {
            function: "schedule",
            object: "task",
            task: tid,
            cpu,
            offset: 0x20,
            count: 30_000,
            missed: &[Conflict, Conflict, Capacity],
            sets: &[0, 256],
            ..Event::default()
        });
        b.event(Event {
            function: "schedule",
            object: "runqueue_lock",
            task: tid,
            cpu,
            offset: 0x440,
            count: 9_000,
            missed: &[TrueSharing, TrueSharing, TrueSharing],
            sets: &[17],
            ..Event::default()
        });
        b.event(Event {
            function: "serve",
            object: "stack of thread 2",
            task: tid,
            cpu,
            count: 2_000_000,
            ..Event::default()
        });
        for offset in (0..4096).step_by(64) {
            let set = [offset / 64 + 64];
            b.event(Event {
                function: "parse_request",
                object: "requests.c:41 new_request",
                task: tid,
                cpu,
                offset,
                count: 300 + u64::from(offset) % 113,
                missed: &[Capacity, Compulsory, Compulsory],
                sets: &set,
                ..Event::default()
            });
        }
        b.event(Event {
            function: "copy_user",
            object: "/srv/www/index.html",
            task: tid,
            cpu,
            offset: 0x800,
            count: 8_000,
            store: true,
            missed: &[Compulsory, Compulsory, Compulsory],
            sets: &[5, 6, 7],
            ..Event::default()
        });
        b.event(Event {
            function: "memcpy",
            object: "[unattributed]",
            task: tid,
            cpu,
            offset: 0xf00,
            count: copied,
            missed: &[Capacity],
            sets: &[60],
            ..Event::default()
        });
        b.work("malloc", tid, cpu, 40_000).work("do_softirq", tid, cpu, 9_000).work("[unattributed]", tid, cpu, 1_000);
    }
    b.model.shared_lines.push(SharedLineRow {
        line_paddr: 0x1_2345_6440,
        object: "runqueue_lock+0x0".into(),
        true_sharing: 54_000,
        false_sharing: 0,
        functions: vec!["schedule".into()],
        ..SharedLineRow::default()
    });
    b.model.blame.push(BlameRow {
        cache: "L2".into(),
        evictor: "copy_user".into(),
        victim: "parse_request".into(),
        misses: 3_000,
        ..BlameRow::default()
    });
    let references = b.model.totals.loads + b.model.totals.stores;
    let points = (12..26).map(|n| (1u64 << n, references / (1 + (1u64 << (n - 12)) / 3))).collect();
    b.model.curve = Some(MissRatioCurve { exact: true, references, points });
    b.model.notes.push("Miss-ratio curve: data references only.".into());
    let total = b.model.functions[0].tally.clone();
    b.model.lines.push(LineRow {
        function: "schedule".into(),
        module: "[kernel]".into(),
        file: "kernel/sched.c".into(),
        line: 604,
        tally: total,
    });
    b
}

/// Everything hits.
pub fn healthy() -> Builder {
    let mut b = Builder::new(&["healthy"], &[(1, 32 << 10, 8), (2, 512 << 10, 8)]);
    b.function("main", "/usr/bin/healthy").object(ObjectKind::Heap, "heap", 1, None, None).task(100, "healthy");
    b.work("main", 100, 0, 1_000_000);
    b.event(Event { count: 1_000_000, ..Event::default() });
    b.event(Event { count: 100, missed: &[Compulsory, Compulsory], sets: &[1], ..Event::default() });
    b
}

//! One observation by BPF: attach, collect while the target runs, read the maps.

use super::flows::Spent;
use super::futex::FutexSites;
use super::layout::{COUNTERS, Control, Counter, Flow, LockEvent, PollEvent, TaskStat, USER_STACK_BYTES, read};
use super::load::{CallTracing, Constants, Loaded, WHO_ALL, WHO_CGROUP, WHO_TASKS, Wants, load};
use super::locks::Namers;
use super::pace::Pace;
use super::sets::Sets;
use super::window::Window;
use super::{BpfError, block, locks, memory, polls, refused, tasks};
use crate::perf::{AddressSpaces, Symbolizer};
use aya::maps::{Array, HashMap, MapData, PerCpuArray, RingBuf};
use aya::programs::Program;
use nearmiss_record::logs::MOST_LOGGED;
use nearmiss_record::observed::{BlockIo, Lock, MemoryUse, Poll, Queue, Task};
use std::collections::HashMap as StdMap;
use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Scope of the counted events.
#[derive(Clone, Debug)]
pub enum Who {
    /// Events of everyone but the observer.
    All,
    /// Events of these processes, and of all children that they start from now on.
    Tasks(Vec<i32>),
    /// The events of a cgroup (a directory of the unified hierarchy) and the ones below it.
    Cgroup(PathBuf),
}

/// The counters at one moment, summed over CPUs, and the block requests in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    counters: [u64; COUNTERS],
    spent: Spent,
    /// Block requests in flight.
    pub in_flight: u64,
}

impl Figures {
    /// Returns one of the counters.
    pub(crate) fn of(&self, counter: Counter) -> u64 {
        self.counters.get(counter as usize).copied().unwrap_or(0)
    }

    /// Time since an earlier moment: waiting for kernel locks, and for futexes.
    pub fn lock_waits_since(&self, before: &Self) -> (u64, u64) {
        let spent = self.spent.since(&before.spent);
        (spent.of(Flow::KernelLock), spent.of(Flow::Futex))
    }

    /// Time since an earlier moment: on a CPU, runnable without one, and of that after another task took the CPU.
    pub fn cpu_since(&self, before: &Self) -> (u64, u64, u64) {
        let spent = self.spent.since(&before.spent);
        let preempted = spent.of(Flow::Preempted);
        (spent.of(Flow::OnCpu), preempted + spent.of(Flow::Woken), preempted)
    }

    /// Poll calls, and events they returned.
    pub fn polls(&self) -> (u64, u64) {
        (self.of(Counter::PollCalls), self.of(Counter::PollEvents))
    }

    /// Block requests completed, and their bytes.
    pub fn io(&self) -> (u64, u64) {
        (self.of(Counter::IoDone), self.of(Counter::IoBytes))
    }

    /// Context switches.
    pub fn switches(&self) -> u64 {
        self.of(Counter::Switches)
    }

    /// Returns the counts of what found no room, by name.
    pub fn lost(&self) -> Vec<(String, u64)> {
        [
            ("lock waits", Counter::DroppedLocks),
            ("poll threads", Counter::DroppedPolls),
            ("block requests", Counter::DroppedIo),
            ("tasks", Counter::DroppedTasks),
            ("log entries", Counter::DroppedLog),
            ("futex stacks", Counter::DroppedStacks),
            ("page allocations", Counter::DroppedMemory),
        ]
        .into_iter()
        .map(|(name, counter)| (name.to_owned(), self.of(counter)))
        .filter(|(_, lost)| *lost > 0)
        .collect()
    }
}

/// Everything the programs counted.
#[derive(Clone, Debug, Default)]
pub struct Counted {
    /// Lock waits.
    pub locks: Vec<Lock>,
    /// Polls.
    pub polls: Vec<Poll>,
    /// Block requests.
    pub io: Vec<BlockIo>,
    /// Queues.
    pub queues: Vec<Queue>,
    /// Pages allocated and reclaimed.
    pub memory: Vec<MemoryUse>,
    /// Tasks; where switches were not watched, by the kernel's accounts alone.
    pub tasks: Vec<Task>,
    /// Counts of what found no room, by name.
    pub lost: Vec<(String, u64)>,
}

/// Every lock wait and poll, in the order in which they ended; `None` where no log was requested.
#[derive(Clone, Debug, Default)]
pub(crate) struct EventLog {
    pub locks: Option<Vec<LockEvent>>,
    pub polls: Option<Vec<PollEvent>>,
}

/// Programs in the kernel, counting.
pub struct BpfSession {
    loaded: Loaded,
    wants: Wants,
    lock_ring: Option<RingBuf<MapData>>,
    poll_ring: Option<RingBuf<MapData>>,
    sites: FutexSites,
    sets: Sets,
    pace: Pace,
    log: EventLog,
    log_overflow: u64,
    window: Window,
    ended_ring: RingBuf<MapData>,
    ended: Vec<TaskStat>,
    ended_overflow: u64,
}

impl BpfSession {
    /// Loads and attaches. A command's process must still be suspended. Nothing counts before [`BpfSession::begin`].
    pub fn start(wants: Wants, who: &Who) -> Result<Self, BpfError> {
        let mut loaded = load(wants, &constants(who)?)?;
        if let Who::Tasks(pids) = who {
            let map = loaded.ebpf.map_mut("targets").ok_or(BpfError::NotBuilt)?;
            let mut targets: HashMap<_, u32, u8> = HashMap::try_from(map).map_err(|e| refused("targets", &e))?;
            for pid in pids {
                targets.insert(u32::try_from(*pid).unwrap_or(0), 1, 0).map_err(|e| refused("targets", &e))?;
            }
        }
        let mut ring = |name: &str| -> Result<RingBuf<MapData>, BpfError> {
            let map = loaded.ebpf.take_map(name).ok_or(BpfError::NotBuilt)?;
            RingBuf::try_from(map).map_err(|e| refused(name, &e))
        };
        let lock_ring = if wants.locks { Some(ring("lock_log")?) } else { None };
        let poll_ring = if wants.polls && wants.log { Some(ring("poll_log")?) } else { None };
        let ended_ring = ring("ended_tasks")?;
        let mut session = BpfSession {
            loaded,
            wants,
            lock_ring,
            poll_ring,
            sites: FutexSites::default(),
            sets: Sets::default(),
            pace: Pace::default(),
            log: EventLog {
                locks: (wants.locks && wants.log).then(Vec::new),
                polls: (wants.polls && wants.log).then(Vec::new),
            },
            log_overflow: 0,
            window: Window::default(),
            ended_ring,
            ended: Vec::new(),
            ended_overflow: 0,
        };
        if wants.locks {
            // Only for names.
            let _ = session.walk("find_runqueues");
        }
        session.snapshot(0)?;
        Ok(session)
    }

    /// How system calls are watched.
    pub fn calls(&self) -> CallTracing {
        self.loaded.calls
    }

    /// The window begins: what was under way before counts from here on.
    pub fn begin(&mut self, at_ns: u64) -> Result<(), BpfError> {
        self.window.begin_ns = at_ns;
        self.control(1)
    }

    /// The window ends: from here on nothing changes any more.
    pub fn end(&mut self, at_ns: u64) -> Result<(), BpfError> {
        self.window.end_ns = at_ns;
        self.control(1)
    }

    /// Whether every task's time is known by what it did with it.
    pub fn follows_switches(&self) -> bool {
        self.wants.switches()
    }

    fn control(&mut self, phase: u32) -> Result<(), BpfError> {
        let map = self.loaded.ebpf.map_mut(".bss").ok_or(BpfError::NotBuilt)?;
        let mut variables: Array<_, Control> = Array::try_from(map).map_err(|e| refused("control", &e))?;
        let Window { begin_ns, end_ns } = self.window;
        let control = Control { begin_ns, end_ns, phase, padding: 0 };
        variables.set(0, control, 0).map_err(|e| refused("control", &e))
    }

    /// Walks all tasks and takes their accounts.
    fn snapshot(&mut self, phase: u32) -> Result<(), BpfError> {
        self.control(phase)?;
        self.walk("snapshot")
    }

    /// Runs a program once for every task.
    fn walk(&mut self, program: &str) -> Result<(), BpfError> {
        let Some(Program::Iter(iter)) = self.loaded.ebpf.program_mut(program) else {
            return Err(BpfError::NotBuilt);
        };
        let link = iter.attach().and_then(|id| iter.take_link(id)).map_err(|e| refused("the task list", &e))?;
        let mut file = link.into_file().map_err(|e| refused("the task list", &e))?;
        let mut nothing = Vec::new();
        file.read_to_end(&mut nothing).map_err(|e| refused("the task list", &e))?;
        Ok(())
    }

    /// Looks at what will be gone when a task ends.
    fn look(&mut self) {
        if self.wants.polls {
            self.sets.look(&self.loaded.ebpf);
        }
        if !self.follows_switches() {
            // Tasks that end meanwhile are seen as they go. A failure shows when the observation ends, where it is an error.
            let _ = self.snapshot(1);
        }
    }

    /// Empties the rings. `spaces`: the sampler's record of the processes' mappings, if it runs.
    pub fn drain(&mut self, spaces: Option<&AddressSpaces>) {
        if self.pace.is_due() {
            self.look();
        }
        while let Some(item) = self.ended_ring.next() {
            if let Some(task) = read(&item) {
                keep(task, &mut self.ended, tasks::MOST_ENDED, &mut self.ended_overflow);
            }
        }
        if let Some(ring) = &mut self.lock_ring {
            while let Some(item) = ring.next() {
                if item.len() > USER_STACK_BYTES {
                    if let Some(sent) = read(&item) {
                        self.sites.take(&sent, spaces);
                    }
                } else if let (Some(event), Some(log)) = (read(&item), &mut self.log.locks) {
                    keep(event, log, MOST_LOGGED, &mut self.log_overflow);
                }
            }
        }
        if let (Some(ring), Some(log)) = (&mut self.poll_ring, &mut self.log.polls) {
            while let Some(item) = ring.next() {
                if let Some(event) = read(&item) {
                    keep(event, log, MOST_LOGGED, &mut self.log_overflow);
                }
            }
        }
    }

    /// The counters at this moment, which is now or was the end of the window.
    pub fn figures(&self, at_ns: u64) -> Figures {
        let mut figures = Figures { spent: Spent::until(&self.loaded.ebpf, self.window, at_ns), ..Figures::default() };
        if let Some(map) = self.loaded.ebpf.map("counters")
            && let Ok(cells) = PerCpuArray::<_, u64>::try_from(map)
        {
            for (index, sum) in figures.counters.iter_mut().enumerate() {
                if let Ok(values) = cells.get(&(index as u32), 0) {
                    *sum = values.iter().sum();
                }
            }
        }
        if self.wants.io {
            figures.in_flight = block::in_flight(&self.loaded.ebpf);
        }
        figures
    }

    /// Returns the counts so far, named. `last` takes the tasks' final accounts.
    pub fn read(&mut self, symbolizer: &mut Symbolizer, spaces: Option<&AddressSpaces>) -> Result<Counted, BpfError> {
        self.drain(spaces);
        self.snapshot(1)?;
        let ebpf = &self.loaded.ebpf;
        let mut counted = Counted { lost: self.figures(self.window.end_ns).lost(), ..Counted::default() };
        if self.ended_overflow > 0 {
            counted.lost.push((format!("tasks beyond {}", tasks::MOST_ENDED), self.ended_overflow));
        }
        let living = tasks::living(ebpf, self.window)?;
        if self.log_overflow > 0 {
            counted.lost.push(("log entries beyond two million".to_owned(), self.log_overflow));
        }
        if self.wants.locks {
            let open = locks::open(ebpf, &living, self.window)?;
            let mut names = Namers { symbolizer, sites: &mut self.sites, spaces };
            counted.locks = locks::rows(ebpf, &open, &mut names)?;
            if let Some(log) = &mut self.log.locks {
                open.into_iter().for_each(|event| keep(event, log, MOST_LOGGED, &mut self.log_overflow));
            }
        }
        if self.wants.polls {
            let ended: StdMap<u32, u64> = self.ended.iter().map(|task| (task.tid, task.ended_ns)).collect();
            counted.polls = polls::rows(ebpf, &self.sets, self.window, |tid| ended.get(&tid).copied())?;
        }
        if self.wants.io {
            counted.io = block::rows(ebpf)?;
            counted.queues = block::queues(ebpf)?;
            counted.memory = memory::rows(ebpf)?;
        }
        let all = living.iter().chain(&self.ended);
        counted.tasks = tasks::rows(all, self.window, self.wants.switches());
        Ok(counted)
    }

    /// Gives the log away.
    pub(crate) fn take_log(&mut self) -> EventLog {
        std::mem::take(&mut self.log)
    }

    /// Bytes the maps hold in the kernel, as the kernel accounts them.
    pub fn kernel_bytes(&self) -> u64 {
        let mut sum = 0;
        for entry in fs::read_dir("/proc/self/fdinfo").into_iter().flatten().flatten() {
            let text = fs::read_to_string(entry.path()).unwrap_or_default();
            if text.contains("map_type:")
                && let Some(line) = text.lines().find_map(|l| l.strip_prefix("memlock:"))
            {
                sum += line.trim().parse::<u64>().unwrap_or(0);
            }
        }
        sum
    }
}

/// Keeps a log entry, or counts it as lost.
fn keep<T>(event: T, log: &mut Vec<T>, most: usize, overflow: &mut u64) {
    if log.len() < most {
        log.push(event);
    } else {
        *overflow += 1;
    }
}

fn constants(who: &Who) -> Result<Constants, BpfError> {
    Ok(match who {
        Who::All => Constants { who: WHO_ALL, cgroup_id: 0, cgroup_level: 0 },
        Who::Tasks(_) => Constants { who: WHO_TASKS, cgroup_id: 0, cgroup_level: 0 },
        Who::Cgroup(path) => {
            let found = fs::metadata(path).map_err(|e| refused(&path.display().to_string(), &e))?;
            Constants { who: WHO_CGROUP, cgroup_id: found.ino(), cgroup_level: level(path) }
        }
    })
}

/// Depth of a cgroup below the root of its hierarchy.
fn level(path: &Path) -> u32 {
    let root = fs::metadata(path).map(|m| m.dev());
    let parents = path.ancestors().skip(1);
    parents.take_while(|p| fs::metadata(p).map(|m| m.dev()).ok() == root.as_ref().ok().copied()).count() as u32
}

//! One recording: a guest with the tap in it, its ring drained into a sink until the command ends.

use super::drain::{Drain, OnProgress};
use super::facts::KernelFacts;
use super::guest::{
    CaughtSignals, ExitReason, Guest, GuestCommand, GuestConfig, GuestExit, GuestShape, InstructionClock,
    KernelArgument, KernelImage, PluginConfig, QemuBinary, TAP_PLUGIN, WarmUp, Warmth, plan_memory, saved_guests,
};
use super::pages::{Physical, kernel_pages, net_devices};
use super::parts::{Covered, Parts};
use super::ring::{Ring, RingConfig};
use super::structures::structures;
use super::watch::Watch;
use super::window::{Start, Window};
use nearmiss_record::abi;
use nearmiss_record::run::Filter;
use nearmiss_record::side::SideTables;
use nearmiss_record::symbols::{KernelLayout, KernelPages, KernelStructure};
use nearmiss_record::trace::TraceHeader;
use nearmiss_symbols::{Booted, LiveData};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

pub use super::drain::Sink;
pub use super::error::TapError;

/// How to record.
#[derive(Debug)]
pub struct TapConfig {
    /// The guest's topology.
    pub shape: GuestShape,
    /// Bytes of memory by node; empty: half of what is available here.
    pub memory: Vec<u64>,
    /// The guest's kernel.
    pub kernel: KernelImage,
    /// The emulator.
    pub qemu: QemuBinary,
    /// Only the command's user-mode references.
    pub only_user: bool,
    /// References that need not be kept.
    pub filter: Filter,
    /// The heap shim to preload, if heap objects are recorded.
    pub heap_shim: Option<Vec<u8>>,
    /// Count time by instructions.
    pub icount: Option<InstructionClock>,
    /// End the guest when the command has run for this time.
    pub timeout: Option<Duration>,
    /// Destination of the command's writes at the end.
    pub keep: Option<PathBuf>,
    /// Random address layout.
    pub aslr: bool,
    /// As [`GuestConfig::kernel_arguments`].
    pub kernel_arguments: Vec<KernelArgument>,
    /// As [`GuestConfig::warm_up`].
    pub warm_up: WarmUp,
    /// `GLIBC_TUNABLES` for the command.
    pub libc_tunables: Option<String>,
    /// Whether the guest may be a saved one that is restored ([`GuestConfig::saved_guests`]).
    pub saved_boot: bool,
}

/// Results of a recording besides its stream.
#[derive(Debug)]
pub struct Recorded {
    /// How command and guest ended.
    pub exit: GuestExit,
    /// Tables beside the stream.
    pub side: SideTables,
    /// By calling context, the address that its call stored the return address at, the first time.
    pub call_slots: Vec<u64>,
    /// Release of the guest's kernel.
    pub kernel: String,
    /// The emulator and its version.
    pub emulator: String,
    /// Use of the guest's pages at the end.
    pub pages: KernelPages,
    /// Structures of the kernel's in its slabs, where the filter keeps every access.
    pub structures: Vec<KernelStructure>,
    /// Text of the guest's `/proc/kallsyms`.
    pub kallsyms: Arc<str>,
    /// Addresses and offsets in the guest's kernel.
    pub layout: KernelLayout,
    /// From launch to a guest that is ready, *measured*.
    pub boot: Duration,
    /// The guest was not booted but restored.
    pub restored: bool,
    /// From then to the command's first instruction, *measured*.
    pub warm: Duration,
    /// Warm-up done meanwhile.
    pub warmth: Warmth,
    /// From the command's start until the window's opening, *measured*.
    pub ahead: Duration,
    /// From the window's opening until its end, *measured*.
    pub window: Duration,
    /// Records, payload included.
    pub records: u64,
    /// Why the stream ends before the command did, or begins before it.
    pub cut: Option<String>,
    /// Remarks for the reader.
    pub notes: Vec<String>,
    /// How much of the window was recorded.
    pub covered: Covered,
    /// An interrupt ended command and recording.
    pub interrupted: bool,
}

/// A recording about to begin.
pub struct Session {
    config: TapConfig,
    header: TraceHeader,
    booted: Arc<OnceLock<Booted>>,
    window: Window,
    plan: Option<Parts>,
    go_on: bool,
    on_progress: Option<Box<OnProgress>>,
}

impl Session {
    /// Settles what must be known before the guest exists: its memory. Errors: there is too little.
    pub fn new(mut config: TapConfig) -> Result<Self, TapError> {
        config.memory = plan_memory(&config.memory, config.shape.nodes)?;
        let header = TraceHeader {
            schema: nearmiss_record::trace::SCHEMA.into(),
            cpus: config.shape.cpus(),
            node_bytes: config.memory.clone(),
            only_user: config.only_user,
            filter: config.filter,
            starts_late: false,
        };
        Ok(Session {
            config,
            header,
            booted: Arc::default(),
            window: Window::default(),
            plan: None,
            go_on: false,
            on_progress: None,
        })
    }

    /// Records only this part of the run.
    pub fn within(mut self, window: Window) -> Self {
        self.window = window;
        self.with_its_start()
    }

    /// Records the window in parts, and ends the command with the plan.
    pub fn in_parts(mut self, plan: Option<Parts>) -> Self {
        self.plan = plan;
        self.with_its_start()
    }

    /// Parts of a window that opens late have a past that nobody recorded.
    fn with_its_start(mut self) -> Self {
        self.header.starts_late = self.plan.is_some() && self.window.from != Start::Begin;
        self
    }

    /// Lets the command run on to its end when its window closes before.
    pub fn letting_it_finish(mut self, go_on: bool) -> Self {
        self.go_on = go_on;
        self
    }

    /// Calls this again and again while the window is open.
    pub fn on_progress(mut self, on_progress: Box<OnProgress>) -> Self {
        self.on_progress = Some(on_progress);
        self
    }

    /// Names of the variables that the run will touch, for whoever follows the stream.
    pub fn data_symbols(&self) -> LiveData {
        LiveData::new(Arc::clone(&self.booted))
    }

    /// Returns the header of a trace of this recording.
    pub fn header(&self) -> &TraceHeader {
        &self.header
    }

    /// Runs `command` to its end; this process's signals go to it meanwhile.
    pub fn record(self, command: GuestCommand, sink: &mut Sink<'_>) -> Result<Recorded, TapError> {
        let Session { config, header, booted, window, plan, go_on, on_progress } = self;
        let (has_files, has_heap) = (config.keep.is_some(), config.heap_shim.is_some());
        let plugin = TAP_PLUGIN.ok_or(TapError::NoPlugin)?;
        let mut ring = Ring::create(&RingConfig {
            cpus: header.cpus,
            node_bytes: header.node_bytes.clone(),
            only_user: config.only_user,
            filter: config.filter,
            window: window.clone(),
            managed_heaps: has_heap,
        })?;
        let kernel_directory = config.kernel.directory().to_owned();
        let kernel = config.kernel.release();
        let emulator = format!("QEMU {}.{}", config.qemu.version.0, config.qemu.version.1);
        let caution = config.qemu.caution();
        let started = Instant::now();
        let signals = CaughtSignals::new()?;
        let guest = Guest::launch(GuestConfig {
            shape: config.shape,
            memory: config.memory,
            kernel: config.kernel,
            command,
            plugin: Some(PluginConfig {
                library: Some(memory_file(plugin)?),
                path: None,
                arguments: Vec::new(),
                descriptors: vec![("fd".into(), ring.file().try_clone_to_owned()?)],
            }),
            icount: config.icount,
            keep: config.keep,
            timeout: config.timeout,
            aslr: config.aslr,
            kernel_arguments: config.kernel_arguments,
            warm_up: config.warm_up,
            qemu: config.qemu,
            preload: config.heap_shim,
            libc_tunables: config.libc_tunables,
            saved_guests: config.saved_boot.then(saved_guests),
            interrupted: signals.interrupted(),
        })?;
        let signals = signals.forward_to(&guest)?;
        let Some(boot) = guest.boot() else {
            let exit = guest.wait();
            return Err(match exit.reason {
                ExitReason::Killed => TapError::Interrupted,
                _ => TapError::NotBegun(ending(&exit)),
            });
        };
        let description =
            boot.kernel.ok_or_else(|| TapError::NotBegun("the guest's kernel sent no description of itself".into()))?;
        let facts = KernelFacts::of(&description, &kernel_directory)?;
        let memory = Physical::new(guest.memory())?;
        let plugin_facts = facts
            .of_boot(header.cpus, &boot.perf_rings, |at| memory.word(at))
            .map_err(|what| TapError::NotBegun(what.into()))?;
        ring.set_facts(&plugin_facts);
        let layout =
            KernelLayout { direct_map_base: plugin_facts.direct_map_base, per_cpu_bases: plugin_facts.per_cpu_bases };
        let booted = booted.get_or_init(|| Booted { kallsyms: Arc::clone(&description.kallsyms), layout });
        let ready = Instant::now();
        let start = guest.start().clone();
        let warmth = guest.go_warmly(config.warm_up, start.restored.unwrap_or(ready - started))?;

        let mut watch = Watch::new(&window, has_heap);
        let drain = Drain { guest: &guest, signals: &signals, plan, on_progress: on_progress.as_deref() };
        let mut drained = drain.run(&mut ring, &header, &mut watch, sink)?;
        let window_end = Instant::now();
        if ring.state() == abi::State::Failed {
            return Err(TapError::Plugin(ring.error()));
        }
        let (side, call_slots) = ring.side_tables();
        let pages = facts.pages.as_ref().map(|pages| kernel_pages(&memory, pages)).unwrap_or_default();
        let has_fields = header.filter.every_access && !header.only_user;
        let structures = match &facts.pages {
            Some(facts_of_pages) if has_fields => {
                let devices = facts.devices.as_ref();
                let devices = devices.map(|devices| net_devices(&memory, facts_of_pages.top_table, devices));
                structures(&description.btf, &pages, devices.unwrap_or_default())
            }
            _ => Vec::new(),
        };
        let over = drained.covered.is_some_and(|covered| covered.ended) || drained.interrupted;
        let ends = drained.complete && ring.moved_by().1 == 0 && (over || !go_on);
        if ends {
            Drain::end_command(&guest, has_files);
        }
        let exit = guest.wait();
        if let ExitReason::Refused(what) = &exit.reason {
            return Err(TapError::NotBegun(what.clone()));
        }
        if !ring.opened() {
            return Err(match &exit.reason {
                ExitReason::Killed => TapError::Interrupted,
                ExitReason::Ended => TapError::NeverOpened(watch.never()),
                _ => TapError::NeverOpened(ending(&exit)),
            });
        }
        let (opened, began) = watch.times();
        let began = began.unwrap_or(window_end);
        if !boot.settled {
            drained.notes.push(format!(
                "the guest was still busy with its boot after {} ms: some of that work may be in this run",
                boot.quiet_ms
            ));
        }
        drained.notes.extend(start.note);
        drained.notes.extend(window.note());
        drained.notes.extend(caution);
        drained.notes.extend(exit.notes.iter().cloned());
        let window_time = window_end - opened.unwrap_or(began);
        let covered = covered(drained.covered, window_time, ends);
        let cut = (!drained.complete).then(|| ending(&exit)).or_else(|| moved(ring.moved_by(), warmth.command));
        Ok(Recorded {
            side,
            call_slots,
            kernel,
            emulator,
            pages,
            structures,
            kallsyms: Arc::clone(&booted.kallsyms),
            layout: booted.layout.clone(),
            boot: ready - started,
            restored: start.restored.is_some(),
            warm: began - ready,
            warmth,
            ahead: opened.map_or(Duration::ZERO, |opened| opened.saturating_duration_since(began)),
            window: window_time,
            records: drained.records,
            covered,
            interrupted: drained.interrupted,
            cut,
            notes: drained.notes,
            exit,
        })
    }
}

/// Returns how much of the window was recorded: what the plan counted, or all of it.
fn covered(planned: Option<Covered>, window: Duration, ended: bool) -> Covered {
    let whole = Covered { parts: 1, recorded: window, reached: window, ended, ..Covered::default() };
    Covered { ended, ..planned.unwrap_or(whole) }
}

/// A guest's end in a sentence.
fn ending(exit: &GuestExit) -> String {
    match &exit.reason {
        ExitReason::Ended => "the command ended, the tap did not notice".into(),
        ExitReason::Refused(what) | ExitReason::Failed(what) => what.clone(),
        ExitReason::TimedOut => {
            let over = "the time given by --timeout was over".to_owned();
            std::iter::once(over).chain(exit.waits.iter().cloned()).collect::<Vec<_>>().join("; ")
        }
        ExitReason::Killed => "it was interrupted".into(),
        ExitReason::PoweredOff => "the command powered the guest off".into(),
        ExitReason::Halted => "the command halted the guest".into(),
        ExitReason::Panicked(line) => format!("the guest's kernel gave up: {line}"),
    }
}

/// Init, which is the agent: it closes the window.
const AGENT: u32 = 1;

/// Returns a note about a window that was not opened and closed by the agent and the command's first process.
fn moved((opened_by, closed_by): (u32, u32), command: Option<u32>) -> Option<String> {
    if command != Some(opened_by) {
        return Some(format!("process {opened_by} opened the window itself, which is not the command's first process"));
    }
    (closed_by > AGENT).then(|| format!("the command closed the window itself (process {closed_by})"))
}

fn memory_file(content: &[u8]) -> io::Result<OwnedFd> {
    let file = rustix::fs::memfd_create("nearmiss-tap.so", rustix::fs::MemfdFlags::CLOEXEC)?;
    let file = std::fs::File::from(file);
    file.write_all_at(content, 0)?;
    Ok(file.into())
}

#[cfg(test)]
mod tests {
    use super::moved;

    #[test]
    fn a_window_is_the_commands_from_its_first_process_to_the_agents_end() {
        assert_eq!(moved((70, 1), Some(70)), None);
        assert_eq!(moved((70, 0), Some(70)), None, "closed by a mark, a time or a count");
        assert_eq!(moved((70, 71), Some(70)), Some("the command closed the window itself (process 71)".into()));
        let early = "process 64 opened the window itself, which is not the command's first process";
        assert_eq!(moved((64, 1), Some(70)), Some(early.into()));
    }
}

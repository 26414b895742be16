//! One sampling session: open, drain while the target runs, then name what was sampled.

use super::cpus::online_cpus;
use super::maps::AddressSpaces;
use super::open::{Contents, Opened, STACK_BYTES, attributes, open_all};
use super::ring::Ring;
use super::symbols::Symbolizer;
use super::unwind::Unwinder;
use super::{EventSpec, PerfError, Rate, Reach};
use linux_perf_event_reader::constants::{PERF_REG_X86_BP, PERF_REG_X86_IP, PERF_REG_X86_SP};
use linux_perf_event_reader::{
    Endianness, EventRecord, PerfEventAttr, RawData, RawEventRecord, RecordParseInfo, RecordType, SampleRecord,
};
use nearmiss_record::observed::{Event, Frame, Profile, Sample};
use perf_event_open_sys::{bindings as sys, ioctls};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How user call stacks are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StackMode {
    /// Unwind tables of the files: right for what distributions build.
    #[default]
    Tables,
    /// Frame pointers: cheaper, right only for programs built with them.
    FramePointers,
    /// The kernel's part only.
    None,
}

/// Most samples kept in memory (64 bytes each); later ones are counted as lost.
const MOST_SAMPLES: usize = 4_000_000;

/// The place of an instruction.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum StackPlace {
    /// Address of an instruction of the kernel.
    Kernel(u64),
    /// A file, and the offset there.
    File(Arc<Path>, u64),
    /// Code that a process made at run time, and its address.
    Made(i32, u64),
}

/// Events being sampled.
pub struct PerfSession {
    events: Vec<Event>,
    opened: Vec<Opened>,
    rings: Vec<Ring>,
    /// Event that owns each ring.
    owners: Vec<usize>,
    by_id: HashMap<u64, u32>,
    parse: Vec<RecordParseInfo>,
    unwind: bool,
    follows_task: bool,
    spaces: AddressSpaces,
    unwinder: Unwinder,
    stacks: HashMap<Vec<StackPlace>, u32>,
    stack_list: Vec<Vec<StackPlace>>,
    threads: HashMap<i32, u32>,
    thread_list: Vec<(i32, i32, String)>,
    samples: Vec<Sample>,
    started_ns: u64,
    lost: u64,
    throttled: u64,
    kernel_seen: bool,
    arena: Vec<u8>,
}

struct Queued {
    time: u64,
    kind: u32,
    misc: u16,
    start: usize,
    end: usize,
}

impl PerfSession {
    /// Opens the events, not counting yet. Falls back to user mode alone where the kernel may not be seen.
    pub fn open(events: &[EventSpec], reach: &Reach, mode: StackMode) -> Result<Self, PerfError> {
        let cpus = online_cpus();
        let mut contents = Contents {
            kernel: true,
            stack_bytes: if mode == StackMode::Tables { STACK_BYTES } else { 0 },
            frame_pointers: mode == StackMode::FramePointers,
        };
        let opened = match open_all(events, contents, reach, &cpus) {
            Err(PerfError::Refused { errno: libc::EACCES | libc::EPERM, .. }) => {
                contents.kernel = false;
                open_all(events, contents, reach, &cpus)?
            }
            other => other?,
        };
        if events.is_empty() {
            return Err(PerfError::Target("no event to sample".to_owned()));
        }
        let mut session = PerfSession {
            events: events.iter().map(describe).collect(),
            opened,
            rings: Vec::new(),
            owners: Vec::new(),
            by_id: HashMap::new(),
            parse: events.iter().map(|e| parse_info(&attributes(e, contents, reach))).collect::<Result<_, _>>()?,
            unwind: mode == StackMode::Tables,
            follows_task: matches!(reach, Reach::Command(_) | Reach::Processes(_)),
            spaces: AddressSpaces::default(),
            unwinder: Unwinder::default(),
            stacks: HashMap::new(),
            stack_list: Vec::new(),
            threads: HashMap::new(),
            thread_list: Vec::new(),
            samples: Vec::new(),
            started_ns: 0,
            lost: 0,
            throttled: 0,
            kernel_seen: contents.kernel,
            arena: Vec::new(),
        };
        session.connect()?;
        session.known_processes(reach);
        Ok(session)
    }

    /// One ring a CPU, which all events of that CPU write to.
    fn connect(&mut self) -> Result<(), PerfError> {
        let mut owners: HashMap<u32, i32> = HashMap::new();
        for (index, opened) in self.opened.iter().enumerate() {
            let fd = opened.fd.as_raw_fd();
            match owners.get(&opened.cpu) {
                None => {
                    self.rings.push(Ring::map(opened.fd.as_fd())?);
                    self.owners.push(index);
                    owners.insert(opened.cpu, fd);
                }
                Some(&owner) => {
                    // SAFETY: both descriptors are open perf events.
                    if unsafe { ioctls::SET_OUTPUT(fd, owner) } < 0 {
                        return Err(failed("share a sample buffer"));
                    }
                }
            }
            let mut id = 0u64;
            // SAFETY: the kernel writes one word.
            if unsafe { ioctls::ID(fd, &mut id) } < 0 {
                return Err(failed("read an event's id"));
            }
            self.by_id.insert(id, opened.event as u32);
        }
        Ok(())
    }

    fn known_processes(&mut self, reach: &Reach) {
        match reach {
            Reach::Command(_) => {}
            Reach::Processes(pids) => pids.iter().for_each(|pid| self.learn(*pid)),
            Reach::Cgroup(_) | Reach::Machine => {
                for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
                    if let Some(pid) = entry.file_name().to_str().and_then(|n| n.parse().ok()) {
                        self.learn(pid);
                    }
                }
            }
        }
    }

    fn learn(&mut self, pid: i32) {
        self.spaces.read(pid);
        for entry in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
            if let Some(tid) = entry.file_name().to_str().and_then(|n| n.parse().ok()) {
                let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
                self.name_thread(pid, tid, name.trim_end());
            }
        }
    }

    /// The mappings of the observed processes, shared with others that need to unwind too.
    pub(crate) fn spaces(&self) -> &AddressSpaces {
        &self.spaces
    }

    /// Kernel code is sampled too.
    pub fn sees_kernel(&self) -> bool {
        self.kernel_seen
    }

    /// Bytes of the sample buffers.
    pub fn buffer_bytes(&self) -> u64 {
        self.rings.iter().map(|r| r.bytes() as u64).sum()
    }

    /// Begins to count; `started_ns` is the observation's start. Commands begin by themselves, at `exec`.
    pub fn enable(&mut self, started_ns: u64, by_exec: bool) -> Result<(), PerfError> {
        self.started_ns = started_ns;
        if !by_exec {
            for opened in &self.opened {
                // SAFETY: an open perf event.
                if unsafe { ioctls::ENABLE(opened.fd.as_raw_fd(), 0) } < 0 {
                    return Err(failed("start an event"));
                }
            }
        }
        Ok(())
    }

    /// Stops counting.
    pub fn disable(&mut self) {
        for opened in &self.opened {
            // SAFETY: an open perf event; a failure leaves it counting until it is closed.
            unsafe { ioctls::DISABLE(opened.fd.as_raw_fd(), 0) };
        }
    }

    /// Waits until a ring is half full or the time is up. False at once when the target has ended.
    pub fn wait(&self, limit: Duration) -> bool {
        let mut watched: Vec<PollFd<'_>> =
            self.owners.iter().filter_map(|i| self.opened.get(*i)).map(|o| PollFd::new(&o.fd, PollFlags::IN)).collect();
        let limit = Timespec::try_from(limit).ok();
        // An interruption is as good as a time-out: the caller looks around and comes back.
        let _ = poll(&mut watched, limit.as_ref());
        !watched.iter().any(|fd| fd.revents().contains(PollFlags::HUP))
    }

    /// Takes what the rings hold.
    pub fn drain(&mut self) {
        let mut arena = std::mem::take(&mut self.arena);
        arena.clear();
        let mut queue: Vec<Queued> = Vec::new();
        for ring in &mut self.rings {
            ring.drain(|kind, misc, body| {
                let Some(parse) = layout(&self.parse, &self.by_id, kind, body) else { return };
                let raw = RawEventRecord::new(RecordType(kind), misc, RawData::from(body), parse);
                let start = arena.len();
                arena.extend_from_slice(body);
                queue.push(Queued { time: raw.timestamp().unwrap_or(0), kind, misc, start, end: arena.len() });
            });
        }
        queue.sort_by_key(|q| q.time);
        for q in &queue {
            let Some(body) = arena.get(q.start..q.end) else { continue };
            let Some(parse) = layout(&self.parse, &self.by_id, q.kind, body) else { continue };
            let raw = RawEventRecord::new(RecordType(q.kind), q.misc, RawData::from(body), parse);
            if let Ok(record) = raw.parse() {
                self.take(record);
            }
        }
        self.arena = arena;
    }

    fn take(&mut self, record: EventRecord<'_>) {
        match record {
            EventRecord::Sample(sample) => self.sample(&sample),
            EventRecord::Mmap2(m) if m.protection & libc::PROT_EXEC as u32 != 0 => {
                let path = m.path.as_slice();
                let path = Path::new(std::ffi::OsStr::from_bytes(&path));
                self.spaces.map(m.pid, m.address, m.length, m.page_offset, path);
            }
            EventRecord::Comm(comm) => {
                if comm.is_execve {
                    self.spaces.exec(comm.pid);
                }
                self.name_thread(comm.pid, comm.tid, &String::from_utf8_lossy(&comm.name.as_slice()));
            }
            EventRecord::Fork(fork) => {
                self.spaces.fork(fork.ppid, fork.pid);
                let parent = self.threads.get(&fork.ptid).and_then(|i| self.thread_list.get(*i as usize));
                let name = parent.map(|p| p.2.clone()).unwrap_or_default();
                self.name_thread(fork.pid, fork.tid, &name);
            }
            EventRecord::Lost(lost) => self.lost += lost.count,
            EventRecord::Throttle(_) => self.throttled += 1,
            _ => {}
        }
    }

    fn name_thread(&mut self, pid: i32, tid: i32, name: &str) -> u32 {
        let new = self.thread_list.len() as u32;
        match self.threads.get(&tid).copied() {
            Some(index) => {
                if let Some(thread) = self.thread_list.get_mut(index as usize) {
                    thread.0 = pid;
                    thread.2 = name.to_owned();
                }
                index
            }
            None => {
                self.threads.insert(tid, new);
                self.thread_list.push((pid, tid, name.to_owned()));
                new
            }
        }
    }

    fn sample(&mut self, sample: &SampleRecord<'_>) {
        let Some(&event) = sample.id.and_then(|id| self.by_id.get(&id)) else { return };
        let at = sample.timestamp.unwrap_or(0);
        if at < self.started_ns {
            return;
        }
        if self.samples.len() >= MOST_SAMPLES {
            self.lost += 1;
            return;
        }
        let (pid, tid) = (sample.pid.unwrap_or(-1), sample.tid.unwrap_or(-1));
        let thread = match self.threads.get(&tid) {
            Some(&index) => index,
            None => {
                let comm = fs::read_to_string(format!("/proc/{pid}/task/{tid}/comm")).unwrap_or_default();
                self.name_thread(pid, tid, comm.trim_end())
            }
        };
        let places = self.places(sample, pid);
        let stack = match self.stacks.get(&places) {
            Some(&index) => index,
            None => {
                let index = self.stack_list.len() as u32;
                self.stack_list.push(places.clone());
                self.stacks.insert(places, index);
                index
            }
        };
        let period = self.events.get(event as usize).map_or(0, |e| e.period);
        let weight = sample.period.unwrap_or(period).max(1);
        let cpu = sample.cpu.unwrap_or(0);
        self.samples.push(Sample { at_ns: at - self.started_ns, event, stack, thread, weight, cpu });
    }

    /// Returns the place of the sample and its callers, innermost first.
    fn places(&mut self, sample: &SampleRecord<'_>, pid: i32) -> Vec<StackPlace> {
        const USER: u64 = -512i64 as u64;
        const CONTEXTS: u64 = -4095i64 as u64;
        let mut places: Vec<StackPlace> = Vec::new();
        let mut user: Vec<u64> = Vec::new();
        let mut in_user = false;
        let mut first = true;
        if let Some(chain) = sample.callchain {
            for address in (0..chain.len()).filter_map(|i| chain.get(i)) {
                if address >= CONTEXTS {
                    in_user = address == USER;
                    first = true;
                    continue;
                }
                // All but the innermost are return addresses: look up the call.
                let address = if first { address } else { address.saturating_sub(1) };
                first = false;
                if in_user {
                    user.push(address);
                } else {
                    places.push(StackPlace::Kernel(address));
                }
            }
        }
        if let (true, Some(regs)) = (self.unwind, &sample.user_regs) {
            let register = |r: u64| regs.get(r).unwrap_or(0);
            let registers = [register(PERF_REG_X86_IP), register(PERF_REG_X86_SP), register(PERF_REG_X86_BP)];
            if registers[0] != 0 {
                if !self.spaces.knows(pid) {
                    self.spaces.read(pid);
                }
                let bytes = sample.user_stack.map(|(data, used)| {
                    let all = data.as_slice();
                    let used = usize::try_from(used).unwrap_or(0).min(all.len());
                    all[..used].to_vec()
                });
                user = self.unwinder.unwind(&self.spaces, pid, registers, &bytes.unwrap_or_default());
            }
        } else if user.is_empty()
            && places.is_empty()
            && let Some(ip) = sample.ip
        {
            user.push(ip);
        }
        for address in user {
            places.push(match self.spaces.find(pid, address) {
                Some((path, _)) if is_made_at_run_time(path) => StackPlace::Made(pid, address),
                Some((path, offset)) => StackPlace::File(path.clone(), offset),
                None => StackPlace::File(Path::new("//unknown").into(), address),
            });
        }
        places
    }

    /// Reads the counts, names every place, and gives the record.
    pub fn finish(mut self, symbolizer: &mut Symbolizer) -> Profile {
        self.drain();
        for opened in &self.opened {
            let mut words = [0u64; 3];
            let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
            if rustix::io::read(&opened.fd, bytes).is_ok_and(|n| n == 24)
                && let Some(event) = self.events.get_mut(opened.event)
            {
                event.count += words[0];
                // An event that follows a task is open once a CPU, and waits on all of them but one.
                event.enabled_ns +=
                    if self.follows_task { words[1] / self.rings.len().max(1) as u64 } else { words[1] };
                event.running_ns += words[2];
            }
        }
        self.take_profile(symbolizer)
    }

    /// The samples since the last call, named.
    pub fn take_profile(&mut self, symbolizer: &mut Symbolizer) -> Profile {
        if let Some(event) = self.events.first_mut() {
            event.lost = self.lost;
            event.throttled = self.throttled;
        }
        self.stacks.clear();
        symbolizer.forget_made();
        let stack_list = std::mem::take(&mut self.stack_list);
        let mut samples = std::mem::take(&mut self.samples);
        samples.sort_by_key(|s| s.at_ns);
        let mut frames: Vec<Frame> = Vec::new();
        let mut index: HashMap<Frame, u32> = HashMap::new();
        let mut stacks = Vec::with_capacity(stack_list.len());
        for places in &stack_list {
            let mut stack = Vec::with_capacity(places.len());
            for place in places {
                let named = match place {
                    StackPlace::Kernel(address) => symbolizer.in_kernel(*address),
                    StackPlace::File(path, offset) => symbolizer.in_file(path, *offset),
                    StackPlace::Made(pid, address) => vec![symbolizer.made_at_run_time(*pid, *address)],
                };
                for frame in named {
                    let next = frames.len() as u32;
                    stack.push(*index.entry(frame).or_insert_with_key(|frame| {
                        frames.push(frame.clone());
                        next
                    }));
                }
            }
            stacks.push(stack);
        }
        Profile { events: self.events.clone(), frames, stacks, threads: self.thread_list.clone(), samples }
    }
}

/// Whether a mapping holds code that no file has: the runtimes of languages put theirs there.
fn is_made_at_run_time(path: &Path) -> bool {
    let path = path.as_os_str().as_bytes();
    [&b"//anon"[..], b"[anon", b"/memfd:", b"/dev/zero"].iter().any(|start| path.starts_with(start))
}

/// Returns the layout of a record: samples by their event, with the id first; all others alike.
fn layout(parse: &[RecordParseInfo], by_id: &HashMap<u64, u32>, kind: u32, body: &[u8]) -> Option<RecordParseInfo> {
    let event = if kind == RecordType::SAMPLE.0 {
        let id = u64::from_ne_bytes(body.get(..8)?.try_into().ok()?);
        *by_id.get(&id)?
    } else {
        0
    };
    parse.get(event as usize).copied()
}

fn describe(event: &EventSpec) -> Event {
    let (frequency_hz, period) = match event.rate {
        Rate::Frequency(hz) => (hz, 0),
        Rate::Period(period) => (0, period),
    };
    Event { name: event.name.clone(), role: event.role.word().to_owned(), frequency_hz, period, ..Event::default() }
}

fn parse_info(attr: &sys::perf_event_attr) -> Result<RecordParseInfo, PerfError> {
    // SAFETY: a plain C structure without padding that matters; every byte was initialised.
    let bytes =
        unsafe { std::slice::from_raw_parts(std::ptr::from_ref(attr).cast::<u8>(), size_of::<sys::perf_event_attr>()) };
    let (attr, _) = PerfEventAttr::parse::<_, byteorder::LittleEndian>(bytes)
        .map_err(|source| PerfError::System { step: "understand an event's attributes", source })?;
    Ok(RecordParseInfo::new(&attr, Endianness::LittleEndian))
}

fn failed(step: &'static str) -> PerfError {
    PerfError::System { step, source: io::Error::last_os_error() }
}

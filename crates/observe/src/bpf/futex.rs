//! Calling points of futex waits, from copies of the waiters' stacks.

use super::layout::{FutexStack, USER_STACK_BYTES};
use super::runtime::in_runtime;
use crate::perf::{AddressSpaces, Symbolizer, Unwinder, Variables};
use nearmiss_record::observed::{Frame, Lock};
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

/// Place of a frame: file and offset there.
type FramePlace = (Arc<Path>, u64);

/// Stacks of futex waiters, by futex.
#[derive(Default)]
pub struct FutexSites {
    own: AddressSpaces,
    unwinder: Unwinder,
    variables: Variables,
    waits: HashMap<(u32, u64), HashMap<Vec<FramePlace>, u64>>,
}

impl FutexSites {
    /// Unwinds one stack. The sampler's mappings serve when the process is already gone.
    pub fn take(&mut self, sent: &FutexStack, sampled: Option<&AddressSpaces>) {
        let pid = sent.tgid as i32;
        if self.own.find(pid, sent.ip).is_none() {
            self.own.read(pid);
        }
        let spaces = match sampled {
            Some(sampled) if self.own.find(pid, sent.ip).is_none() => sampled,
            _ => &self.own,
        };
        let stack = match sent.stack.get(..sent.bytes as usize) {
            Some(copied) if !copied.is_empty() => copied.to_vec(),
            _ => stack_of(pid, sent.sp),
        };
        let addresses = self.unwinder.unwind(spaces, pid, [sent.ip, sent.sp, sent.bp], &stack);
        let places: Vec<FramePlace> = addresses
            .iter()
            .filter_map(|a| spaces.find(pid, *a))
            .map(|(path, offset)| (path.clone(), offset))
            .collect();
        *self.waits.entry((sent.tgid, sent.address)).or_default().entry(places).or_default() += 1;
    }

    /// Adds the calling points to a futex's row, and the variable that it is.
    pub fn describe(&mut self, row: &mut Lock, symbolizer: &mut Symbolizer, sampled: Option<&AddressSpaces>) {
        let pid = row.process.unwrap_or(0);
        let process = pid as u32;
        if let Some(space) = self.own.of(pid).or_else(|| sampled.and_then(|spaces| spaces.of(pid))) {
            row.variable = self.variables.name(space, row.address).unwrap_or_default();
        }
        let Some(stacks) = self.waits.get(&(process, row.address)) else { return };
        let mut sites: HashMap<Frame, u64> = HashMap::new();
        let mut purposes: BTreeMap<&str, u64> = BTreeMap::new();
        let mut best: Option<(u64, Vec<Frame>)> = None;
        for (places, count) in stacks {
            let frames: Vec<Frame> =
                places.iter().flat_map(|(path, offset)| symbolizer.in_file(path, *offset)).collect();
            *purposes.entry(purpose(&frames)).or_default() += count;
            let caller = frames.iter().position(|f| !in_runtime(f)).unwrap_or(0);
            let frames: Vec<Frame> = frames.into_iter().skip(caller).collect();
            if let Some(site) = frames.first() {
                *sites.entry(site.clone()).or_default() += count;
            }
            if best.as_ref().is_none_or(|(most, _)| count > most) {
                best = Some((*count, frames));
            }
        }
        let known = purposes.into_iter().filter(|(purpose, _)| !purpose.is_empty());
        row.name = known.max_by_key(|(_, count)| *count).map_or_else(String::new, |(purpose, _)| purpose.to_owned());
        row.stack = best.map(|(_, frames)| frames).unwrap_or_default();
        row.call_sites = sites.into_iter().collect();
        row.call_sites.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.line.cmp(&b.0.line)));
    }
}

/// The top of the stack of a task that slept already when the observation began, which the kernel's side cannot read.
fn stack_of(pid: i32, from: u64) -> Vec<u8> {
    let mut copied = vec![0; USER_STACK_BYTES];
    let read = fs::File::open(format!("/proc/{pid}/mem")).and_then(|memory| memory.read_at(&mut copied, from));
    copied.truncate(read.unwrap_or(0));
    copied
}

/// Names the purpose of the futex in the program, by the libc function that waits on it.
fn purpose(frames: &[Frame]) -> &'static str {
    let named = |part: &str| frames.iter().any(|f| f.function.contains(part));
    if named("mutex_cond_lock") {
        "mutex" // taken again after a wait for a condition
    } else if named("Condvar") || named("cond_wait") || named("cond_timedwait") || named("cond_clockwait") {
        "condition variable"
    } else if named("pthread_join") || named("clockjoin") || named("timedjoin") {
        "thread join"
    } else if named("sem_wait") || named("sem_timedwait") || named("new_sem") {
        "semaphore"
    } else if named("barrier_wait") {
        "barrier"
    } else if named("::park") {
        "parked thread"
    } else if named("rwlock") || named("RwLock") {
        "rwlock"
    } else if named("mutex_lock")
        || named("lll_lock")
        || named("mutex_timedlock")
        || named("Mutex")
        || named("lock_contended")
    {
        "mutex"
    } else {
        ""
    }
}

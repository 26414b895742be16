//! Calling points of futex waits, from copies of the waiters' stacks.

use super::layout::FutexStack;
use crate::perf::{AddressSpaces, Symbolizer, Unwinder};
use nearmiss_record::observed::{Frame, Lock};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// Where a frame lies: file and offset there.
type Place = (Arc<Path>, u64);

/// Stacks of futex waiters, by futex.
#[derive(Default)]
pub struct FutexSites {
    own: AddressSpaces,
    unwinder: Unwinder,
    waits: HashMap<(u32, u64), HashMap<Vec<Place>, u64>>,
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
        let stack = sent.stack.get(..sent.bytes as usize).unwrap_or(&[]);
        let addresses = self.unwinder.unwind(spaces, pid, [sent.ip, sent.sp, sent.bp], stack);
        let places: Vec<Place> = addresses
            .iter()
            .filter_map(|a| spaces.find(pid, *a))
            .map(|(path, offset)| (path.clone(), offset))
            .collect();
        *self.waits.entry((sent.tgid, sent.address)).or_default().entry(places).or_default() += 1;
    }

    /// Adds the calling points to a futex's row.
    pub fn describe(&mut self, row: &mut Lock, symbolizer: &mut Symbolizer) {
        let process = row.process.unwrap_or(0) as u32;
        let Some(stacks) = self.waits.get(&(process, row.address)) else { return };
        let mut sites: HashMap<Frame, u64> = HashMap::new();
        let mut best: Option<(u64, Vec<Frame>)> = None;
        for (places, count) in stacks {
            let frames: Vec<Frame> =
                places.iter().flat_map(|(path, offset)| symbolizer.in_file(path, *offset)).collect();
            if row.name.is_empty() {
                row.name = purpose(&frames).to_owned();
            }
            let caller = frames.iter().position(|f| !in_runtime(f)).unwrap_or(0);
            let frames: Vec<Frame> = frames.into_iter().skip(caller).collect();
            if let Some(site) = frames.first() {
                *sites.entry(site.clone()).or_default() += count;
            }
            if best.as_ref().is_none_or(|(most, _)| count > most) {
                best = Some((*count, frames));
            }
        }
        row.stack = best.map(|(_, frames)| frames).unwrap_or_default();
        row.call_sites = sites.into_iter().collect();
        row.call_sites.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.line.cmp(&b.0.line)));
    }
}

/// The language's runtime, whose caller is the program.
fn in_runtime(frame: &Frame) -> bool {
    let file = frame.module.rsplit('/').next().unwrap_or(&frame.module);
    let function = frame.function.trim_start_matches('<');
    ["libc.so", "libc-", "libpthread", "libstdc++", "ld-linux", "[vdso]"].iter().any(|name| file.starts_with(name))
        || ["std::", "core::", "parking_lot", "pthread_", "__pthread", "__lll", "__futex", "__GI_"]
            .iter()
            .any(|name| function.starts_with(name))
}

/// What the futex is to the program, by the libc function that waits on it.
fn purpose(frames: &[Frame]) -> &'static str {
    let named = |part: &str| frames.iter().any(|f| f.function.contains(part));
    if named("Condvar") || named("cond_wait") || named("cond_timedwait") || named("cond_clockwait") {
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

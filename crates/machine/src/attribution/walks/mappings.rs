//! Mappings without a file, by process.

use super::super::tracker::USER_END;
use nearmiss_record::maps::Event;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// By first address: the address behind the last, and whether large pages may lie there.
type OfProcess = BTreeMap<u64, (u64, bool)>;

/// See the module's text.
#[derive(Debug, Default)]
pub(super) struct Mappings {
    running: FxHashMap<u32, OfProcess>,
    /// As processes left them: a run is looked at when its processes have ended.
    ended: FxHashMap<u32, OfProcess>,
}

impl Mappings {
    pub fn event(&mut self, event: &Event) {
        match event {
            Event::Map { pid, mapping } => {
                let named = mapping.path.starts_with('[') && mapping.path != "[heap]";
                let is_anonymous = !mapping.is_file() && !named;
                self.map(*pid, mapping.start, mapping.end.min(USER_END), is_anonymous);
            }
            Event::Fork { pid, parent, .. } if pid != parent => {
                let of_parent = self.running.get(parent).cloned().unwrap_or_default();
                // Another CPU may have reported already what the child mapped since.
                let own = self.running.insert(*pid, of_parent).unwrap_or_default();
                own.into_iter().for_each(|(start, (end, is_anonymous))| self.map(*pid, start, end, is_anonymous));
            }
            Event::Name { pid, exec: true, .. } => drop(self.running.remove(pid)),
            Event::Exit { pid, tid } if pid == tid => {
                let of_process = self.running.remove(pid).unwrap_or_default();
                self.ended.insert(*pid, of_process);
            }
            _ => {}
        }
    }

    /// The kernel reports a mapping that grew as a whole, and none that went: what lay there before is gone.
    fn map(&mut self, pid: u32, start: u64, end: u64, is_anonymous: bool) {
        let of_process = self.running.entry(pid).or_default();
        let below = of_process.range(..start).next_back().map(|(from, (to, kind))| (*from, *to, *kind));
        if let Some((from, to, kind)) = below.filter(|(_, to, _)| *to > start) {
            of_process.insert(from, (start, kind));
            if to > end {
                of_process.insert(end, (to, kind));
            }
        }
        let inside: Vec<u64> = of_process.range(start..end).map(|(from, _)| *from).collect();
        for from in inside {
            if let Some(rest) = of_process.remove(&from).filter(|(to, _)| *to > end) {
                of_process.insert(end, rest);
            }
        }
        of_process.insert(start, (end, is_anonymous));
    }

    /// Whether one mapping without a file has all of this range, or had it when the process ended.
    pub fn is_anonymous(&self, pid: u32, (start, end): (u64, u64)) -> bool {
        let of_process = self.running.get(&pid).or_else(|| self.ended.get(&pid));
        let below = of_process.and_then(|of_process| of_process.range(..=start).next_back());
        below.is_some_and(|(_, (to, is_anonymous))| *is_anonymous && *to >= end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_ended_still_has_its_mappings_and_its_successor_has_none_of_them() {
        let mut mappings = Mappings::default();
        mappings.map(1, 0x1000, 0x9000, true);
        mappings.event(&Event::Exit { pid: 1, tid: 7 });
        mappings.event(&Event::Exit { pid: 1, tid: 1 });
        assert!(mappings.is_anonymous(1, (0x1000, 0x9000)));
        mappings.event(&Event::Fork { pid: 1, tid: 1, parent: 2 });
        assert!(!mappings.is_anonymous(1, (0x1000, 0x9000)));
    }

    #[test]
    fn a_file_mapped_into_anonymous_memory_cuts_it() {
        let mut mappings = Mappings::default();
        mappings.map(1, 0x1000, 0x9000, true);
        mappings.map(1, 0x4000, 0x5000, false);
        let whole = |from, to| mappings.is_anonymous(1, (from, to));
        assert_eq!([whole(0x1000, 0x4000), whole(0x5000, 0x9000), whole(0x3000, 0x6000)], [true, true, false]);
        assert_eq!([whole(0x4000, 0x5000), whole(0, 0x1000), whole(0x8000, 0xa000)], [false; 3]);
        // The mapping grew, over all that lay there.
        mappings.map(1, 0x1000, 0xa000, true);
        assert!(mappings.is_anonymous(1, (0x1000, 0xa000)) && !mappings.is_anonymous(2, (0x1000, 0xa000)));
    }
}

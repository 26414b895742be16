//! Every mapping of every process of a run, by when it was made.
//!
//! Instruction ids are given out in the order of translation, so "the ids seen so far" is the log's clock: an
//! instruction with id `i` was translated under the mappings noted when fewer than `i` ids had been seen.

use super::{Event, Mapping};
use crate::side::Insn;
use std::collections::HashMap;

/// Longest chain of forks that is followed for inherited mappings.
const MAX_ANCESTORS: usize = 64;

/// See the module's text.
#[derive(Clone, Debug, Default)]
pub struct MapLog {
    images: Vec<Image>,
    /// Images by process, oldest first.
    processes: HashMap<u32, Vec<u32>>,
    /// Processes by `task_struct`: `(ids seen, process)`, oldest first.
    tasks: HashMap<u64, Vec<(u32, u32)>>,
}

/// Mappings of a process between two executions of a program.
#[derive(Clone, Debug)]
struct Image {
    from: u32,
    maps: Vec<(u32, Mapping)>,
    /// A program began with the image.
    executed: bool,
    /// The process of the image ended.
    ended: bool,
    /// Image forked from, and how many of its mappings are inherited.
    parent: Option<(u32, usize)>,
}

/// Place of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InsnPlace<'a> {
    /// Path of the mapped file, or `//anon` and the like.
    pub path: &'a str,
    /// Offset in that file.
    pub file_offset: u64,
    /// A file backs the mapping.
    pub is_file: bool,
}

impl MapLog {
    /// Notes that `task` is a thread of process `pid`. `seen`: instruction ids seen so far.
    pub fn task(&mut self, seen: u32, task: u64, pid: u32) {
        let known = self.tasks.entry(task).or_default();
        if known.last().is_none_or(|last| last.1 != pid) {
            known.push((seen, pid));
        }
    }

    /// Notes an event of a perf ring. `seen`: instruction ids seen so far.
    pub fn event(&mut self, seen: u32, event: &Event) {
        match event {
            Event::Map { pid, mapping } => {
                let image = self.current(*pid);
                self.images[image].maps.push((seen, mapping.clone()));
            }
            Event::Name { pid, exec: true, .. } => {
                // Its program before was an image too, known or not.
                self.current(*pid);
                let image = self.begin(seen, *pid);
                self.images[image].executed = true;
            }
            Event::Fork { pid, parent, .. } if pid != parent => self.fork(seen, *pid, *parent),
            Event::Exit { pid, tid } if pid == tid => {
                let image = self.current(*pid);
                self.images[image].ended = true;
            }
            Event::Name { .. } | Event::Fork { .. } | Event::Exit { .. } | Event::Lost(_) => {}
        }
    }

    /// Another CPU may have reported already what the child did since: then it has an image of its own, which lies over
    /// its parent's.
    fn fork(&mut self, seen: u32, pid: u32, parent: u32) {
        let from = self.current(parent);
        let own = self.processes.get(&pid).and_then(|images| images.last()).map(|image| *image as usize);
        let image = own.filter(|own| !self.images[*own].ended).unwrap_or_else(|| self.begin(seen, pid));
        if !self.images[image].executed {
            self.images[image].parent = Some((from as u32, self.images[from].maps.len()));
        }
    }

    fn begin(&mut self, seen: u32, pid: u32) -> usize {
        self.processes.entry(pid).or_default().push(self.images.len() as u32);
        self.images.push(Image { from: seen, maps: Vec::new(), executed: false, ended: false, parent: None });
        self.images.len() - 1
    }

    /// The process's newest image; one of unknown content and age if it is not known.
    fn current(&mut self, pid: u32) -> usize {
        match self.processes.get(&pid).and_then(|images| images.last()) {
            Some(image) => *image as usize,
            None => self.begin(0, pid),
        }
    }

    /// Process of a task when instruction `id` was translated.
    pub fn process(&self, task: u64, id: u32) -> Option<u32> {
        let known = self.tasks.get(&task)?;
        known.iter().rev().find(|(seen, _)| *seen <= id).or(known.first()).map(|(_, pid)| *pid)
    }

    /// Returns the place of an instruction; `None` if nothing known is mapped there.
    pub fn place(&self, id: u32, insn: &Insn) -> Option<InsnPlace<'_>> {
        let mapping = self.code_of(insn.task, id, insn.vaddr)?;
        Some(InsnPlace {
            path: &mapping.path,
            file_offset: mapping.file_offset.saturating_add(insn.vaddr - mapping.start),
            is_file: mapping.is_file(),
        })
    }

    fn code_of(&self, task: u64, id: u32, vaddr: u64) -> Option<&Mapping> {
        let images = self.processes.get(&self.process(task, id)?)?;
        // Never a newer one: code seen before it began was not translated in it. An older one may be right, for an id
        // may be seen some time after its translation.
        let of_time = images.iter().rev().map(|i| *i as usize).filter(|i| self.images[*i].from <= id);
        of_time.into_iter().find_map(|i| self.find(i, id, vaddr))
    }

    fn find(&self, image: usize, id: u32, vaddr: u64) -> Option<&Mapping> {
        let (mut image, mut visible) = (self.images.get(image)?, usize::MAX);
        for _ in 0..MAX_ANCESTORS {
            let maps = &image.maps[..visible.min(image.maps.len())];
            let holds = |m: &Mapping| (m.start..m.end).contains(&vaddr);
            let mut newest_first = maps.iter().rev().filter(|(_, m)| holds(m));
            // The newest of that time, else the first that came after.
            let found = newest_first.clone().find(|(seen, _)| *seen <= id).or_else(|| newest_first.next_back());
            if let Some((_, mapping)) = found {
                return Some(mapping);
            }
            let (parent, inherited) = image.parent?;
            (image, visible) = (self.images.get(parent as usize)?, inherited);
        }
        None
    }

    /// Paths of all mapped files, each once, in order of first mapping.
    pub fn files(&self) -> Vec<&str> {
        let mut seen = std::collections::HashSet::new();
        let maps = self.images.iter().flat_map(|i| &i.maps);
        maps.filter(|(_, m)| m.is_file() && seen.insert(m.path.as_str())).map(|(_, m)| m.path.as_str()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pid: u32, start: u64, path: &str) -> Event {
        let mapping = Mapping { start, end: start + 0x1000, file_offset: 0x200, executable: true, path: path.into() };
        Event::Map { pid, mapping }
    }

    fn exec(pid: u32) -> Event {
        Event::Name { pid, tid: pid, exec: true, name: "x".into() }
    }

    #[test]
    fn the_same_address_is_another_file_after_exec() {
        let mut log = MapLog::default();
        log.task(0, 0xf00, 5);
        log.event(0, &exec(5));
        log.event(1, &map(5, 0x1000, "/bin/sh"));
        log.event(40, &exec(5));
        log.event(41, &map(5, 0x1000, "/bin/ls"));
        assert_eq!(
            place_of(&log, 0xf00, 10, 0x1010),
            Some(InsnPlace { path: "/bin/sh", file_offset: 0x210, is_file: true })
        );
        assert_eq!(place_of(&log, 0xf00, 50, 0x1010).unwrap().path, "/bin/ls");
        assert_eq!(place_of(&log, 0xf00, 50, 0x3000), None);
        assert_eq!(place_of(&log, 0xbad, 50, 0x1010), None);
        assert_eq!(log.files(), ["/bin/sh", "/bin/ls"]);
    }

    fn place_of(log: &MapLog, task: u64, id: u32, vaddr: u64) -> Option<InsnPlace<'_>> {
        log.place(id, &Insn { vaddr, task, ..Insn::default() })
    }

    #[test]
    fn code_that_ran_before_an_exec_is_not_in_the_new_program() {
        let mut log = MapLog::default();
        log.task(0, 0xf00, 5);
        log.event(20, &exec(5));
        log.event(21, &map(5, 0x1000, "/bin/ls"));
        assert_eq!(place_of(&log, 0xf00, 19, 0x1010), None);
        assert_eq!(place_of(&log, 0xf00, 20, 0x1010).unwrap().path, "/bin/ls");
    }

    #[test]
    fn a_child_has_what_its_parent_had_at_the_fork() {
        let mut log = MapLog::default();
        log.event(1, &map(5, 0x1000, "/bin/sh"));
        log.event(2, &Event::Fork { pid: 6, parent: 5, tid: 6 });
        log.event(3, &map(5, 0x9000, "/lib/late.so"));
        log.task(4, 0xf06, 6);
        assert_eq!(place_of(&log, 0xf06, 9, 0x1004).unwrap().path, "/bin/sh");
        assert_eq!(place_of(&log, 0xf06, 9, 0x9004), None);
    }

    #[test]
    fn a_fork_that_is_reported_late_leaves_what_the_child_did_since() {
        let mut log = MapLog::default();
        log.event(1, &map(5, 0x1000, "/bin/sh"));
        log.event(2, &map(6, 0x9000, "/lib/own.so"));
        log.event(2, &exec(7));
        log.event(2, &map(7, 0x1000, "/bin/ls"));
        log.task(2, 0xf06, 6);
        log.task(2, 0xf07, 7);
        log.event(3, &Event::Fork { pid: 6, parent: 5, tid: 6 });
        log.event(3, &Event::Fork { pid: 7, parent: 5, tid: 7 });
        let path = |task, vaddr| place_of(&log, task, 9, vaddr).map(|place| place.path);
        assert_eq!([path(0xf06, 0x1004), path(0xf06, 0x9004)], [Some("/bin/sh"), Some("/lib/own.so")]);
        assert_eq!(path(0xf07, 0x1004), Some("/bin/ls"));
    }

    #[test]
    fn a_number_serves_another_process_after_its_end() {
        let mut log = MapLog::default();
        log.event(1, &map(6, 0x9000, "/lib/own.so"));
        log.event(2, &Event::Exit { pid: 6, tid: 6 });
        log.event(3, &Event::Fork { pid: 6, parent: 5, tid: 6 });
        log.task(3, 0xf06, 6);
        assert_eq!(log.process(0xf06, 9), Some(6));
        log.event(4, &map(6, 0x1000, "/bin/sh"));
        assert_eq!(place_of(&log, 0xf06, 9, 0x1004).unwrap().path, "/bin/sh");
        assert_eq!(log.images.len(), 3, "one of each process that had the number, and the parent's");
    }

    #[test]
    fn a_task_struct_may_serve_another_process_later() {
        let mut log = MapLog::default();
        log.event(1, &map(5, 0x1000, "/bin/a"));
        log.event(1, &map(6, 0x1000, "/bin/b"));
        log.task(1, 0xf00, 5);
        log.task(30, 0xf00, 6);
        assert_eq!(place_of(&log, 0xf00, 29, 0x1000).unwrap().path, "/bin/a");
        assert_eq!(place_of(&log, 0xf00, 30, 0x1000).unwrap().path, "/bin/b");
    }
}

//! Owner of each CPU's work: the command, another task, none (idle), or the timer.
//!
//! The command is the process that runs at the BEGIN mark, and every process that descends from it, whoever adopts it
//! later. The kernel works for the command while one of the command's tasks is current; work of a kernel thread on its
//! behalf is the kernel thread's. Work from before a task is known is another task's.
//!
//! Each CPU reports its events by itself, so that the fork of a process may come behind what the process did since: its
//! own forks are kept for that time.

use nearmiss_record::maps::{Decoder, Event};
use nearmiss_record::reference::{Control, MARK_BEGIN};
use rustc_hash::{FxHashMap, FxHashSet};

/// Interrupts nest no deeper than this; entries beyond are not kept apart.
const MAX_NESTING: u32 = 60;

/// Owner of the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// Work of the command, and of the kernel for the command.
    Command = 0,
    /// Work of another task, and of interrupts on idle CPUs.
    Others = 1,
    /// None: the CPU is idle.
    Idle = 2,
    /// Work of the timer, whichever task it interrupts.
    Ticks = 3,
}

/// Kind of task a CPU runs, interrupts or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Command = 0,
    Other = 1,
    Idle = 2,
}

#[derive(Debug)]
struct Cpu {
    /// Process of the running task.
    pid: Option<u32>,
    class: Class,
    /// One bit an interrupt handler entered and not left, the innermost lowest: 1 = the timer's.
    interrupts: u64,
    nesting: u32,
    owner: Owner,
    decoder: Decoder,
}

impl Cpu {
    fn new() -> Self {
        let (class, owner) = (Class::Other, Owner::Others);
        Cpu { pid: None, class, interrupts: 0, nesting: 0, owner, decoder: Decoder::default() }
    }

    /// Enters an interrupt handler (`Some(of the timer)`) or leaves the innermost.
    fn interrupt(&mut self, entered: Option<bool>) {
        match entered {
            Some(timer) if self.nesting < MAX_NESTING => {
                self.interrupts = self.interrupts << 1 | u64::from(timer);
                self.nesting += 1;
            }
            Some(_) => {}
            None => {
                self.interrupts >>= 1;
                self.nesting = self.nesting.saturating_sub(1);
            }
        }
    }

    fn judge(&mut self, command: &FxHashSet<u32>) {
        if self.class != Class::Idle {
            let of_command = self.pid.is_some_and(|pid| command.contains(&pid));
            self.class = if of_command { Class::Command } else { Class::Other };
        }
        self.owner = match self.class {
            _ if self.interrupts != 0 => Owner::Ticks,
            Class::Command => Owner::Command,
            Class::Idle if self.nesting == 0 => Owner::Idle,
            Class::Other | Class::Idle => Owner::Others,
        };
    }
}

/// Follows the control records of a stream; see the module's text.
#[derive(Debug)]
pub struct Running {
    cpus: Vec<Cpu>,
    /// Processes.
    command: FxHashSet<u32>,
    /// Parents of the other processes.
    others: FxHashMap<u32, u32>,
    /// CPU of the BEGIN mark if its process was not known then.
    begins: Option<usize>,
    /// Times that a task of the command made way for another task.
    switches: u64,
}

impl Running {
    /// On so many CPUs.
    pub fn new(cpus: usize) -> Self {
        Running {
            cpus: (0..cpus.max(1)).map(|_| Cpu::new()).collect(),
            command: FxHashSet::default(),
            others: FxHashMap::default(),
            begins: None,
            switches: 0,
        }
    }

    /// Returns the owner of CPU `cpu`'s current work.
    #[inline]
    pub fn owner(&self, cpu: usize) -> Owner {
        self.cpus[cpu.min(self.cpus.len() - 1)].owner
    }

    /// How often a task of the command made way for another task.
    pub fn switches(&self) -> u64 {
        self.switches
    }

    pub(crate) fn class(&self, cpu: usize) -> Class {
        self.cpus[cpu].class
    }

    /// Takes a control record of a CPU.
    pub fn control(&mut self, vcpu: u32, control: &Control<'_>) {
        let at = (vcpu as usize).min(self.cpus.len() - 1);
        let cpu = &mut self.cpus[at];
        match control {
            Control::Switch { task, outgoing, pid: tid, tgid, .. } => {
                self.switches += u64::from(cpu.class == Class::Command && task != outgoing);
                cpu.pid = Some(*tgid);
                cpu.class = if *tid == 0 { Class::Idle } else { Class::Other };
                // An interrupt that ends in a switch has been left by the task that goes on.
                (cpu.interrupts, cpu.nesting) = (0, 0);
                self.begins = self.begins.filter(|begins| *begins != at);
            }
            Control::Mark { number: MARK_BEGIN, .. } => {
                match cpu.pid {
                    Some(pid) => self.command.extend([pid]),
                    None => self.begins = Some(at),
                }
                return self.judge_all();
            }
            Control::Irq(entered) => cpu.interrupt(*entered),
            Control::Maps(bytes) => {
                self.maps(at, bytes, |_| ());
                return;
            }
            _ => return,
        }
        self.cpus[at].judge(&self.command);
    }

    /// Decodes bytes of a CPU's ring, and passes its events to `sink`; `false` if they are damaged: events before the
    /// damage are passed on all the same.
    pub(crate) fn maps(&mut self, cpu: usize, bytes: &[u8], mut sink: impl FnMut(Event)) -> bool {
        let mut decoder = std::mem::take(&mut self.cpus[cpu].decoder);
        let sound = decoder.feed(bytes, |event| {
            self.event(cpu, &event);
            sink(event);
        });
        self.cpus[cpu].decoder = decoder;
        self.judge_all();
        sound.is_ok()
    }

    /// A process that turns out to be the command's may run already, on any CPU.
    fn judge_all(&mut self) {
        self.cpus.iter_mut().for_each(|cpu| cpu.judge(&self.command));
    }

    /// A process is the command's, with all that descend from it.
    fn adopt(&mut self, pid: u32) {
        self.others.remove(&pid);
        if !self.command.insert(pid) {
            return;
        }
        let children: Vec<u32> =
            self.others.iter().filter(|(_, parent)| **parent == pid).map(|(child, _)| *child).collect();
        children.into_iter().for_each(|child| self.adopt(child));
    }

    fn event(&mut self, cpu: usize, event: &Event) {
        match event {
            Event::Fork { pid, parent, .. } if pid != parent => {
                // A number that was the command's may serve another process later.
                if self.command.contains(parent) {
                    self.adopt(*pid);
                } else {
                    self.command.remove(pid);
                    self.others.insert(*pid, *parent);
                }
            }
            // A CPU's ring describes the task that runs on it.
            Event::Map { pid, .. } | Event::Name { pid, exec: true, .. } if self.cpus[cpu].pid.is_none() => {
                self.cpus[cpu].pid = Some(*pid);
                if self.begins == Some(cpu) {
                    self.begins = None;
                    self.command.insert(*pid);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearmiss_record::reference::Usage;

    fn switch(running: &mut Running, cpu: u32, tid: u32, tgid: u32) {
        let (comm, usage) = (String::new(), Usage::default());
        running.control(cpu, &Control::Switch { task: 0, pid: tid, tgid, mm: 0, outgoing: 0, comm, usage });
    }

    fn begin(running: &mut Running, cpu: u32) {
        running.control(cpu, &Control::Mark { number: 1, usage: Usage::default() });
    }

    /// As the kernel writes it: process and task, each of the child and of its parent.
    fn fork(running: &mut Running, cpu: u32, pid: u32, parent: u32) {
        let mut bytes = 7u32.to_le_bytes().to_vec();
        bytes.extend([0u16.to_le_bytes(), 32u16.to_le_bytes()].concat());
        [pid, parent, pid, parent, 0, 0].iter().for_each(|v| bytes.extend(v.to_le_bytes()));
        running.control(cpu, &Control::Maps(&bytes));
    }

    #[test]
    fn descendants_of_the_process_at_begin_are_the_commands() {
        let mut running = Running::new(2);
        assert_eq!(running.owner(0), Owner::Others, "nothing is known yet");
        switch(&mut running, 0, 50, 50);
        begin(&mut running, 0);
        assert_eq!([0, 1].map(|cpu| running.owner(cpu)), [Owner::Command, Owner::Others]);
        fork(&mut running, 0, 51, 50);
        fork(&mut running, 0, 52, 51);
        fork(&mut running, 1, 60, 1);
        let owner = [(51, 51), (52, 52), (53, 52), (60, 60), (1, 1)].map(|(tid, tgid)| {
            switch(&mut running, 1, tid, tgid);
            running.owner(1)
        });
        assert_eq!(owner, [Owner::Command, Owner::Command, Owner::Command, Owner::Others, Owner::Others]);
    }

    #[test]
    fn a_switch_counts_where_the_command_makes_way() {
        let mut running = Running::new(1);
        let mut to = |outgoing: u64, task: u64, tid: u32| {
            let (comm, usage) = (String::new(), Usage::default());
            running.control(0, &Control::Switch { task, pid: tid, tgid: tid, mm: 0, outgoing, comm, usage });
            if tid == 50 {
                begin(&mut running, 0);
            }
            running.switches()
        };
        // The task is reported again where a part of a recording begins.
        assert_eq!([to(0, 1, 50), to(1, 1, 50), to(1, 2, 7), to(2, 1, 50), to(1, 3, 0)], [0, 0, 1, 1, 2]);
    }

    #[test]
    fn a_process_that_runs_before_its_fork_is_reported_becomes_the_commands() {
        let mut running = Running::new(2);
        switch(&mut running, 0, 50, 50);
        begin(&mut running, 0);
        switch(&mut running, 1, 51, 51);
        assert_eq!(running.owner(1), Owner::Others);
        fork(&mut running, 0, 51, 50);
        assert_eq!(running.owner(1), Owner::Command);
    }

    #[test]
    fn a_process_whose_forks_are_reported_before_its_own_is_the_commands_with_its_children() {
        let mut running = Running::new(2);
        switch(&mut running, 0, 50, 50);
        begin(&mut running, 0);
        fork(&mut running, 1, 53, 52);
        fork(&mut running, 1, 52, 51);
        switch(&mut running, 1, 53, 53);
        assert_eq!(running.owner(1), Owner::Others);
        fork(&mut running, 0, 51, 50);
        assert_eq!(running.owner(1), Owner::Command);
    }

    #[test]
    fn a_number_of_the_commands_may_serve_another_process_later() {
        let mut running = Running::new(1);
        switch(&mut running, 0, 50, 50);
        begin(&mut running, 0);
        fork(&mut running, 0, 51, 50);
        fork(&mut running, 0, 51, 2);
        switch(&mut running, 0, 51, 51);
        assert_eq!(running.owner(0), Owner::Others);
    }

    #[test]
    fn ticks_are_apart_and_other_interrupts_are_the_interrupted_tasks() {
        let mut running = Running::new(1);
        switch(&mut running, 0, 50, 50);
        begin(&mut running, 0);
        let mut interrupted = |tid: u32, entered: &[Option<bool>]| {
            switch(&mut running, 0, tid, tid);
            entered.iter().for_each(|entered| running.control(0, &Control::Irq(*entered)));
            running.owner(0)
        };
        for (tid, own, device) in
            [(50, Owner::Command, Owner::Command), (7, Owner::Others, Owner::Others), (0, Owner::Idle, Owner::Others)]
        {
            assert_eq!(interrupted(tid, &[]), own);
            assert_eq!(interrupted(tid, &[Some(false)]), device);
            assert_eq!(interrupted(tid, &[Some(false), Some(true)]), Owner::Ticks);
            assert_eq!(interrupted(tid, &[Some(false), Some(true), None]), device);
            assert_eq!(interrupted(tid, &[Some(true), None]), own);
        }
    }

    #[test]
    fn the_first_task_may_be_named_by_its_ring() {
        let mut running = Running::new(1);
        begin(&mut running, 0);
        let mut bytes = 3u32.to_le_bytes().to_vec();
        bytes.extend([(1u16 << 13).to_le_bytes(), 24u16.to_le_bytes()].concat());
        bytes.extend([50u32.to_le_bytes(), 50u32.to_le_bytes()].concat());
        bytes.extend(b"sort\0\0\0\0");
        running.control(0, &Control::Maps(&bytes));
        assert_eq!(running.owner(0), Owner::Command);
    }
}

//! System calls that do little each and take much together.

use crate::Traced;
use nearmiss_record::entered::{entries, system_call};
use nearmiss_record::model::StackRow;
use nearmiss_record::words::{grouped, percent};
use std::collections::BTreeMap;

/// Share of the cycles from which the calls of one kind are worth a paragraph.
const LEAST_SHARE: f64 = 0.1;
/// Fewer calls show no habit.
const LEAST_CALLS: u64 = 100;
/// Cycles of a call that copies or computes so much that the way into the kernel is no matter.
const MOST_CYCLES: u64 = 10_000;

/// Calls that look for events, which `observe --polls` records.
const POLLS: [&str; 7] = ["poll", "ppoll", "select", "pselect6", "epoll_wait", "epoll_pwait", "epoll_pwait2"];

/// Cycles and entries of one kind of system call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Calls {
    cycles: u64,
    entered: u64,
}

/// Returns a paragraph on the system call that takes most of the cycles, if each call does little.
pub(super) fn frequent(traced: &Traced) -> Option<String> {
    let mut calls = cycles(&traced.model.stacks);
    for (function, entered) in entries(&traced.side, &traced.symbols) {
        let name = traced.symbols.functions.get(function as usize).and_then(|function| system_call(&function.name));
        if let Some(calls) = name.and_then(|name| calls.get_mut(name)) {
            calls.entered += entered;
        }
    }
    paragraph(&calls, traced.model.totals.cycles)
}

/// Cycles by system call, what it calls included, but for interrupts that come meanwhile.
fn cycles(stacks: &[StackRow]) -> BTreeMap<&str, Calls> {
    let mut calls: BTreeMap<&str, Calls> = BTreeMap::new();
    for stack in stacks {
        let Some(at) = stack.frames.iter().position(|frame| system_call(frame).is_some()) else { continue };
        let interrupted = stack.frames[at..].iter().any(|frame| frame.starts_with("asm_sysvec_"));
        if let Some(name) = system_call(&stack.frames[at]).filter(|_| !interrupted) {
            calls.entry(name).or_default().cycles += stack.cycles;
        }
    }
    calls
}

fn paragraph(calls: &BTreeMap<&str, Calls>, cycles: u64) -> Option<String> {
    let (name, most) = calls.iter().max_by_key(|(_, calls)| calls.cycles)?;
    let share = most.cycles as f64 / cycles.max(1) as f64;
    let each = most.cycles / most.entered.max(1);
    (share >= LEAST_SHARE && most.entered >= LEAST_CALLS && each <= MOST_CYCLES).then(|| {
        format!(
            "{} of the modelled cycles are in {} system calls `{name}`, {} cycles each. The way into the kernel and back \
             comes on top, which the model does not price. Call it less often: more work a call, or a wait for an event \
             instead of one look after another{}",
            percent(share),
            grouped(most.entered),
            grouped(each),
            if POLLS.contains(name) { " (`nearmiss observe --polls -- CMD` counts events per call)" } else { "" }
        )
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn stack(frames: &[&str], cycles: u64) -> StackRow {
        StackRow { frames: frames.iter().map(|frame| (*frame).to_owned()).collect(), cycles, ..StackRow::default() }
    }

    #[test]
    fn the_cycles_of_a_call_are_those_of_all_that_it_calls_but_of_interrupts() {
        let stacks = [
            stack(&["main"], 50),
            stack(&["entry_SYSCALL_64_after_hwframe", "__x64_sys_read"], 10),
            stack(&["entry_SYSCALL_64_after_hwframe", "__x64_sys_read", "vfs_read"], 20),
            stack(&["entry_SYSCALL_64_after_hwframe", "__x64_sys_read", "asm_sysvec_apic_timer_interrupt"], 40),
            // A call that comes behind an interrupt in the stack is a call all the same.
            stack(&["asm_sysvec_apic_timer_interrupt", "__x64_sys_poll"], 5),
        ];
        let found: Vec<_> = cycles(&stacks).into_iter().map(|(name, calls)| (name, calls.cycles)).collect();
        assert_eq!(found, [("poll", 5), ("read", 30)]);
    }

    #[test]
    fn many_small_calls_are_named_with_their_number_and_price() {
        let calls = |cycles, entered| BTreeMap::from([("recvfrom", Calls { cycles, entered })]);
        let text = paragraph(&calls(260_000, 200), 1_000_000).unwrap();
        assert!(
            text.starts_with("26% of the modelled cycles are in 200 system calls `recvfrom`, 1,300 cycles each"),
            "{text}"
        );
        assert!(text.ends_with("one look after another"), "{text}");
        let polls = BTreeMap::from([("pselect6", Calls { cycles: 260_000, entered: 200 })]);
        assert!(paragraph(&polls, 1_000_000).unwrap().ends_with("counts events per call)"));
        assert_eq!(paragraph(&calls(90_000, 200), 1_000_000), None, "a small share");
        assert_eq!(paragraph(&calls(260_000, 99), 1_000_000), None, "few calls");
        assert_eq!(paragraph(&calls(2_000_000, 100), 4_000_000), None, "each call does much");
    }
}

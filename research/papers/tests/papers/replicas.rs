//! The replicas by themselves: memory, run queue, lock and time.
#![allow(clippy::unwrap_used)]

use nearmiss_papers::coloring::clock::Counts;
use nearmiss_papers::coloring::memory::{MEMORY_BYTES, Memory, STACK_BYTES};
use nearmiss_papers::coloring::queue::RunQueue;
use nearmiss_papers::coloring::server::Server;
use nearmiss_papers::coloring::web::{Sleep, Web};
use nearmiss_papers::coloring::{Kernel, WEB_WORK, hand};
use nearmiss_papers::machine;

const PENTIUM_PRO: &str = "pentium-pro-4way-512k";

#[test]
fn stacks_are_aligned_apart_and_about_half_beside_the_one_before() {
    let stacks = Memory::new(3).stacks(1024, 50);
    assert!(stacks.iter().all(|s| s % STACK_BYTES == 0 && *s < MEMORY_BYTES));
    let mut sorted = stacks.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted.len(), 1024);
    let beside = stacks.windows(2).filter(|w| w[1] == w[0] + STACK_BYTES).count();
    assert!((460..=565).contains(&beside), "{beside} of 1,023");
    assert_eq!(stacks, Memory::new(3).stacks(1024, 50));
    assert_ne!(stacks, Memory::new(4).stacks(1024, 50));
}

fn queue(kernel: Kernel, tasks: usize, cpus: usize) -> (RunQueue, Server) {
    let mut server = Server::new(&machine(PENTIUM_PRO).unwrap(), cpus).unwrap();
    let stacks: Vec<u64> = (1..=tasks as u64).map(|i| i << 20).collect();
    let mut queue = RunQueue::new(kernel, &stacks, 128 << 10, cpus).unwrap();
    for task in 0..tasks {
        queue.place(task, &mut server).unwrap();
    }
    (queue, server)
}

/// Tasks last ran on CPU `number % 2`; new ones go to the front; equal ones: the first on the queue wins.
#[test]
fn schedule_takes_the_best_task_and_reads_every_one() {
    let (mut queue, mut server) = queue(Kernel::Standard, 10, 2);
    let first = queue.schedule(0, None, false, &mut server).unwrap();
    assert_eq!(first.next, Some(8), "9 is in front of 8, but ran on CPU 1");
    assert_eq!(
        first.walk.l2_reads, 9,
        "a line a task, all in one L1 set of two ways; 8's is there since it was placed"
    );
    let other = queue.schedule(1, None, false, &mut server).unwrap();
    assert_eq!(other.next, Some(9));
    let next = queue.schedule(0, Some(8), true, &mut server).unwrap();
    assert_eq!((next.next, queue.length(), queue.runnable(8)), (Some(6), 9, false));
    queue.wake(8, 1, &mut server).unwrap();
    queue.wake(8, 1, &mut server).unwrap();
    assert_eq!((queue.length(), queue.runnable(8)), (10, true), "woken once");
    let again = queue.schedule(0, Some(6), false, &mut server).unwrap();
    assert_eq!(again.next, Some(8), "in front again");
}

#[test]
fn a_task_without_quantum_waits_until_all_get_new_ones() {
    let (mut queue, mut server) = queue(Kernel::Standard, 2, 1);
    for _ in 0..6 {
        queue.tick(1, &mut server);
    }
    assert_eq!(queue.schedule(0, None, false, &mut server).unwrap().next, Some(0));
    assert_eq!(queue.schedule(0, Some(0), true, &mut server).unwrap().next, Some(1), "with a new quantum");
}

#[test]
fn the_constant_scheduler_reads_no_queue_and_takes_from_the_longest() {
    let (mut queue, mut server) = queue(Kernel::Constant, 5, 2);
    let order: Vec<_> = (0..5).map(|_| queue.schedule(1, None, true, &mut server).unwrap().next).collect();
    assert_eq!(order, [1, 3, 0, 2, 4].map(Some));
    assert_eq!(queue.schedule(1, None, true, &mut server).unwrap().walk.l2_reads, 0);
}

fn counts(kernel: Kernel, cpus: usize) -> Counts {
    let web = Web { processes: 256, sleep: Sleep::Turns(cpus), kernel, cpus, work: WEB_WORK, seed: 5, slices: 16 };
    web.run(&machine(PENTIUM_PRO).unwrap()).unwrap()
}

#[test]
fn one_cpu_never_waits_and_several_hold_the_lock_one_at_a_time() {
    let one = counts(Kernel::Standard, 1);
    assert_eq!((one.contended, one.waited_cycles), (0, 0));
    let four = counts(Kernel::Standard, 4);
    assert!(four.contended > 0 && four.waited_cycles > 0);
    let longest = 2 * four.held_cycles / four.schedules;
    assert!(four.held_cycles <= four.elapsed_cycles() + longest, "{four:?}");
}

#[test]
fn every_cycle_of_every_cpu_is_work_walk_or_wait() {
    for kernel in [Kernel::Standard, Kernel::Colored(32), Kernel::Constant] {
        let c = counts(kernel, 4);
        let share = (c.work_cycles + c.held_cycles + c.waited_cycles) as f64 / (4 * c.elapsed_cycles()) as f64;
        // A piece counts as it begins; wake-ups are the rest.
        assert!((0.93..1.07).contains(&share), "{kernel:?}: {share}");
    }
}

#[test]
fn colors_must_fit_the_stack() {
    let error = RunQueue::new(Kernel::Colored(24), &[8192], 128 << 10, 1).err().unwrap();
    assert_eq!(error.to_string(), "24 colors: a stack of 8 KB takes 1, 2, 4, … 128 colors of 32 bytes");
}

/// With work between the walks, its lines crowd the sets as tasks do. By hand is more: there no stacks are neighbours,
/// and no line is drawn twice.
#[test]
fn displaced_tasks_miss_as_poisson_predicts() {
    let web = Web {
        processes: 1024,
        sleep: Sleep::Turns(4),
        kernel: Kernel::Colored(32),
        cpus: 4,
        work: WEB_WORK,
        seed: 2,
        slices: 24,
    };
    for (kilobytes, name) in nearmiss_papers::coloring::figures::SIZES {
        let walks = web.run(&machine(name).unwrap()).unwrap().walks;
        let modelled = walks.l2_misses as f64 * 100.0 / walks.l2_reads as f64;
        let by_hand = hand::disturbed_walk_miss_percent(1024, kilobytes, 32, WEB_WORK.lines);
        assert!((-7.0..1.0).contains(&(modelled - by_hand)), "{kilobytes} KB: {modelled} against {by_hand}");
    }
}

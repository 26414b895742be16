//! The states that `nearmiss observe` reports of each task add up to the task's lifetime, on a loaded machine too.

#![allow(clippy::unwrap_used)]

use crate::observing::{observe, with_bpf};
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::Duration;

/// Greatest share of a task's life that may be without a state.
const MOST_OFF: f64 = 0.01;

/// Programs that keep every CPU busy, ended when dropped.
struct Load(Vec<Child>);

impl Load {
    fn start(programs: usize) -> Load {
        let hog = |_| Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        Load((0..programs).map(hog).collect())
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        for child in &mut self.0 {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

/// Threads of every kind that run until `stop` is set.
struct Threads {
    stop: Arc<AtomicBool>,
    all: Vec<JoinHandle<()>>,
}

impl Threads {
    fn new() -> Threads {
        Threads { stop: Arc::default(), all: Vec::new() }
    }

    fn repeat(&mut self, mut what: impl FnMut() + Send + 'static) {
        let stop = self.stop.clone();
        self.all.push(spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                what();
            }
        }));
    }

    fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.all.into_iter().for_each(|thread| thread.join().unwrap());
    }
}

fn spin() {
    for step in 0..10_000u64 {
        std::hint::black_box(step);
    }
}

fn number(of: &Value, name: &str) -> f64 {
    of[name].as_f64().unwrap_or_else(|| panic!("no {name} in {of}"))
}

fn waited(task: &Value, reason: Option<&str>) -> f64 {
    let rows = task["off"].as_array().unwrap().iter();
    rows.filter(|row| reason.is_none_or(|reason| row[0] == reason)).map(|row| row[1].as_f64().unwrap()).sum()
}

/// Returns how far the states of a task differ from its life, as a share of the life.
fn off_by(task: &Value) -> f64 {
    let life = number(task, "life_ns");
    let states = number(task, "cpu_ns") + number(task, "wait_ns") + waited(task, None);
    (states - life).abs() / life.max(1.0)
}

/// The kernel's account of a thread: time on a CPU, and waiting for one.
fn schedstat(thread: i32) -> [f64; 2] {
    let text = fs::read_to_string(format!("/proc/self/task/{thread}/schedstat")).unwrap();
    let mut fields = text.split(' ').map(|field| field.parse().unwrap());
    [fields.next().unwrap(), fields.next().unwrap()]
}

#[test]
fn every_tasks_states_fill_its_life() {
    let Some(_guard) = with_bpf() else { return };
    let load = Load::start(3);
    let mut threads = Threads::new();
    (0..4).for_each(|_| threads.repeat(spin));
    (0..2).for_each(|_| threads.repeat(|| sleep(Duration::from_millis(3))));
    let shared = Arc::new(Mutex::new(0));
    for _ in 0..3 {
        let shared = shared.clone();
        threads.repeat(move || {
            *shared.lock().unwrap() += 1;
            sleep(Duration::from_micros(200));
        });
    }
    let (mut reader, mut writer) = std::io::pipe().unwrap();
    threads.repeat(move || {
        // Whichever ends first, the other finds the pipe broken.
        let _ = writer.write(b"x");
    });
    threads.repeat(move || {
        let _ = reader.read(&mut [0; 1]);
    });
    threads.repeat(|| assert!(Command::new("true").status().unwrap().success()));
    let o = observe(&["-p", &std::process::id().to_string(), "--for", "2s"]);
    threads.end();
    drop(load);
    let (tasks, window) = (o.record["tasks"].as_array().unwrap(), number(&o.record, "duration_ns"));
    for task in tasks {
        assert!(off_by(task) <= MOST_OFF, "{task}");
    }
    // Those that were there all the time lived as long as the observation lasted: by another clock.
    let ours = |t: &&Value| t["process"].as_u64() == Some(std::process::id().into());
    let whole = tasks.iter().filter(ours).filter(|t| (number(t, "life_ns") - window).abs() <= MOST_OFF * window);
    assert!(whole.count() >= 12, "{tasks:?}");
    let short: Vec<&Value> = tasks.iter().filter(|t| t["name"] == "true").collect();
    assert!(short.len() > 20 && short.iter().all(|t| number(t, "life_ns") < window), "{}", short.len());
    assert_eq!(o.record["lost"], serde_json::json!([]));
    the_sums_agree(&o.record, window);
}

/// Checks that figures counted in several places agree.
fn the_sums_agree(record: &Value, window: f64) {
    let rows = |name: &str| record[name].as_array().unwrap().clone();
    let sum = |rows: &[Value], name: &str| rows.iter().map(|row| number(row, name)).sum::<f64>();
    let near = |a: f64, b: f64| (a - b).abs() <= MOST_OFF * a.max(b);
    let (tasks, ticks) = (rows("tasks"), rows("timeline"));
    let (cpu, of_tasks, of_ticks) = (number(record, "cpu_ns"), sum(&tasks, "cpu_ns"), sum(&ticks, "cpu_ns"));
    assert!(near(cpu, of_tasks) && near(cpu, of_ticks), "{cpu}, tasks {of_tasks}, ticks {of_ticks}: {ticks:?}");
    assert!(cpu <= number(record, "cpus") * window * (1.0 + MOST_OFF), "{cpu} in {window}");
    assert!(near(sum(&ticks, "runnable_ns"), sum(&tasks, "wait_ns")), "{}", sum(&ticks, "runnable_ns"));
    let futexes: Vec<Value> = rows("locks").into_iter().filter(|lock| !lock["process"].is_null()).collect();
    let waits: f64 = tasks.iter().map(|task| waited(task, Some("futex"))).sum();
    assert!(near(waits, sum(&futexes, "total_ns")), "{waits} {}", sum(&futexes, "total_ns"));
    assert!(near(waits, sum(&ticks, "futex_wait_ns")), "{waits} {}", sum(&ticks, "futex_wait_ns"));
    for tick in &ticks {
        assert!(number(tick, "futex_wait_ns") <= tasks.len() as f64 * number(tick, "length_ns"), "{tick}");
    }
}

#[test]
fn the_kernels_accounts_agree() {
    let Some(_guard) = with_bpf() else { return };
    let load = Load::start(2);
    let mut threads = Threads::new();
    let (sender, receiver) = std::sync::mpsc::channel();
    threads.all.push(spawn({
        let stop = threads.stop.clone();
        move || {
            sender.send(rustix::thread::gettid().as_raw_nonzero().get()).unwrap();
            while !stop.load(Ordering::Relaxed) {
                spin();
            }
        }
    }));
    let thread = receiver.recv().unwrap();
    let now = || {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        now.tv_sec as f64 * 1e9 + now.tv_nsec as f64
    };
    type Readings = Vec<(f64, [f64; 2])>;
    let log: Arc<Mutex<Readings>> = Arc::default();
    let kept = log.clone();
    threads.repeat(move || {
        kept.lock().unwrap().push((now(), schedstat(thread)));
        sleep(Duration::from_millis(2));
    });
    let o = observe(&["--sched", "-p", &std::process::id().to_string(), "--for", "3s"]);
    threads.end();
    drop(load);
    let (begin, window) = (number(&o.record, "started_monotonic_ns"), number(&o.record, "duration_ns"));
    let log = log.lock().unwrap();
    let at = |ns: f64| log.iter().take_while(|(at, _)| *at <= ns).last().unwrap().1;
    let (first, last) = (at(begin), at(begin + window));
    let tasks = o.record["tasks"].as_array().unwrap();
    let task = tasks.iter().find(|t| t["thread"] == thread).unwrap();
    // The accounts are read some milliseconds off, and run behind by a stretch on the CPU or off it.
    for (ours, at) in [("cpu_ns", 0), ("wait_ns", 1)] {
        let theirs = last[at] - first[at];
        assert!((number(task, ours) - theirs).abs() < 0.05 * window, "{ours}: {} {theirs} in {window}", task[ours]);
    }
}

#[test]
fn waits_longer_than_the_observation_are_cut_to_it() {
    let Some(_guard) = with_bpf() else { return };
    let parked = Arc::new((Mutex::new(false), Condvar::new()));
    let waiter = spawn({
        let parked = parked.clone();
        move || drop(parked.1.wait_while(parked.0.lock().unwrap(), |done| !*done).unwrap())
    });
    let (reader, writer) = std::io::pipe().unwrap();
    let (number_of, thread) = std::sync::mpsc::channel();
    let poller = spawn(move || {
        number_of.send(rustix::thread::gettid().as_raw_nonzero().get()).unwrap();
        let mut polled = [rustix::event::PollFd::new(&reader, rustix::event::PollFlags::IN)];
        rustix::event::poll(&mut polled, None).unwrap();
    });
    sleep(Duration::from_millis(300));
    let o = observe(&["--locks", "--polls", "--sched", "--log", "-p", &std::process::id().to_string(), "--for", "1s"]);
    *parked.0.lock().unwrap() = true;
    parked.1.notify_all();
    waiter.join().unwrap();
    drop(writer);
    poller.join().unwrap();
    let window = number(&o.record, "duration_ns");
    let all_of_it = |ns: f64| (ns - window).abs() <= MOST_OFF * window;
    let locks = o.record["locks"].as_array().unwrap();
    let wait = locks.iter().find(|lock| lock["name"] == "condition variable").unwrap_or_else(|| panic!("{locks:?}"));
    // Other tests of this program may wait too: each wait is as long as the observation.
    assert!(all_of_it(number(wait, "max_ns")), "{wait}");
    assert!(number(wait, "total_ns") <= number(wait, "count") * window, "{wait}");
    let polls = o.record["polls"].as_array().unwrap();
    // Other tests' threads and children poll too.
    let thread = thread.recv().unwrap();
    let own = |poll: &&Value| poll["open"] == true && poll["thread"] == thread;
    let poll = polls.iter().find(own).unwrap_or_else(|| panic!("{polls:?}"));
    assert!(poll["calls"] == 0 && all_of_it(number(poll, "blocked_ns")), "{poll}");
    // The log has the waits under way too, as ended with the observation.
    let observation = nearmiss_record::observation::Observation::open(&o.run).unwrap();
    let log = observation.log::<nearmiss_record::logs::LockWait>().unwrap().unwrap();
    let longest = log.map(|wait| wait.unwrap()).max_by_key(|wait| wait.wait_ns).unwrap();
    assert!(all_of_it(longest.wait_ns as f64) && all_of_it(longest.end_ns as f64), "{longest:?}");
}

/// CPU time of the children that a process has waited for, read again and again.
struct Account {
    stop: Arc<AtomicBool>,
    /// Each reading: when it began, when it ended, and the sum, all in ns.
    readings: JoinHandle<Vec<[f64; 3]>>,
}

impl Account {
    fn of(pid: u32) -> Account {
        let stop: Arc<AtomicBool> = Arc::default();
        let ended = stop.clone();
        let readings = spawn(move || {
            let mut readings = Vec::new();
            while !ended.load(Ordering::Relaxed) {
                let begun = monotonic();
                let sum = of_children(pid);
                readings.push([begun, monotonic(), sum]);
                sleep(Duration::from_millis(5));
            }
            readings
        });
        Account { stop, readings }
    }

    /// Returns what was added between two times: at least, and at most.
    fn between(self, begin: f64, end: f64) -> [f64; 2] {
        self.stop.store(true, Ordering::Relaxed);
        let readings = self.readings.join().unwrap();
        let before = |time: f64| readings.iter().rfind(|reading| reading[1] <= time).unwrap()[2];
        let after = |time: f64| readings.iter().find(|reading| reading[0] >= time).unwrap()[2];
        [before(end) - after(begin), after(end) - before(begin)]
    }
}

fn monotonic() -> f64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as f64 * 1e9 + now.tv_nsec as f64
}

/// Unit of the times in a process's `stat`.
const TICK_NS: f64 = 1e7;

/// Fields 16 and 17 of a process's `stat`.
fn of_children(pid: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<f64> = stat.rsplit(')').next().unwrap().split_whitespace().filter_map(|f| f.parse().ok()).collect();
    (fields[12] + fields[13]) * TICK_NS
}

#[test]
fn short_processes_lose_nothing_without_switches() {
    let Some(_guard) = with_bpf() else { return };
    let line = "read go; while :; do (i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done); done";
    let mut shell = Command::new("sh").args(["-c", line]).stdin(Stdio::piped()).spawn().unwrap();
    let account = Account::of(shell.id());
    shell.stdin.take().unwrap().write_all(b"go\n").unwrap();
    let o = observe(&["--polls", "-p", &shell.id().to_string(), "--for", "3s"]);
    let begin = number(&o.record, "started_monotonic_ns");
    let [least, most] = account.between(begin, begin + number(&o.record, "duration_ns"));
    shell.kill().unwrap();
    shell.wait().unwrap();
    let tasks = o.record["tasks"].as_array().unwrap();
    let ours: f64 =
        tasks.iter().filter(|t| t["process"].as_u64() != Some(shell.id().into())).map(|t| number(t, "cpu_ns")).sum();
    let rounded = 3.0 * TICK_NS;
    assert!(tasks.len() > 20 && ours > 0.97 * least - rounded && ours < 1.03 * most + rounded, "{least} {ours} {most}");
    assert_eq!(number(&o.record, "cpu_ns"), tasks.iter().map(|t| number(t, "cpu_ns")).sum::<f64>());
}

const LOCKS: &str = r#"
#include <mutex>
#include <thread>
#include <unistd.h>
#include <vector>
std::mutex big;
struct Pool { long figures[3]; std::mutex inner; } pool;
template <typename T> __attribute__((noinline)) void take(T &mutex, int us) {
    std::lock_guard<T> held(mutex);
    usleep(us);
}
__attribute__((noinline)) void work() { for (int i = 0; i < 100; i++) { std::lock_guard<std::mutex> held(big); usleep(1000); } }
__attribute__((noinline)) void other() { for (int i = 0; i < 100; i++) take(pool.inner, 500); }
int main() {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++) threads.emplace_back(i < 2 ? work : other);
    for (auto &thread : threads) thread.join();
}
"#;

#[test]
fn a_lock_is_named_by_its_variable_and_the_users_function() {
    let Some(_guard) = with_bpf() else { return };
    for optimise in ["-O0", "-O2"] {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("locks.cpp"), LOCKS).unwrap();
        let words = ["-g", optimise, "-pthread", "locks.cpp", "-o", "locks"];
        match Command::new("g++").args(words).current_dir(place.path()).status() {
            Ok(status) if status.success() => {}
            other => {
                println!("skipped: no C++ compiler: {other:?}");
                return;
            }
        }
        let o = observe(&["--locks", "--", place.path().join("locks").to_str().unwrap()]);
        let locks: Vec<&Value> =
            o.record["locks"].as_array().unwrap().iter().filter(|l| l["name"] == "mutex").collect();
        let named: Vec<(&str, &str)> = locks
            .iter()
            .map(|lock| (lock["variable"].as_str().unwrap(), lock["call_sites"][0][0]["function"].as_str().unwrap()))
            .collect();
        assert!(named.contains(&("big", "work()")), "{optimise}: {named:?}");
        let inner = named.iter().find(|(variable, _)| *variable == "pool+0x18").unwrap_or_else(|| panic!("{named:?}"));
        assert!(inner.1.contains("take"), "{optimise}: {named:?}");
        assert!(o.stderr.contains("mutex `big`"), "{}", o.stderr);
        let joins = o.record["locks"].as_array().unwrap().iter().filter(|l| l["name"] == "thread join").count();
        assert!(joins <= 1, "rows that read alike: {}", o.stderr);
    }
}

//! `nearmiss observe` on programs with known behaviour, and on machines that lack what it would use.

#![allow(clippy::unwrap_used)]

use crate::observing::{NEARMISS, alone, observe, with_bpf};
use nearmiss_record::logs::{PollCall, PollTotals};
use nearmiss_record::observation::Observation;
use serde_json::Value;
use std::collections::BTreeSet;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

fn subject(name: &str) -> Option<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/subjects").join(name);
    if !path.is_file() {
        println!("skipped: {} is not built; make subjects", path.display());
        return None;
    }
    Some(path.canonicalize().unwrap().to_str().unwrap().to_owned())
}

/// `name=123` of what a subject printed.
fn figure(stdout: &str, name: &str) -> f64 {
    let field = stdout.split_whitespace().find_map(|f| f.strip_prefix(&format!("{name}=")));
    field.unwrap_or_else(|| panic!("no {name} in {stdout}")).parse().unwrap()
}

fn near(ours: f64, theirs: f64, tolerance: f64) -> bool {
    (ours - theirs).abs() <= tolerance * theirs.abs()
}

#[test]
fn a_known_lock_wait_is_found_to_the_line() {
    let (Some(_guard), Some(program)) = (with_bpf(), subject("known-lock-wait")) else { return };
    let o = observe(&["--locks", "--sched", "--acquisitions", "--", &program, "--times", "300"]);
    let waited = figure(&o.stdout, "waited_ns");
    let lock = &o.record["locks"][0];
    assert_eq!((lock["name"].as_str(), lock["contended"].as_bool()), (Some("mutex"), Some(true)), "{lock}");
    // Each wait is one sleep; the waiter's own clock also has the way into the kernel and out of it.
    assert!(near(lock["count"].as_f64().unwrap(), figure(&o.stdout, "waits"), 0.05), "{lock}");
    // And the time for which it is awake and has no CPU yet.
    let total = lock["total_ns"].as_f64().unwrap();
    let delayed: f64 = o.record["tasks"].as_array().unwrap().iter().map(|t| t["wait_ns"].as_f64().unwrap()).sum();
    assert!(total <= 1.01 * waited && total + delayed >= 0.95 * waited, "{total} and {delayed} against {waited}");
    let line = lock["call_sites"][0][0]["line"].as_str().unwrap();
    assert!(line.ends_with(&line_of("known-lock-wait", "known lock wait */")), "{line}");
    assert_eq!(lock["call_sites"][0][0]["function"], "wait_for_the_lock");
    assert_eq!(o.record["phases"][0]["class"], "lock-contended", "{}", o.stderr);
    // The holder takes it each time, the waiter when it has to wait.
    assert_eq!(lock["acquisitions"].as_f64().unwrap(), 300.0 + figure(&o.stdout, "waits"), "{lock}");
    assert!(o.stderr.contains(" acquisitions\n"), "{}", o.stderr);
}

/// `known-x.c:12`, the line of a subject that has a mark.
fn line_of(name: &str, mark: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../subjects/{name}/{name}.c"));
    let text = std::fs::read_to_string(path).unwrap();
    format!("{name}.c:{}", text.lines().position(|l| l.contains(mark)).unwrap() + 1)
}

/// Time that this machine's host gave to others, in hundredths of a second.
fn stolen_ticks() -> u64 {
    let stat = std::fs::read_to_string("/proc/stat").unwrap();
    stat.split_whitespace().nth(8).unwrap().parse().unwrap()
}

#[test]
fn a_known_poll_rate_is_found_exactly() {
    let (Some(_guard), Some(program)) = (with_bpf(), subject("known-poll-rate")) else { return };
    let stolen = stolen_ticks();
    let o = observe(&["--polls", "--log", "--", &program, "--calls", "400"]);
    let poll = &o.record["polls"][0];
    for name in ["calls", "asked", "events", "empty"] {
        assert_eq!(poll[name].as_f64().unwrap(), figure(&o.stdout, name), "{name}: {poll}");
    }
    assert_eq!((poll["call"].as_str(), poll["zero_timeout"].as_u64()), (Some("poll"), Some(400)));
    // No empty call comes back before its 2 ms, and what a call took it was either blocked or on a CPU.
    let [blocked, on_cpu] = ["blocked_ns", "on_cpu_ns"].map(|name| poll[name].as_f64().unwrap());
    let empty = figure(&o.stdout, "empty_ns");
    assert!(blocked >= 0.95 * 100.0 * 2e6 && blocked <= poll["span_ns"].as_f64().unwrap(), "{poll}");
    assert!(blocked <= 1.01 * empty && empty <= 1.05 * (blocked + on_cpu), "{empty}: {poll}");
    // It was blocked nearly always, if nothing else keeps it off the CPU, here or on the host of this machine.
    let load: f64 = std::fs::read_to_string("/proc/loadavg").unwrap().split(' ').next().unwrap().parse().unwrap();
    let cpus = std::thread::available_parallelism().unwrap().get() as f64;
    let alone = load <= 0.7 * cpus && stolen_ticks() == stolen;
    assert!(!alone || near(blocked, empty, 0.05), "{empty}: {poll}");
    assert!(o.run.join("polls-log.parquet").metadata().unwrap().len() > 500);
}

#[test]
fn a_known_miss_site_is_found_to_the_line() {
    let _guard = alone();
    let Some(program) = subject("known-miss-site") else { return };
    if nearmiss_observe::perf::has_pmu() {
        let o = observe(&["--misses", "--", &program]);
        assert!(o.stderr.contains("known-miss-site.c"), "{}", o.stderr);
    } else {
        println!("skipped: cache misses, since there is no performance-monitoring unit; page faults stand in");
    }
    let o = observe(&["--event", "page-faults@16", "--", &program, "--steps", "1000"]);
    let profile = &o.record["profile"];
    let line = line_of("known-miss-site", "known miss site");
    let innermost = |s: &Value| {
        let stack = &profile["stacks"][s["stack"].as_u64().unwrap() as usize];
        profile["frames"][stack[0].as_u64().unwrap() as usize]["line"].as_str().unwrap().to_owned()
    };
    let samples = profile["samples"].as_array().unwrap();
    let lost = profile["events"][0]["lost"].as_f64().unwrap();
    let there = samples.iter().filter(|s| innermost(s).ends_with(&line)).count() as f64;
    assert!(near(there + lost, figure(&o.stdout, "faults") / 16.0, 0.05), "{there} sampled, {lost} lost");
    assert!(there > 0.9 * samples.len() as f64, "{there} of {}", samples.len());
}

#[test]
fn code_made_at_run_time_has_the_names_that_its_runtime_wrote() {
    let _guard = alone();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/live/made_code.py");
    let o = observe(&["--clock", "--", "/usr/bin/python3", script.to_str().unwrap()]);
    std::fs::remove_file(o.stdout.trim()).unwrap();
    let profile = &o.record["profile"];
    let samples = profile["samples"].as_array().unwrap();
    let of = |function: &str| {
        let is_it = |sample: &&Value| {
            let stack = &profile["stacks"][sample["stack"].as_u64().unwrap() as usize];
            let frame = &profile["frames"][stack[0].as_u64().unwrap() as usize];
            frame["module"] == "[jit]" && frame["function"] == function
        };
        samples.iter().filter(is_it).count() as f64 / samples.len() as f64
    };
    let (named, nameless) = (of("count_down"), of("[jit]"));
    assert!(named > 0.25 && nameless > 0.25, "{named} {nameless} of {}: {}", samples.len(), o.stderr);
    assert!(o.stderr.contains("/srv/app.js:3"), "{}", o.stderr);
    let notes = o.record["notes"].to_string();
    assert!(notes.contains("made at run time that has no names"), "{notes}");
}

#[test]
fn the_log_has_every_poll() {
    let (Some(_guard), Some(program)) = (with_bpf(), subject("known-poll-rate")) else { return };
    let o = observe(&["--polls", "--log", "--", &program, "--calls", "80", "--every", "500"]);
    let out = Command::new(NEARMISS).args(["report", o.run.to_str().unwrap(), "--log"]).output().unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    let of_three = text.lines().filter(|l| l.contains("poll: 3 polled, 1 events")).count();
    let empty = text.lines().filter(|l| l.ends_with("poll: 1 polled, 0 events")).count();
    assert_eq!((of_three, empty), (80, 20), "{text}");
    let observation = Observation::open(&o.run).unwrap();
    let calls: Vec<PollCall> = observation.log().unwrap().unwrap().map(Result::unwrap).collect();
    let with = |timeout_ns| calls.iter().filter(|call| call.timeout_ns == Some(timeout_ns)).count();
    assert_eq!((with(0), with(2_000_000)), (80, 20));
    let totals: Vec<PollTotals> = observation.log().unwrap().unwrap().map(Result::unwrap).collect();
    assert_eq!(totals, observation.observed().polls.iter().map(PollTotals::from).collect::<Vec<_>>());
    assert_eq!(calls.iter().map(|call| call.on_cpu_ns).sum::<u64>(), totals[0].on_cpu_ns);
    let o = observe(&["--polls", "--", "true"]);
    let out = Command::new(NEARMISS).args(["report", o.run.to_str().unwrap(), "--log"]).output().unwrap();
    assert_eq!(out.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&out.stderr).contains("observe with --log"));
}

/// Polls a readable pipe with each call of the family that has a timeout, so that each returns at once.
fn poll_in_every_way(pipe: i32, set: i32) {
    use libc::{POLLIN, epoll_event, pollfd, syscall, timespec, timeval};
    // The kernel writes what is left of a timeout over it.
    let mut specs = [timespec { tv_sec: 3, tv_nsec: 7_500_000 }; 3];
    let [for_poll, for_select, for_set] = &mut specs;
    let mut value = timeval { tv_sec: 3, tv_usec: 4_000 };
    let mut polled = pollfd { fd: pipe, events: POLLIN, revents: 0 };
    let mut event = epoll_event { events: 0, u64: 0 };
    let words = 1u64 << pipe;
    let (mut first, mut second) = (words, words);
    // The kernel takes this as a whole word, so it must be one.
    let (none, one, mask) = (0usize, 1usize, 8usize);
    // SAFETY: every pointer is to a local of the type that the call expects, or null where it may be; the sets of
    // select are one word long, as `pipe + 1` specifies.
    let returned = unsafe {
        [
            syscall(libc::SYS_poll, &raw mut polled, one, 11),
            syscall(libc::SYS_poll, &raw mut polled, one, -1),
            syscall(libc::SYS_ppoll, &raw mut polled, one, &raw mut *for_poll, none, mask),
            syscall(libc::SYS_ppoll, &raw mut polled, one, none, none, mask),
            syscall(libc::SYS_select, pipe + 1, &raw mut first, none, none, &raw mut value),
            syscall(libc::SYS_pselect6, pipe + 1, &raw mut second, none, none, &raw mut *for_select, none),
            syscall(libc::SYS_epoll_wait, set, &raw mut event, 1, 12),
            syscall(libc::SYS_epoll_pwait, set, &raw mut event, 1, -1, none, mask),
            syscall(libc::SYS_epoll_pwait2, set, &raw mut event, 1, &raw mut *for_set, none, mask),
        ]
    };
    assert_eq!(returned, [1; 9]);
}

/// A flag, and another hand on it: what runs beside an observation ends when the observation has ended.
fn flag() -> (Arc<AtomicBool>, Arc<AtomicBool>) {
    let flag = Arc::new(AtomicBool::new(false));
    (flag.clone(), flag)
}

#[test]
fn the_log_has_the_timeout_of_every_call() {
    use rustix::event::epoll;
    use std::os::fd::AsRawFd;
    let Some(_guard) = with_bpf() else { return };
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    if reader.as_raw_fd() >= 64 {
        println!("skipped: the sets of this test have 64 descriptors, and more are open");
        return;
    }
    rustix::io::write(&writer, b"x").unwrap();
    let set = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
    epoll::add(&set, &reader, epoll::EventData::new_u64(1), epoll::EventFlags::IN).unwrap();
    let (stop, stopped) = flag();
    let polling = std::thread::spawn(move || {
        while !stopped.load(Ordering::Relaxed) {
            poll_in_every_way(reader.as_raw_fd(), set.as_raw_fd());
            std::thread::sleep(Duration::from_millis(10));
        }
        (reader, writer)
    });
    let o = observe(&["--polls", "--log", "-p", &std::process::id().to_string(), "--for", "1s"]);
    stop.store(true, Ordering::Relaxed);
    polling.join().unwrap();
    let log = Observation::open(&o.run).unwrap().log::<PollCall>().unwrap().unwrap();
    let found: BTreeSet<(String, Option<u64>)> =
        log.map(Result::unwrap).filter(|c| c.events == 1).map(|c| (c.call, c.timeout_ns)).collect();
    let exact = Some(3_007_500_000);
    let expected = [
        ("epoll_pwait", None),
        ("epoll_pwait2", exact),
        ("epoll_wait", Some(12_000_000)),
        ("poll", None),
        ("poll", Some(11_000_000)),
        ("ppoll", None),
        ("ppoll", exact),
        ("pselect6", exact),
        ("select", Some(3_004_000_000)),
    ];
    let expected = expected.map(|(call, timeout)| (call.to_owned(), timeout));
    assert_eq!(found, BTreeSet::from(expected));
}

#[test]
fn one_instrument_alone_knows_the_cpu_time() {
    let Some(_guard) = with_bpf() else { return };
    let mut busy = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
    let pid = busy.id().to_string();
    let alone = ["--polls", "--locks", "--io"].map(|one| observe(&[one, "-p", &pid, "--for", "1s"]));
    busy.kill().unwrap();
    busy.wait().unwrap();
    for o in alone {
        let tasks = o.record["tasks"].as_array().unwrap();
        assert_eq!(tasks.len(), 1, "{tasks:?}");
        let of = |name: &str| tasks[0][name].as_f64().unwrap();
        assert_eq!((of("process"), &o.record["cpu_ns"]), (f64::from(busy.id()), &tasks[0]["cpu_ns"]));
        // A thread that is always runnable has a CPU or waits for one. The kernel adds a wait when it ends, so that the
        // first one may have begun before the observation and the last one is not in it: on a busy machine both are
        // long.
        let (wanted, window) = (of("cpu_ns") + of("wait_ns"), o.record["duration_ns"].as_f64().unwrap());
        let edges = 0.5 * of("wait_ns");
        assert!((wanted - window).abs() <= 0.1 * window + edges, "{wanted}: {tasks:?} {}", o.stderr);
        assert!(of("cpu_ns") > 0.0 && o.record["phases"][0]["class"] == "CPU-busy", "{}", o.stderr);
    }
}

#[test]
fn the_size_of_an_epoll_set_is_recorded() {
    use rustix::event::{Timespec, epoll};
    let Some(_guard) = with_bpf() else { return };
    let set = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
    let pipes: Vec<_> = (0..5).map(|_| rustix::pipe::pipe().unwrap()).collect();
    for (reader, _) in &pipes {
        epoll::add(&set, reader, epoll::EventData::new_u64(1), epoll::EventFlags::IN).unwrap();
    }
    let (stop, stopped) = flag();
    let waiting = std::thread::spawn(move || {
        let mut events = Vec::with_capacity(5);
        let ten_ms = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
        while !stopped.load(Ordering::Relaxed) {
            epoll::wait(&set, rustix::buffer::spare_capacity(&mut events), Some(&ten_ms)).unwrap();
        }
        drop(pipes);
    });
    let o = observe(&["--polls", "-p", &std::process::id().to_string(), "--for", "1s"]);
    stop.store(true, Ordering::Relaxed);
    waiting.join().unwrap();
    let polls = o.record["polls"].as_array().unwrap();
    let ours =
        polls.iter().find(|p| p["call"].as_str().unwrap().starts_with("epoll")).unwrap_or_else(|| panic!("{polls:?}"));
    assert_eq!(ours["watched"], 5, "{ours}");
    assert_eq!(ours["empty"], ours["calls"], "{ours}");
    assert!(o.stderr.contains("≈5"), "{}", o.stderr);
}

#[test]
fn a_lock_without_a_symbol_has_a_name() {
    let Some(_guard) = with_bpf() else { return };
    let stop = Arc::new(AtomicBool::new(false));
    let mappers: Vec<_> = (0..4)
        .map(|_| {
            let stop = stop.clone();
            std::thread::spawn(move || {
                use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
                while !stop.load(Ordering::Relaxed) {
                    // SAFETY: a fresh mapping that nothing else uses, unmapped at once.
                    unsafe {
                        let at =
                            mmap_anonymous(std::ptr::null_mut(), 1 << 20, ProtFlags::READ, MapFlags::PRIVATE).unwrap();
                        munmap(at, 1 << 20).unwrap();
                    }
                }
            })
        })
        .collect();
    let o = observe(&["--locks", "-p", &std::process::id().to_string(), "--for", "1s"]);
    stop.store(true, Ordering::Relaxed);
    for mapper in mappers {
        mapper.join().unwrap();
    }
    let locks = o.record["locks"].as_array().unwrap();
    let mmap = locks.iter().find(|l| l["name"] == "mm_struct.mmap_lock").unwrap_or_else(|| panic!("{}", o.stderr));
    assert!(mmap["kind"].as_str().unwrap().starts_with("rwsem"), "{mmap}");
}

#[test]
fn children_that_a_process_has_already_are_seen_too() {
    let Some(_guard) = with_bpf() else { return };
    // The parent waits; its grandchild computes and polls.
    let works = "import select\nwhile True: sum(range(10000)); select.poll().poll(1)";
    let script = format!("sh -c '/usr/bin/python3 -c \"{works}\"; true'; true");
    let mut parent = Command::new("sh").args(["-c", &script]).process_group(0).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let o = observe(&["--polls", "--sched", "--for", "500ms", "-p", &parent.id().to_string()]);
    // SAFETY: a signal to a process group of our own.
    unsafe { libc::kill(-(parent.id() as i32), libc::SIGKILL) };
    parent.wait().unwrap();
    assert_eq!(o.record["polls"][0]["call"], "poll", "{}", o.record);
    assert!(o.record["cpu_ns"].as_u64().unwrap() > 1_000_000, "{}", o.record["cpu_ns"]);
}

#[test]
fn a_process_that_is_not_there_is_refused_by_every_instrument() {
    for instrument in ["--clock", "--polls", "--locks", "--io", "--sched"] {
        let place = tempfile::tempdir().unwrap();
        let words = ["observe", instrument, "-p", "4194305", "--for", "1s"];
        let refused = Command::new(NEARMISS).args(words).current_dir(place.path()).output().unwrap();
        let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!((refused.status.code(), stderr.lines().count()), (Some(125), 1), "{stderr}");
        assert!(stderr.contains("process 4194305: there is no such process"), "{stderr}");
        assert!(!place.path().join("nearmiss-runs").exists(), "a run is left");
    }
}

#[test]
fn a_cgroup_alone_is_seen() {
    let Some(_guard) = with_bpf() else { return };
    let refused = Command::new(NEARMISS).args(["observe", "--cgroup", "/tmp", "--for", "1s"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(125));
    let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(stderr.contains("/tmp: not a cgroup of the unified hierarchy; `grep cgroup2 /proc/mounts`"), "{stderr}");
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap();
    let unified = mounts.lines().find(|m| m.split(' ').nth(2) == Some("cgroup2")).and_then(|m| m.split(' ').nth(1));
    let Some(unified) = unified else {
        println!("skipped: no unified hierarchy of cgroups is mounted");
        return;
    };
    let cgroup = Path::new(unified).join(format!("nearmiss-test-{}", std::process::id()));
    if let Err(e) = std::fs::create_dir(&cgroup) {
        println!("skipped: {}: {e}", cgroup.display());
        return;
    }
    let busy = |line: &str| Command::new("sh").args(["-c", line]).spawn().unwrap();
    let (mut inside, mut outside) = (busy("while :; do :; done"), busy("while :; do :; done"));
    let moved = std::fs::write(cgroup.join("cgroup.procs"), inside.id().to_string());
    let o = observe(&["--sched", "--clock", "--cgroup", cgroup.to_str().unwrap(), "--for", "1s"]);
    for child in [&mut inside, &mut outside] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    std::fs::remove_dir(&cgroup).unwrap();
    moved.unwrap();
    let tasks: Vec<u64> =
        o.record["tasks"].as_array().unwrap().iter().map(|t| t["process"].as_u64().unwrap()).collect();
    assert_eq!(tasks, [u64::from(inside.id())], "{}", o.stderr);
    let threads = o.record["profile"]["threads"].as_array().unwrap();
    let sampled = o.record["profile"]["samples"].as_array().unwrap();
    let ours = |s: &&Value| threads[s["thread"].as_u64().unwrap() as usize][0] == inside.id();
    assert!(sampled.len() > 20 && sampled.iter().filter(ours).count() == sampled.len(), "{}", o.stderr);
}

#[test]
fn a_writer_is_seen_in_every_instrument() {
    let Some(_guard) = with_bpf() else { return };
    let directory = tempfile::tempdir().unwrap();
    let file = format!("of={}", directory.path().join("f").display());
    let o = observe(&["--", "dd", "if=/dev/zero", &file, "bs=1M", "count=500", "conv=fsync"]);
    for expected in [
        "observed  dd",
        "class  ",
        "Where time goes (",
        "Lock waits: ",
        "Polls: 0 calls",
        "Block I/O: ",
        "Pages of the kernel: ",
        "Tasks: 1;",
    ] {
        assert!(o.stderr.contains(expected), "no `{expected}` in\n{}", o.stderr);
    }
    // The copy from user memory is among the first; its name differs by kernel.
    let table = o.stderr.lines().skip_while(|l| !l.contains("Where time goes")).skip(2);
    let first: Vec<_> = table.take(3).collect();
    let copies = |line: &&&str| ["copy", "movs", "clear", "iov_iter", "zero"].iter().any(|part| line.contains(part));
    assert!(first.iter().any(|line| copies(&line)), "{first:#?}");
    for name in [
        "manifest.json",
        "observe.json",
        "samples.parquet",
        "locks.parquet",
        "polls.parquet",
        "io.parquet",
        "sched.parquet",
    ] {
        assert!(o.run.join(name).is_file(), "no {name}");
    }
    let written: u64 = o.record["io"].as_array().unwrap().iter().map(|i| i["bytes"].as_u64().unwrap()).sum();
    assert!(written <= 600_000_000, "{written}");
    // The page cache got a page for each 4 KiB, and dd itself little more.
    let pages = o.record["memory"][0]["pages"].as_u64().unwrap();
    assert!((128_000..160_000).contains(&pages), "{}", o.record["memory"]);
    every_form_is_written(&o.run);
}

fn every_form_is_written(run: &Path) {
    for (form, first) in [("pprof", &[0x1f, 0x8b][..]), ("firefox", b"{"), ("perfetto", b"{"), ("folded", b"dd")] {
        let file = run.join(form);
        let out = Command::new(NEARMISS)
            .args(["report", run.to_str().unwrap(), &format!("--{form}"), file.to_str().unwrap()])
            .output();
        assert!(out.unwrap().status.success(), "{form}");
        assert!(std::fs::read(&file).unwrap().starts_with(first), "{form}");
    }
    let out = Command::new(NEARMISS).args(["report", run.to_str().unwrap(), "--html"]).output().unwrap();
    assert!(out.status.success());
    let page = std::fs::read_to_string(run.join("report.html")).unwrap();
    assert!(page.contains("data-icicle") && page.contains("Over time") && !page.contains("http://localhost"));
}

#[test]
fn the_whole_machine_for_a_time() {
    let Some(_guard) = with_bpf() else { return };
    let started = Instant::now();
    let o = observe(&["-a", "--for", "1s"]);
    assert!(started.elapsed() < Duration::from_secs(60));
    for expected in [
        "observed  the whole machine",
        "class  ",
        "Where time goes (",
        "Lock waits: ",
        "Polls: ",
        "Block I/O: ",
        "Tasks: ",
    ] {
        assert!(o.stderr.contains(expected), "no `{expected}` in\n{}", o.stderr);
    }
    let seconds = o.record["duration_ns"].as_f64().unwrap() / 1e9;
    assert!((0.9..3.0).contains(&seconds), "{seconds}");
}

#[test]
fn the_command_owns_its_streams_and_its_status() {
    let _guard = alone();
    let o = observe(&["--clock", "--", "sh", "-c", "echo out; exit 7"]);
    assert_eq!((o.stdout.as_str(), o.code), ("out\n", 7));
    let o = observe(&["--clock", "--", "sh", "-c", "kill -TERM $$"]);
    assert_eq!(o.code, 128 + 15);
    let out = Command::new(NEARMISS).args(["observe", "--", "/no/such/program"]).output().unwrap();
    assert_eq!(out.status.code(), Some(127));
    let out = Command::new(NEARMISS).args(["observe", "-e", "no-such-event", "--", "true"]).output().unwrap();
    assert_eq!(out.status.code(), Some(125));
    assert!(String::from_utf8_lossy(&out.stderr).contains("perf list"));
    // An unknown option is no command either.
    let out = Command::new(NEARMISS).args(["observe", "--no-such-option", "--", "true"]).output().unwrap();
    assert_eq!(out.status.code(), Some(125));
    assert!(String::from_utf8_lossy(&out.stderr).contains("'--no-such-option'"));
}

#[test]
fn nothing_stays_in_the_kernel_after_sigkill() {
    let Some(_guard) = with_bpf() else { return };
    let programs = || -> Vec<u32> { aya::programs::loaded_programs().flatten().map(|p| p.id()).collect() };
    let before = programs();
    let directory = tempfile::tempdir().unwrap();
    let mut child = Command::new(NEARMISS)
        .args(["observe", "--runs", directory.path().to_str().unwrap(), "-a", "--for", "60s"])
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let wait_for = |what: &dyn Fn() -> bool| {
        let started = Instant::now();
        while !what() && started.elapsed() < Duration::from_secs(30) {
            std::thread::sleep(Duration::from_millis(50));
        }
        what()
    };
    assert!(wait_for(&|| programs().len() >= before.len() + 5), "the programs are loaded");
    let ours: Vec<u32> = programs().into_iter().filter(|id| !before.contains(id)).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(wait_for(&|| !programs().iter().any(|id| ours.contains(id))), "programs are left in the kernel");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "no half a run is left");
}

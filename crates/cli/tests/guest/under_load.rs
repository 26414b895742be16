//! `--load` of `verify`, `observe` and `trace`: a small server of Python's, and loads that print fixed figures.

#![allow(clippy::unwrap_used)]

use crate::guest_slots::for_a_guest;
use nearmiss_record::observed::Observed;
use nearmiss_record::run::Manifest;
use nearmiss_record::verdict::{Outcome, Verdict};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Debian's own, not a wrapper script that PATH may find first.
const PYTHON: &str = "/usr/bin/python3";
/// Answers each connection with a byte, after computing for a while, and starts a child that outlives it if it can.
const SERVER: &str = "
import os, signal, socket, sys
if os.fork() == 0:
    os.setsid(); signal.signal(signal.SIGTERM, signal.SIG_IGN)
    open('child', 'w').write(str(os.getpid())); signal.pause()
s = socket.socket(socket.AF_UNIX)
if os.path.exists('socket'): os.unlink('socket')
s.bind('socket'); s.listen()
while True:
    c, _ = s.accept(); sum(range(100000))
    try: c.send(b'x')
    except OSError: pass
    c.close()
";
const CLIENT: &str = "
import socket, sys
for i in range(int(sys.argv[1])):
    c = socket.socket(socket.AF_UNIX); c.connect('socket'); c.recv(1); c.close()
print('offered 50.0 requests/s'); print('achieved', sys.argv[2], 'requests/s'); print('requests', sys.argv[1])
print('mean 1.000 ms'); print('p99 2.000 ms'); print('errors 0')
";

fn write_programs(directory: &Path) {
    for (name, text) in [("server.py", SERVER), ("client.py", CLIENT)] {
        std::fs::write(directory.join(name), text).unwrap();
    }
}

fn nearmiss(directory: &Path, arguments: &[&str]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_nearmiss")).current_dir(directory).args(arguments).output().unwrap();
    assert!(!child_lives(directory), "a child of the server is left: {arguments:?}");
    output
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The child of the last server.
fn child_lives(directory: &Path) -> bool {
    let pid = std::fs::read_to_string(directory.join("child")).unwrap_or_default();
    !pid.is_empty() && std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z"))
}

const AB: [&str; 2] = ["/usr/bin/python3 server.py", "X=1 /usr/bin/python3 server.py"];

fn verify(directory: &Path, load: &str, options: &[&str]) -> Output {
    let always = ["verify", "commands", "--time-limit", "1ms", "--pairs", "8", "--load", load];
    nearmiss(directory, &[&always, options, &AB].concat())
}

#[test]
fn two_servers_get_a_verdict_by_what_a_request_costs() {
    let place = tempfile::tempdir().unwrap();
    write_programs(place.path());
    let output = verify(place.path(), "/usr/bin/python3 client.py 20 50.0", &["--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let verdict: Verdict = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((verdict.pairs, verdict.comparison.metric.as_str()), (8, "cpu_us_per_request"));
    assert_eq!(verdict.judged, ["mean_ms", "p99_ms"]);
    assert_eq!(verdict.rates.unwrap().with.offered, Some(50.0));
    assert!(verdict.without.iter().all(|run| run["requests"] == 20.0 && run["cpu_us_per_request"] > 100.0));
}

#[test]
fn a_missed_rate_ends_with_status_1() {
    let place = tempfile::tempdir().unwrap();
    write_programs(place.path());
    let output = verify(place.path(), "/usr/bin/python3 client.py 2 40.0", &[]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let stdout = text(&output.stdout);
    assert!(stdout.starts_with("void: `X=1 /usr/bin/python3 server.py`"), "{stdout}");
    assert!(stdout.contains("the load offered 50.0/s and got 40.0/s against A (over 1.0% less in 3 of 3 runs), and "));
    let within_limit = verify(place.path(), "/usr/bin/python3 client.py 2 40.0", &["--rate-within", "20%"]);
    assert_eq!(within_limit.status.code(), Some(0), "{}", text(&within_limit.stderr));
}

#[test]
fn a_remedy_is_verified_on_a_server() {
    let place = tempfile::tempdir().unwrap();
    write_programs(place.path());
    let load =
        ["verify", "color", "--time-limit", "1ms", "--pairs", "8", "--load", "/usr/bin/python3 client.py 2 50.0"];
    let output =
        nearmiss(place.path(), &[&load[..], &["--ready", "./socket", "--json", "--", PYTHON, "server.py"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let verdict: Verdict = serde_json::from_slice(&output.stdout).unwrap();
    assert!(verdict.start.is_none(), "a server has started when its load begins");
    assert!(verdict.outcome == Outcome::NothingToActOn || verdict.engaged.is_some());
}

fn start(directory: &Path, arguments: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nearmiss"));
    command.args(arguments).current_dir(directory).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Tests also run in the background of a shell, where interrupts are ignored and stay so over exec.
    // SAFETY: between fork and exec only one system call is made.
    unsafe {
        command.pre_exec(|| {
            libc::signal(libc::SIGINT, libc::SIG_DFL);
            Ok(())
        })
    };
    command.spawn().unwrap()
}

fn within(time: Duration, holds: impl Fn() -> bool) -> bool {
    let begun = Instant::now();
    while !holds() && begun.elapsed() < time {
        std::thread::sleep(Duration::from_millis(10));
    }
    holds()
}

#[test]
fn nothing_is_left_of_a_server_after_a_signal() {
    for (verb, signal, code) in [
        (&["verify", "commands"][..], libc::SIGINT, Some(130)),
        (&["verify", "commands"], libc::SIGKILL, None),
        (&["observe", "--sched"], libc::SIGKILL, None),
        (&["observe", "--sched"], libc::SIGINT, Some(130)),
    ] {
        let place = tempfile::tempdir().unwrap();
        write_programs(place.path());
        let load = ["--load", "/bin/sh -c 'echo $$ > load; exec sleep 100'"];
        let servers: &[&str] = if verb[0] == "verify" { &AB } else { &["--", PYTHON, "server.py"] };
        let mut child = start(place.path(), &[verb, &load[..], servers].concat());
        let loading = || std::fs::read_to_string(place.path().join("load")).is_ok_and(|pid| pid.ends_with('\n'));
        assert!(within(Duration::from_secs(30), loading) && child_lives(place.path()), "{verb:?}");
        // SAFETY: a signal to our own child.
        unsafe { libc::kill(child.id() as i32, signal) };
        assert_eq!(child.wait().unwrap().code(), code, "{verb:?}");
        let load = std::fs::read_to_string(place.path().join("load")).unwrap();
        let load_lives =
            || std::fs::read_to_string(format!("/proc/{}/stat", load.trim())).is_ok_and(|stat| !stat.contains(") Z"));
        assert!(within(Duration::from_secs(10), || !child_lives(place.path()) && !load_lives()), "{verb:?} {signal}");
    }
}

/// Checks exit code 2, or a wrapper's 125; returns the message.
fn refusal(directory: &Path, arguments: &[&str]) -> String {
    let output = nearmiss(directory, arguments);
    let code = if ["trace", "observe"].contains(&arguments[0]) { 125 } else { 2 };
    assert_eq!((output.status.code(), output.stdout.len()), (Some(code), 0), "{arguments:?}");
    format!("$ nearmiss {}\n{}", arguments.join(" "), text(&output.stderr))
}

#[test]
fn wrong_use_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let messages: Vec<String> = [
        &["verify", "commands", "--ready", "80", "--load", "true", "true", "true"][..],
        &["verify", "commands", "--work", "x", "true", "true"],
        &["verify", "commands", "--load", "true", "--work", "(", "true", "true"],
        &["verify", "commands", "--load", "no-such-load -n 5", "true", "true"],
        &["verify", "commands", "--higher", "true", "true"],
        &["observe", "--load", "true", "-a"],
        &["trace", "--load", "true", "--from", "mark:1", "-m", "zen3-milan", "--", "true"],
    ]
    .iter()
    .map(|arguments| refusal(place.path(), arguments))
    .collect();
    insta::assert_snapshot!(messages.join("\n"));
}

#[test]
fn a_server_is_observed_while_its_load_runs() {
    let place = tempfile::tempdir().unwrap();
    write_programs(place.path());
    let load = ["observe", "--sched", "--polls", "--json", "o.json", "--load", "/usr/bin/python3 client.py 100 50.0"];
    let output = nearmiss(place.path(), &[&load[..], &["--", PYTHON, "server.py"]].concat());
    let stderr = text(&output.stderr);
    if stderr.contains("none of the requested instruments") {
        return eprintln!("skipped: no instrument works here");
    }
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(text(&output.stdout).ends_with("errors 0\n"), "the load's own output");
    let observed: Observed = serde_json::from_slice(&std::fs::read(place.path().join("o.json")).unwrap()).unwrap();
    let window = "The window is that of the load `/usr/bin/python3 client.py 100 50.0`: the server's start and end are \
                  outside, and the load is not observed.";
    assert!(observed.notes.iter().any(|note| note == window), "{:?}", observed.notes);
    // The load's own processes have other numbers than the server and its child.
    let processes: std::collections::BTreeSet<i32> = observed.tasks.iter().map(|task| task.process).collect();
    assert!((1..=2).contains(&processes.len()), "{:?}", observed.tasks);
    assert!(observed.cpu_ns > 20_000_000 && observed.cpu_ns < observed.duration_ns, "{}", observed.cpu_ns);
}

#[test]
fn a_server_is_traced_while_its_load_runs() {
    let Some(_guest) = for_a_guest() else { return };
    let place = tempfile::tempdir().unwrap();
    write_programs(place.path());
    let arguments = ["trace", "-m", "pentium-pro-4way-512k", "--cpus", "1", "--memory", "1GiB", "--timeout", "8m"];
    let served = ["--load", "sh -c 'echo loaded; exit 3'", "--", PYTHON, "server.py"];
    let output = nearmiss(place.path(), &[&arguments[..], &served].concat());
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "the load's own status: {stderr}");
    assert_eq!(text(&output.stdout), "loaded\n");
    let run = std::fs::read_dir(place.path().join("nearmiss-runs")).unwrap().flatten().next().unwrap().path();
    let manifest: Manifest = nearmiss_record::run::RunDir::open(&run).unwrap().read_json("manifest.json").unwrap();
    assert_eq!(manifest.command, [PYTHON, "server.py"]);
    assert!(manifest.notes.iter().any(|note| note.contains("the load `sh -c 'echo loaded; exit 3'`")));
    // A python interpreter executes a hundred times as many instructions until it listens.
    assert!(stderr.contains("Modelled  ") && !stderr.contains(" G instructions"), "{stderr}");
}

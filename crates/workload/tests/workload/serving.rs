//! Servers under loads: started, waited for, charged and ended, with all that they started.

#![allow(clippy::unwrap_used)]

use nearmiss_workload::{CpuClock, Cut, Load, Loaded, Ready, Serving, ServingError, Stdio, Workload};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A server that listens on a Unix socket, then executes `then`.
fn server(socket: &Path, then: &str) -> Workload {
    server_after("", socket, then)
}

/// Such a server that first executes `ahead`.
fn server_after(ahead: &str, socket: &Path, then: &str) -> Workload {
    let script = format!(
        "import os, signal, socket, sys, time\n\
         def burn(seconds):\n\
        \x20   end = time.process_time() + seconds\n\
        \x20   while time.process_time() < end: pass\n\
         {ahead}\n\
         s = socket.socket(socket.AF_UNIX); s.bind({socket:?}); s.listen()\n{then}"
    );
    Workload::new(["python3", "-c", &script]).whole_tree().stdin(Stdio::Null)
}

fn load(argv: &[&str]) -> Load {
    Load {
        workload: Workload::new(argv.iter().copied()),
        ready: Ready::Listens,
        ready_within: Duration::from_secs(20),
        limit: Some(Duration::from_secs(20)),
    }
}

fn serve(server: &Workload, load: &Load) -> Result<Loaded, ServingError> {
    let stop = AtomicBool::new(false);
    let mut serving = Serving::start(server.launch_suspended()?, load)?;
    serving.wait_until_ready(load, &stop)?;
    let loaded = serving.under(load, &stop, || Duration::from_millis(20));
    serving.stop(Duration::from_secs(5))?;
    loaded?.whole()
}

fn alive(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z"))
}

fn numbers(file: &Path) -> Vec<i32> {
    std::fs::read_to_string(file).unwrap().split_whitespace().map(|word| word.parse().unwrap()).collect()
}

/// A process that nobody waits for, one that left its parents, and one that was waited for: 0.2 s each. Each reports
/// when its time is up.
const FORKS: &str = "
done, reports = os.pipe()
def work():
    burn(0.2); os.write(reports, b'x'); os._exit(0)
c, _ = s.accept()
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
if os.fork() == 0:
    work()
os.read(done, 1)
if os.fork() == 0:
    if os.fork() == 0:
        os.setsid(); work()
    os._exit(0)
os.read(done, 1)
time.sleep(0.1)
signal.signal(signal.SIGCHLD, signal.SIG_DFL)
pid = os.fork()
if pid == 0:
    work()
os.waitpid(pid, 0)
c.send(b'done'); time.sleep(100)
";

#[test]
fn a_forking_server_is_charged_with_all_of_the_loads_time_and_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("socket");
    let client = format!("import socket; c = socket.socket(socket.AF_UNIX); c.connect({socket:?}); c.recv(4)");
    let server = server_after("burn(0.5)", &socket, FORKS);
    let loaded = serve(&server, &load(&["python3", "-c", &client]));
    let seconds = loaded.unwrap().server_cpu_ns as f64 * 1e-9;
    assert!((0.6..0.75).contains(&seconds), "0.6 s of children, and a little of their parents: {seconds}");
}

/// Seconds that a hypervisor kept all CPUs together for others, since the machine started.
fn stolen() -> f64 {
    let stat = std::fs::read_to_string("/proc/stat").unwrap();
    stat.split_whitespace().nth(8).unwrap().parse::<f64>().unwrap() / 100.0
}

#[test]
fn the_kernels_accounts_miss_what_nobody_waits_for_and_nothing_else() {
    let script = "import os, time\n\
        def burn(seconds):\n\
        \x20   end = time.process_time() + seconds\n\
        \x20   while time.process_time() < end: pass\n\
        if os.fork() == 0:\n\
        \x20   burn(0.2); os._exit(0)\n\
        os.wait()\n\
        if os.fork() == 0:\n\
        \x20   if os.fork() == 0: os.setsid(); burn(0.2); os._exit(0)\n\
        \x20   os._exit(0)\n\
        os.wait(); burn(0.2); time.sleep(100)";
    let stolen_before = stolen();
    let suspended = Workload::new(["python3", "-c", script]).whole_tree().launch_suspended().unwrap();
    let mut event = CpuClock::of(&suspended);
    let mut accounts = CpuClock::Accounts(suspended.tree());
    assert!(matches!(event, CpuClock::Event(_)), "the kernel has the clock");
    let running = suspended.resume().unwrap();
    let begun = Instant::now();
    while event.read().unwrap() < 600_000_000 && begun.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(200));
    let [event, accounts] = [&mut event, &mut accounts].map(|clock| clock.read().unwrap() as f64 * 1e-9);
    // The accounts leave out what the hypervisor kept for others, the event does not.
    let stolen = stolen() - stolen_before;
    let apart = (event - accounts).abs();
    assert!(event > 0.6 && apart < 0.06 + stolen, "{event} against {accounts}, {stolen} stolen");
    running.terminate(Duration::ZERO).unwrap();
}

#[test]
fn a_server_that_ends_early_is_reported() {
    let error = serve(&Workload::new(["sh", "-c", "exit 7"]).whole_tree(), &load(&["true"])).unwrap_err();
    assert_eq!(error.to_string(), "the server exited with status 7 before it answered");
    let error = serve(&Workload::new(["true"]).whole_tree(), &load(&["true"])).unwrap_err();
    let hint = "; a server that puts itself in the background must be run in the foreground";
    assert_eq!(error.to_string(), format!("the server exited with status 0 before it answered{hint}"));
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("socket");
    let dies = server(&socket, "s.accept(); os.kill(os.getpid(), 9)");
    let client = format!("import socket, time; socket.socket(socket.AF_UNIX).connect({socket:?}); time.sleep(15)");
    let begun = Instant::now();
    let error = serve(&dies, &load(&["python3", "-c", &client])).unwrap_err();
    assert_eq!(error.to_string(), "the server was killed by signal 9 while the load ran");
    assert!(begun.elapsed() < Duration::from_secs(14), "the load was waited for");
}

#[test]
fn a_server_that_never_answers_is_reported() {
    let silent = Workload::new(["sleep", "100"]).whole_tree();
    let given = |ready: &str| Load {
        ready: if ready.is_empty() { Ready::Listens } else { ready.parse().unwrap() },
        ready_within: Duration::from_millis(250),
        ..load(&["true"])
    };
    let errors = ["", "127.0.0.1:1", "/no/such/socket"].map(|ready| serve(&silent, &given(ready)).unwrap_err());
    let errors = errors.map(|error| error.to_string());
    assert_eq!(
        errors[0],
        "the server listened on no TCP or Unix socket and bound no UDP socket within 0.25 s (--ready-within); name where it \
         answers with --ready HOST:PORT or --ready PATH"
    );
    assert!(errors[1].starts_with("the server took no connection at 127.0.0.1:1 within 0.25 s"), "{}", errors[1]);
    assert!(errors[2].starts_with("the server took no connection at /no/such/socket within 0.25 s"), "{}", errors[2]);
}

#[test]
fn a_server_of_datagrams_answers_and_one_of_both_kinds_when_it_listens() {
    let directory = tempfile::tempdir().unwrap();
    let datagrams = "u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.bind(('127.0.0.1', 0))\n";
    let alone = Workload::new(["python3", "-c", &format!("import socket, time\n{datagrams}time.sleep(100)")]);
    serve(&alone.whole_tree(), &load(&["true"])).unwrap();
    // Its datagrams come first; the load needs its connections.
    let socket = directory.path().join("socket");
    let both = server_after(&format!("{datagrams}\ntime.sleep(0.1)"), &socket, "time.sleep(100)");
    let client = format!("import socket\nsocket.socket(socket.AF_UNIX).connect({socket:?})");
    serve(&both, &load(&["python3", "-c", &client])).unwrap();
}

#[test]
fn a_load_that_fails_or_lasts_too_long_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let mut number = 0;
    let mut with = |load: Load| {
        number += 1;
        let stays = server(&directory.path().join(format!("socket{number}")), "time.sleep(100)");
        serve(&stays, &load).map(|_| ()).unwrap_err().to_string()
    };
    assert_eq!(with(load(&["sh", "-c", "exit 3"])), "the load exited with status 3");
    let limit = Some(Duration::from_millis(200));
    assert_eq!(with(Load { limit, ..load(&["sleep", "9"]) }), "the load took more than 0.2 s and was stopped");
}

#[test]
fn readiness_is_that_of_the_servers_own_sockets() {
    let directory = tempfile::tempdir().unwrap();
    // Somebody else listens all the time.
    let _other = std::os::unix::net::UnixListener::bind(directory.path().join("other")).unwrap();
    let socket = directory.path().join("socket");
    let late = server(&socket, "time.sleep(100)");
    let ready = Load { ready: Ready::Unix(socket.clone()), ..load(&["true"]) };
    for load in [load(&["test", "-S", socket.to_str().unwrap()]), ready] {
        assert!(serve(&late, &load).unwrap().load.status.success());
        std::fs::remove_file(&socket).unwrap();
    }
}

/// Processes in a session of their own that ignore SIGTERM, and have lost their parents.
const LEAVES: &str = "
for i in range(3):
    if os.fork() == 0:
        os.setsid(); signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if os.fork() == 0:
            open(FILE, 'a').write(f'{os.getpid()} '); time.sleep(100)
        os._exit(0)
time.sleep(100)
";

fn leaving(directory: &Path) -> (Workload, std::path::PathBuf) {
    let file = directory.join("pids");
    (server(&directory.join("socket"), &LEAVES.replace("FILE", &format!("{file:?}"))), file)
}

#[test]
fn nothing_is_left_of_a_server_that_was_stopped() {
    let directory = tempfile::tempdir().unwrap();
    let (server, file) = leaving(directory.path());
    let all = format!("until [ $(cat {0} | wc -w) = 3 ]; do sleep 0.05; done", file.display());
    serve(&server, &load(&["sh", "-c", &all])).unwrap();
    let pids = numbers(&file);
    assert_eq!(pids.len(), 3);
    assert!(!pids.iter().any(|pid| alive(*pid)), "{pids:?}");
}

/// Not a test of its own: a launcher that is killed.
#[test]
fn launcher() {
    let Some(directory) = std::env::var_os("NM_TEST_DIRECTORY") else { return };
    let (server, _) = leaving(Path::new(&directory));
    serve(&server, &load(&["sleep", "100"])).unwrap();
}

#[test]
fn nothing_is_left_of_a_server_after_its_launcher_was_killed() {
    let directory = tempfile::tempdir().unwrap();
    let mut launcher = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "serving::launcher", "--test-threads=1"])
        .env("NM_TEST_DIRECTORY", directory.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let file = directory.path().join("pids");
    let begun = Instant::now();
    let soon = |holds: &dyn Fn() -> bool| {
        while !holds() && begun.elapsed() < Duration::from_secs(30) {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(holds());
    };
    soon(&|| file.exists() && numbers(&file).len() == 3);
    launcher.kill().unwrap();
    launcher.wait().unwrap();
    soon(&|| !numbers(&file).into_iter().any(alive));
}

#[test]
fn a_load_ends_at_a_request_to_stop() {
    let directory = tempfile::tempdir().unwrap();
    let load = load(&["sleep", "15"]);
    let stays = server(&directory.path().join("socket"), "time.sleep(100)");
    let mut serving = Serving::start(stays.launch_suspended().unwrap(), &load).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    serving.wait_until_ready(&load, &stop).unwrap();
    let begun = Instant::now();
    let requested = stop.clone();
    let ended = serving.under(&load, &stop, || {
        requested.store(begun.elapsed() > Duration::from_millis(200), Ordering::Relaxed);
        Duration::from_millis(20)
    });
    assert_eq!(ended.unwrap().cut, Some(Cut::Interrupted));
    assert!(begun.elapsed() < Duration::from_secs(10));
}

#[test]
fn an_address_that_somebody_else_holds_is_refused_before_the_server_starts() {
    let here = tempfile::tempdir().unwrap();
    let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let path = here.path().join("taken");
    let unix = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let started = here.path().join("started");
    let server = Workload::new(["touch", started.to_str().unwrap()]).whole_tree();
    for address in [tcp.local_addr().unwrap().to_string(), path.display().to_string()] {
        let taken = Load { ready: address.parse().unwrap(), ..load(&["true"]) };
        let error = serve(&server, &taken).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{address} already answers; another process holds it: ")), "{error}");
        assert!(!started.exists());
    }
    drop(unix);
    let free = Load { ready: path.display().to_string().parse().unwrap(), ..load(&["true"]) };
    assert!(matches!(serve(&server, &free), Err(ServingError::ServerEnded { .. })), "a socket that nobody holds");
}

//! A command is launched, held, timed, pinned and stopped as described.

#![allow(clippy::unwrap_used)]

use nearmiss_workload::{CpuSet, Error, MemoryPolicy, ProcessGroup, Status, Stdio, Workload};
use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

fn shell(script: &str) -> Workload {
    Workload::new(["sh", "-c", script]).stdin(Stdio::Null).stdout(Stdio::Pipe)
}

fn output(workload: Workload) -> (String, Status) {
    let mut running = workload.launch_suspended().unwrap().resume().unwrap();
    let mut text = String::new();
    running.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    (text, running.wait().unwrap().status)
}

/// Writes a file that can be executed. Another process does it: a descriptor of ours, open
/// for writing, would be inherited by what other tests fork just then ("text file busy").
fn write_script(path: &Path, content: &str) {
    let write = "printf '%s' \"$0\" > \"$1\" && chmod 755 \"$1\"";
    let workload = Workload::new(["sh".as_ref(), "-c".as_ref(), write.as_ref(), content.as_ref(), path.as_os_str()]);
    let running = workload.launch_suspended().unwrap().resume().unwrap();
    assert!(running.wait().unwrap().status.success());
}

fn alive(pid: i32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or("").trim_start().starts_with('Z'))
}

fn gone_within(pid: i32, limit: Duration) -> bool {
    let start = Instant::now();
    while start.elapsed() < limit {
        if !alive(pid) {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    false
}

#[test]
fn a_suspended_command_has_not_run_and_keeps_its_pid() {
    let dir = tempfile::tempdir().unwrap();
    let mark = dir.path().join("mark");
    let suspended = shell(&format!("echo $$; touch {}", mark.display())).launch_suspended().unwrap();
    std::thread::sleep(Duration::from_millis(50));
    assert!(!mark.exists());
    let pid = suspended.pid();
    let mut running = suspended.resume().unwrap();
    let mut text = String::new();
    running.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert!(running.wait().unwrap().status.success());
    assert_eq!(text.trim(), pid.to_string());
    assert!(mark.exists());
}

#[test]
fn a_suspended_command_that_is_dropped_never_runs() {
    let dir = tempfile::tempdir().unwrap();
    let mark = dir.path().join("mark");
    let suspended = shell(&format!("touch {}", mark.display())).launch_suspended().unwrap();
    let pid = suspended.pid();
    drop(suspended);
    assert!(!alive(pid) && !mark.exists());
}

#[test]
fn the_environment_directory_and_streams_are_as_requested() {
    let dir = tempfile::tempdir().unwrap();
    let real = fs::canonicalize(dir.path()).unwrap();
    let workload = Workload::new(["sh", "-c", "pwd; echo $NM_SET-$HOME; cat"])
        .env("NM_SET", "yes")
        .env_remove("HOME")
        .cwd(dir.path())
        .stdin(Stdio::Pipe)
        .stdout(Stdio::Pipe);
    let mut running = workload.launch_suspended().unwrap().resume().unwrap();
    running.stdin.take().unwrap().write_all(b"through\n").unwrap();
    let mut text = String::new();
    running.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(text, format!("{}\nyes-\nthrough\n", real.display()));
    assert!(running.wait().unwrap().status.success());
}

#[test]
fn times_are_of_the_command_alone() {
    let spin = shell("i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done");
    let spun = spin.launch_suspended().unwrap().resume().unwrap().wait().unwrap();
    let slept = shell("sleep 0.2").launch_suspended().unwrap().resume().unwrap().wait().unwrap();
    assert!(spun.user_ns > 20_000_000, "{spun:?}");
    assert!(slept.wall_ns >= 200_000_000 && slept.user_ns < 20_000_000, "{slept:?}");
    assert!(spun.wall_ns + 20_000_000 >= spun.user_ns);
}

#[test]
fn a_pinned_command_runs_on_its_cpus() {
    let last = CpuSet::allowed().unwrap().iter().last().unwrap();
    let pinned = shell("grep Cpus_allowed_list /proc/self/status").pin(CpuSet::from_iter([last]));
    assert_eq!(output(pinned).0, format!("Cpus_allowed_list:\t{last}\n"));
}

#[test]
fn failures_have_the_exit_codes_of_env_and_timeout() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "not a program").unwrap();
    let refused = |workload: Workload| match workload.launch_suspended() {
        Ok(_) => panic!("was launched"),
        Err(e) => (e.exit_code(), e.to_string()),
    };
    assert_eq!(refused(Workload::new(["no-such-program-here"])).0, 127);
    assert_eq!(refused(Workload::new(["/no/such/file"])).0, 127);
    assert_eq!(refused(Workload::new([file.as_os_str()])).0, 126);
    assert_eq!(refused(Workload::new([dir.path()])).0, 126);
    assert_eq!(refused(Workload::new::<&str>([])).0, 125);
    assert_eq!(refused(Workload::new(["true", "a\0b"])).0, 125);

    // Errors that only `exec` finds come back from `resume`.
    write_script(&file, "#!/no/such/interpreter\n");
    let resumed = Workload::new([&file]).launch_suspended().unwrap().resume();
    assert!(matches!(resumed, Err(Error::NotExecutable { .. })));
    let lost = Workload::new(["true"]).cwd("/no/such/directory").launch_suspended();
    assert!(matches!(lost.unwrap().resume(), Err(Error::System { .. })));
}

#[test]
fn a_script_without_an_interpreter_line_is_run_by_the_shell() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("script");
    write_script(&file, "echo $1; exit 7\n");
    let workload = Workload::new([file.as_os_str(), "one".as_ref()]).stdout(Stdio::Pipe);
    assert_eq!(output(workload), ("one\n".to_owned(), Status::Exited(7)));
}

#[test]
fn a_signal_that_kills_shows_as_128_and_its_number() {
    let (_, status) = output(shell("kill -9 $$"));
    assert_eq!(status, Status::Signaled(9));
    assert_eq!(status.wrapper_code(), 137);
}

#[test]
fn sigpipe_ends_the_command_as_it_would_under_a_shell() {
    let mut running = Workload::new(["sh", "-c", "yes; exit 3"])
        .stdout(Stdio::Pipe)
        .stderr(Stdio::Null)
        .launch_suspended()
        .unwrap()
        .resume()
        .unwrap();
    drop(running.stdout.take());
    // `yes` is killed by SIGPIPE instead of complaining, then the shell goes on.
    assert_eq!(running.wait().unwrap().status, Status::Exited(3));
}

#[test]
fn terminate_reaches_the_whole_group_and_insists() {
    // Both the shell and its child ignore SIGTERM.
    let mut running =
        shell("trap '' TERM; sleep 100 & echo $!; wait; wait; sleep 100").launch_suspended().unwrap().resume().unwrap();
    let mut text = [0; 16];
    let n = running.stdout.as_mut().unwrap().read(&mut text).unwrap();
    let grandchild: i32 = std::str::from_utf8(&text[..n]).unwrap().trim().parse().unwrap();
    let finished = running.terminate(Duration::from_millis(100)).unwrap();
    assert_eq!(finished.status, Status::Signaled(9));
    assert!(gone_within(grandchild, Duration::from_secs(2)));
}

#[test]
fn waiting_for_a_time_gives_the_running_command_back() {
    let running = shell("sleep 100").launch_suspended().unwrap().resume().unwrap();
    let Err(running) = running.wait_for(Duration::from_millis(30)).unwrap() else { panic!("ended early") };
    let pid = running.pid();
    drop(running);
    assert!(!alive(pid));
}

#[test]
fn a_wrapper_group_is_the_launchers() {
    let own = |group| output(shell("ps -o pgid= -p $$").group(group)).0.trim().to_owned();
    // SAFETY: getpgrp has no failure and no arguments.
    let launcher = unsafe { libc::getpgrp() }.to_string();
    assert_eq!(own(ProcessGroup::Launcher), launcher);
    assert_ne!(own(ProcessGroup::Own), launcher);
}

#[test]
fn a_session_of_its_own_is_led_by_the_command_and_ended_whole() {
    let (numbers, _) = output(shell("ps -o pid=,pgid=,sid= -p $$").group(ProcessGroup::Session));
    let numbers: Vec<&str> = numbers.split_whitespace().collect();
    assert!(numbers.len() == 3 && numbers.iter().all(|number| *number == numbers[0]), "{numbers:?}");
    let running = shell("trap '' HUP; sleep 100").group(ProcessGroup::Session).launch_suspended().unwrap();
    let running = running.resume().unwrap();
    let pid = running.pid();
    drop(running);
    assert!(!alive(pid));
}

#[test]
fn kept_descriptors_reach_the_command_and_no_others_do() {
    let dir = tempfile::tempdir().unwrap();
    let kept = std::sync::Arc::new(fs::File::create(dir.path().join("kept")).unwrap().into());
    let _other = fs::File::create(dir.path().join("other")).unwrap();
    let (text, _) = output(shell("for fd in /proc/self/fd/*; do readlink $fd; done").keep_open(kept));
    // Beside the kept one only the three standard streams, and what the shell itself opens.
    assert_eq!(text.lines().filter(|target| target.ends_with("/kept")).count(), 1, "{text}");
    assert!(!text.contains("/other"), "{text}");
}

#[test]
fn memory_comes_from_the_requested_nodes_and_children_inherit_that() {
    if !Path::new("/proc/self/numa_maps").exists() {
        println!("skipped: this kernel knows no memory policies");
        return;
    }
    let maps = || shell("sh -c 'cat /proc/self/numa_maps'");
    let policies = [
        (MemoryPolicy::Bind(vec![0]), " bind:0 "),
        (MemoryPolicy::Interleave(vec![0]), " interleave:0 "),
        (MemoryPolicy::Prefer(0), " prefer:0 "),
    ];
    for (policy, binding) in policies {
        let (text, status) = output(maps().memory(policy));
        assert!(status.success() && text.lines().next().unwrap().contains(binding), "{binding}: {text}");
    }
    assert!(!output(maps()).0.contains(" bind:"));
    let refused = |policy| maps().memory(policy).launch_suspended().err().map(|error| error.to_string());
    assert!(refused(MemoryPolicy::Bind(vec![1024])).unwrap().contains("below 1024"));
    assert!(refused(MemoryPolicy::Bind(Vec::new())).unwrap().contains("one node at least"));
    // A node that this machine has not: the kernel refuses it.
    let error = maps().memory(MemoryPolicy::Bind(vec![1023])).launch_suspended().unwrap().resume().err().unwrap();
    assert_eq!(error.to_string(), "cannot set the command's memory policy: Invalid argument (os error 22)");
}

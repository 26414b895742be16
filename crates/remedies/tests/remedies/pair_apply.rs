//! Tasks of a command, and of a process that runs already, get the CPUs that a table gives them; a mask that the
//! program set is left alone unless an option overrides it; and nothing is left when the daemon ends, not even by
//! SIGKILL.
#![allow(clippy::unwrap_used)]

use clap::ArgMatches;
use nearmiss_analysis::{Engagement, Remedy};
use nearmiss_remedies::REMEDIES;
use nearmiss_remedies::pair::apply::{
    Args, KEPT_PAIRS, KEPT_PAIRS_SCHEMA, KeptPair, KeptPairs, KeptTask, Report, apply,
};
use nearmiss_workload::{CpuSet, Stdio, Workload};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// The command's tasks 1 to 4, of which 1 and 2 leave each other alone, and so do 3 and 4.
fn keep_table(run: &Path) {
    let task = |order| KeptTask { order, name: format!("sleep {order}"), weight: 1.0 };
    let alike = |a: usize, b: usize| if a / 2 == b / 2 { 1.0 } else { 3.0 };
    let all = (0..4).flat_map(|a| (0..4).filter(move |b| *b != a).map(move |b| (a, b)));
    let pairs = all.map(|(task, beside)| KeptPair { task, beside, of_alone: vec![alike(task, beside); 3] });
    let kept = KeptPairs {
        schema: KEPT_PAIRS_SCHEMA.into(),
        shared: None,
        nothing_proposed: false,
        tasks: (1..5).map(task).collect(),
        pairs: pairs.collect(),
    };
    std::fs::write(run.join(KEPT_PAIRS), serde_json::to_vec(&kept).unwrap()).unwrap();
}

/// Makes a run with a table for four tasks on two CPUs; none where there are not two.
fn run_with_a_table() -> Option<tempfile::TempDir> {
    if CpuSet::allowed().unwrap().len() != 2 {
        eprintln!("skipped: not two CPUs, for which the expected places are");
        return None;
    }
    let run = tempfile::tempdir().unwrap();
    keep_table(run.path());
    Some(run)
}

fn remedy() -> &'static Remedy {
    REMEDIES.iter().find(|remedy| remedy.name == "pair").unwrap()
}

fn options(given: &[&str]) -> ArgMatches {
    (remedy().options)(clap::Command::new("pair")).get_matches_from([&["pair"], given].concat())
}

/// Four processes under a shell, which stay until they are ended.
struct Sleepers(Child);

impl Sleepers {
    fn start(fourth: &str) -> Self {
        let script = format!("sleep 60 & sleep 60 & sleep 60 & {fourth} & wait");
        let child = Command::new("sh").args(["-c", &script]).spawn().unwrap();
        let sleepers = Sleepers(child);
        // Each has its mask when it has become `sleep`.
        wait_until(|| sleepers.children().iter().filter(|pid| name(**pid) == "sleep").count() == 4);
        sleepers
    }

    fn pid(&self) -> i32 {
        self.0.id() as i32
    }

    fn children(&self) -> Vec<i32> {
        let pid = self.pid();
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        children.split_whitespace().map(|child| child.parse().unwrap()).collect()
    }

    fn masks(&self) -> Vec<String> {
        self.children().into_iter().map(|pid| CpuSet::of_task(pid).unwrap().to_string()).collect()
    }
}

impl Drop for Sleepers {
    fn drop(&mut self) {
        for child in self.children() {
            rustix::process::kill_process(
                rustix::process::Pid::from_raw(child).unwrap(),
                rustix::process::Signal::KILL,
            )
            .unwrap();
        }
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

fn name(pid: i32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim().to_owned()
}

/// Likes run at the same time, so those of one CPU are unlike.
fn assert_paired(masks: &[String]) {
    let all: BTreeSet<&String> = masks.iter().collect();
    assert_eq!(all.len(), 2, "{masks:?}");
    assert!(masks[0] != masks[1] && masks[2] != masks[3], "{masks:?}");
}

fn attach(pid: i32, run: &Path, further: &[&str]) -> Box<dyn Engagement> {
    let period: &[&str] = if further.contains(&"--period") { &[] } else { &["--period", "20ms"] };
    let given = options(&[&["--table", run.to_str().unwrap()], period, further].concat());
    (remedy().attach.unwrap())(pid, &given).unwrap()
}

#[test]
fn a_process_that_runs_gets_its_groups_and_its_masks_back() {
    let Some(run) = run_with_a_table() else { return };
    let sleepers = Sleepers::start("sleep 60");
    let before = sleepers.masks();
    let mut engagement = attach(sleepers.pid(), run.path(), &[]);
    assert_paired(&sleepers.masks());
    let engaged = engagement.confirm(sleepers.pid()).unwrap();
    assert_eq!(sleepers.masks(), before);
    let expected = ["known", "set", "restored", "own_masks"].map(|figure| engaged.record[figure].as_u64().unwrap());
    assert_eq!(expected, [4, 4, 4, 0], "{}", engaged.text);
}

#[test]
fn a_mask_of_the_programs_own_is_left_alone_unless_overridden() {
    let Some(run) = run_with_a_table() else { return };
    let cpu = CpuSet::allowed().unwrap().iter().next().unwrap().to_string();
    let sleepers = Sleepers::start(&format!("taskset -c {cpu} sleep 60"));
    let before = sleepers.masks();
    assert_eq!(before[3], cpu);
    let mut engagement = attach(sleepers.pid(), run.path(), &[]);
    assert_eq!(sleepers.masks()[3], cpu);
    let engaged = engagement.confirm(sleepers.pid()).unwrap();
    assert_eq!((engaged.record["own_masks"].as_u64(), engaged.record["set"].as_u64()), (Some(1), Some(3)));
    assert_eq!(sleepers.masks(), before);
    // One that the program sets while the daemon is there.
    let mut engagement = attach(sleepers.pid(), run.path(), &[]);
    let third = sleepers.children()[2];
    let other = if sleepers.masks()[2] == "0" { "1" } else { "0" };
    assert!(Command::new("taskset").args(["-p", "-c", other, &third.to_string()]).output().unwrap().status.success());
    std::thread::sleep(Duration::from_millis(300));
    let engaged = engagement.confirm(sleepers.pid()).unwrap();
    assert_eq!(engaged.record["own_masks"].as_u64(), Some(2), "{}", engaged.text);
    assert_eq!(sleepers.masks()[2], other);
}

#[test]
fn a_table_also_moves_masks_of_the_programs_own_on_request() {
    let Some(run) = run_with_a_table() else { return };
    let sleepers = Sleepers::start("taskset -c 0,1 sleep 60");
    let mut engagement = attach(sleepers.pid(), run.path(), &["--override-masks"]);
    let second = sleepers.children()[1];
    let (before, other) = (sleepers.masks(), |cpu: &str| if cpu == "0" { "1" } else { "0" });
    let wanted = other(&before[1]);
    assert!(Command::new("taskset").args(["-p", "-c", wanted, &second.to_string()]).output().unwrap().status.success());
    std::thread::sleep(Duration::from_millis(300));
    // The program's last wish is what it has in the end.
    let engaged = engagement.confirm(sleepers.pid()).unwrap();
    assert_eq!(sleepers.masks()[1], wanted, "{}", engaged.text);
}

#[test]
fn new_tasks_of_a_command_are_followed() {
    let Some(run) = run_with_a_table() else { return };
    let (reader, writer) = std::io::pipe().unwrap();
    let writer = std::fs::File::from(std::os::fd::OwnedFd::from(writer));
    // They live until the follower has seen them, also on a busy machine.
    let script = "for i in 1 2 3 4; do sleep 2 & done; echo started; wait";
    let workload = Workload::new(["sh", "-c", script]).stdin(Stdio::Pipe).stdout(writer);
    let args = Args { table: Some(run.path().to_owned()), ..Args::default() };
    let (workload, mut around) = apply(workload, &args).unwrap();
    let suspended = workload.launch_suspended().unwrap();
    let pid = suspended.pid();
    if let Err(error) = around.started(pid) {
        eprintln!("skipped: {error}");
        return;
    }
    let running = suspended.resume().unwrap();
    BufReader::new(reader).read_line(&mut String::new()).unwrap();
    assert!(running.wait().unwrap().status.success());
    let report: Report = around.report(pid).unwrap();
    // The shell, and four that it started.
    assert_eq!((report.tasks, report.known), (5, 4), "{report}");
}

/// Ends a child of a shell that waits, and starts another process under its number, with this mask.
fn take_number(shell: &Sleepers, number: i32, mask: &str) -> Option<Child> {
    let last = Path::new("/proc/sys/kernel/ns_last_pid");
    rustix::process::kill_process(rustix::process::Pid::from_raw(number).unwrap(), rustix::process::Signal::KILL)
        .unwrap();
    while shell.children().contains(&number) {
        std::thread::sleep(Duration::from_millis(1));
    }
    // The kernel reports the time of a task's start in hundredths; numbers come round in seconds at the soonest.
    std::thread::sleep(Duration::from_millis(50));
    for _ in 0..1000 {
        if std::fs::write(last, (number - 1).to_string()).is_err() {
            eprintln!("skipped: no kernel that lets us choose the next process's number");
            return None;
        }
        let mut child = Command::new("taskset").args(["-c", mask, "sleep", "60"]).spawn().unwrap();
        if child.id() as i32 == number {
            while name(number) != "sleep" {
                std::thread::sleep(Duration::from_millis(1));
            }
            return Some(child);
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
    eprintln!("skipped: others take every number first");
    None
}

#[test]
fn who_comes_later_under_the_same_number_keeps_its_mask() {
    let Some(run) = run_with_a_table() else { return };
    // The daemon looks, or it does not and its end is the first time that it could be wrong.
    for period in ["20ms", "1h"] {
        let sleepers = Sleepers::start("sleep 60");
        let mut engagement = attach(sleepers.pid(), run.path(), &["--period", period]);
        let (number, mask) = (sleepers.children()[1], sleepers.masks()[1].clone());
        let Some(mut stranger) = take_number(&sleepers, number, &mask) else { return };
        std::thread::sleep(Duration::from_millis(200));
        let engaged = engagement.confirm(sleepers.pid()).unwrap();
        let after = CpuSet::of_task(number).unwrap().to_string();
        stranger.kill().unwrap();
        stranger.wait().unwrap();
        assert_eq!(after, mask, "{}", engaged.text);
        assert_eq!(engaged.record["restored"].as_u64(), Some(3), "{}", engaged.text);
    }
}

#[test]
fn children_that_a_process_starts_later_are_followed() {
    let Some(run) = run_with_a_table() else { return };
    let later = run.path().join("later");
    let fourth = format!("(until [ -e {} ]; do sleep 0.05; done; exec sleep 60)", later.display());
    let sleepers =
        Sleepers(Command::new("sh").args(["-c", &format!("sleep 60 & sleep 60 & {fourth} & wait")]).spawn().unwrap());
    let is_looking =
        || sleepers.children().len() == 3 && sleepers.children()[..2].iter().all(|pid| name(*pid) == "sleep");
    wait_until(is_looking);
    let before = CpuSet::allowed().unwrap().to_string();
    let mut engagement = attach(sleepers.pid(), run.path(), &[]);
    std::fs::write(later, "").unwrap();
    // The third's own children come and go, and the fourth is one of them.
    wait_until(|| sleepers.masks().iter().all(|mask| *mask != before));
    let engaged = engagement.confirm(sleepers.pid()).unwrap();
    assert!(engaged.record["known"].as_u64() >= Some(3), "{}", engaged.text);
    assert!(sleepers.masks().iter().all(|mask| *mask == before), "{:?}", sleepers.masks());
}

fn wait_until(is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_task_that_becomes_a_real_time_task_gets_its_mask_back() {
    let Some(run) = run_with_a_table() else { return };
    let sleepers = Sleepers::start("sleep 60");
    let before = sleepers.masks();
    let mut engagement = attach(sleepers.pid(), run.path(), &[]);
    wait_until(|| sleepers.masks()[2] != before[2]);
    let third = sleepers.children()[2].to_string();
    if !Command::new("chrt").args(["-f", "-p", "1", &third]).output().unwrap().status.success() {
        eprintln!("skipped: no real-time policy here");
        return;
    }
    wait_until(|| sleepers.masks()[2] == before[2]);
    let engaged = engagement.confirm(sleepers.pid()).unwrap();
    assert_eq!((engaged.record["real_time"].as_u64(), engaged.record["own_masks"].as_u64()), (Some(1), Some(0)));
    assert_eq!(sleepers.masks(), before);
}

/// Not a test of its own: what the next test starts as the one that is killed.
#[test]
fn daemon() {
    let (Some(pid), Some(run)) = (std::env::var_os("NM_TEST_PID"), std::env::var_os("NM_TEST_RUN")) else {
        return;
    };
    let _engagement = attach(pid.to_str().unwrap().parse().unwrap(), Path::new(&run), &[]);
    println!("attached");
    std::thread::sleep(Duration::from_secs(60));
}

#[test]
fn a_killed_daemon_leaves_no_mask_changed() {
    let Some(run) = run_with_a_table() else { return };
    let sleepers = Sleepers::start("sleep 60");
    let before = sleepers.masks();
    let mut daemon = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "pair_apply::daemon", "--nocapture", "--test-threads=1"])
        .env("NM_TEST_PID", sleepers.pid().to_string())
        .env("NM_TEST_RUN", run.path())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(daemon.stdout.take().unwrap()).lines();
    assert!(lines.map(Result::unwrap).any(|line| line.contains("attached")));
    assert_paired(&sleepers.masks());
    daemon.kill().unwrap();
    daemon.wait().unwrap();
    let killed = Instant::now();
    while sleepers.masks() != before {
        assert!(killed.elapsed() < Duration::from_secs(10), "{:?}", sleepers.masks());
        std::thread::sleep(Duration::from_millis(5));
    }
}

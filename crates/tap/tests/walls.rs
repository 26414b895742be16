//! Nothing of the host can be changed from inside, and nothing is left behind. A program of its own, since what is left is
//! looked for among all that it has running.
#![allow(clippy::unwrap_used)]

#[path = "guest/engines.rs"]
mod engines;
#[allow(dead_code, reason = "this program uses a part of it")]
#[path = "guest/support.rs"]
mod support;

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread::sleep;
use std::time::{Duration, Instant};

use engines::under_each_engine;
use nearmiss_tap::guest::{CommandStatus, ExitReason, Guest, KernelImage, QemuBinary};
use support::{config, run, shell};

/// Tests run one after the other: what another one has running would be taken for left.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Root in the guest mounts the share again, writable as far as the guest can see, and attacks.
#[test]
fn root_inside_cannot_write_outside() {
    let _one = ONE_AT_A_TIME.lock();
    under_each_engine(attack);
}

fn attack(qemu: QemuBinary) {
    let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let victim = home.path().join("victim");
    fs::write(&victim, "untouched").unwrap();
    let script = r#"
        m=/run/again; mkdir $m; mount -t virtiofs root $m || exit 1
        mount -o remount,rw $m
        grep -q untouched $m$1/victim || exit 2
        try() { "$@" 2>/dev/null && echo "SUCCEEDED: $*"; }
        try sh -c "echo x >> $m$1/victim"
        try touch $m$1/victim $m$1/new
        try rm -f $m$1/victim
        try chmod 777 $m$1/victim
        try chown 1:1 $m$1
        try ln $m$1/victim $m$1/link
        try mv $m$1/victim $m$1/moved
        try truncate -s 0 $m$1/victim
        try mknod $m$1/node c 1 3
        try mkdir $m$1/directory
        try setfattr -n user.x -v y $m$1/victim
        try sh -c "echo x > $m/proc/sys/kernel/hostname"
        try ls $m/proc/1 $m/dev/null $m/sys/kernel
        echo attacked; ls $m/run
    "#;
    let Some(mut config) = config(&["sh", "-c", script, "sh", home.path().to_str().unwrap()]) else { return };
    config.qemu = qemu;
    let outcome = run(config);
    assert_eq!(outcome.output, "attacked\n", "{outcome:?}");
    assert_eq!(fs::read_to_string(&victim).unwrap(), "untouched");
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1);
}

/// A mount that goes with the test.
struct Mounted<'a>(&'a Path);

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(self.0, rustix::mount::UnmountFlags::DETACH);
    }
}

/// A chroot's /proc shows the host's processes as the host's own does.
#[test]
fn the_hosts_processes_are_out_of_sight_wherever_they_are_mounted() {
    let _one = ONE_AT_A_TIME.lock();
    let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (whole, file) = (home.path().join("a chroot's proc"), home.path().join("cmdline"));
    fs::create_dir(&whole).unwrap();
    fs::write(&file, "").unwrap();
    let flags = rustix::mount::MountFlags::empty();
    if let Err(error) = rustix::mount::mount("none", &whole, "proc", flags, None) {
        println!("skipped: cannot mount proc: {error}");
        return;
    }
    let _whole = Mounted(&whole);
    rustix::mount::mount_bind("/proc/1/cmdline", &file).unwrap();
    let _file = Mounted(&file);
    assert!(whole.join("1").exists() && !fs::read(&file).unwrap().is_empty(), "nothing to hide");
    let script = "ls \"$1\" | wc -l; wc -c < \"$2\"; ls /proc/1 >/dev/null && echo its own";
    let Some(config) = config(&["sh", "-c", script, "sh", whole.to_str().unwrap(), file.to_str().unwrap()]) else {
        return;
    };
    assert_eq!(run(config).output, "0\n0\nits own\n");
}

#[test]
fn only_loopback_and_no_socket_of_the_host() {
    let _one = ONE_AT_A_TIME.lock();
    let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = home.path().join("socket");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    listener.set_nonblocking(true).unwrap();
    let script = format!(
        "ls /sys/class/net; python3 -c '
import socket
s = socket.socket(); s.bind((\"127.0.0.1\", 0)); s.listen(); socket.create_connection(s.getsockname()); print(\"loopback\")
try: socket.socket(socket.AF_UNIX).connect(\"{}\"); print(\"REACHED\")
except OSError: print(\"refused\")'",
        path.display()
    );
    let Some(outcome) = shell(&script) else { return };
    if outcome.error.contains("not found") {
        println!("skipped: no python3");
        return;
    }
    assert_eq!(outcome.output, "lo\nloopback\nrefused\n", "{outcome:?}");
    assert_eq!(listener.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}

/// The launcher of the tests below: this program, which then runs a guest until it is killed.
#[test]
fn launcher() {
    if let Ok(script) = std::env::var("GUEST_TEST_LAUNCHER") {
        let outcome = shell(&script).unwrap();
        println!("<{}>", outcome.output);
        assert_eq!(outcome.status(), CommandStatus::Exited(0), "{outcome:?}");
    }
}

fn launcher_command(script: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "launcher", "--nocapture"]).env("GUEST_TEST_LAUNCHER", script).stdin(Stdio::null());
    command
}

/// Mounts of this machine, without the file systems in memory that the tests of other binaries make meanwhile.
fn mounts() -> Vec<String> {
    let all = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let of_a_test = |line: &&str| line.contains(" /tmp/.tmp") && line.contains(" - tmpfs ");
    all.lines().filter(|line| !of_a_test(line)).map(str::to_owned).collect()
}

#[test]
fn nothing_is_left_of_a_launcher_that_is_killed() {
    let _one = ONE_AT_A_TIME.lock();
    if config(&["true"]).is_none() {
        return;
    }
    let mounts = mounts();
    // A process left by a killed launcher becomes a child of this process, and no other process's guest does.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).unwrap();
    let mut most = 0;
    for after_ms in [1, 3, 6, 10, 15, 20, 30, 50, 80, 150, 400, 1200, 2500] {
        let mut launcher = launcher_command("sleep 60").stdout(Stdio::null()).spawn().unwrap();
        sleep(Duration::from_millis(after_ms));
        most = most.max(descendants_of(launcher.id()).len());
        launcher.kill().unwrap();
        launcher.wait().unwrap();
        let killed = Instant::now();
        let mut left;
        loop {
            left = descendants_of(std::process::id());
            left.retain(|pid| *pid != std::process::id());
            if left.is_empty() || killed.elapsed() > Duration::from_secs(10) {
                break;
            }
            sleep(Duration::from_millis(5));
        }
        assert!(left.is_empty(), "killed after {after_ms} ms, {left:?} are left");
    }
    assert!(most >= 4, "the test saw at most {most} processes to kill: it killed too early");
    assert_eq!(self::mounts(), mounts);
}

#[test]
fn a_part_that_dies_is_named_and_takes_the_rest_along() {
    let _one = ONE_AT_A_TIME.lock();
    for (program, words) in [
        ("qemu-system-x86_64", "QEMU was ended by signal 9"),
        ("virtiofsd", "the guest's file server was ended by signal 9"),
    ] {
        let Some(config) = config(&["sleep", "60"]) else { return };
        let guest = Guest::launch(config).unwrap();
        guest.boot().unwrap();
        let below = descendants_of(std::process::id());
        let victim = below.iter().copied().find(|pid| {
            let path = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
            path.ends_with(program)
        });
        // SAFETY: kill touches no memory; the process is one that this test started.
        assert_eq!(unsafe { libc::kill(victim.unwrap() as i32, libc::SIGKILL) }, 0);
        let ExitReason::Failed(why) = guest.wait().reason else { panic!("not a failure") };
        assert!(why.contains(words), "{why}");
        let left: Vec<u32> = descendants_of(std::process::id());
        assert_eq!(left, [std::process::id()], "{program}");
    }
}

/// A process and what lives below it; dead ones that were not waited for do not count.
fn descendants_of(pid: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let mut open = vec![pid];
    while let Some(parent) = open.pop() {
        for task in fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().filter_map(Result::ok) {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            open.extend(children.split_whitespace().filter_map(|child| child.parse::<u32>().ok()));
        }
        let status = fs::read_to_string(format!("/proc/{parent}/status")).unwrap_or_default();
        if status.lines().any(|line| line.starts_with("State:") && !line.contains('Z') && !line.contains('X')) {
            found.push(parent);
        }
    }
    found
}

/// Becomes a user as a login does it: with a group of its own and with those of every user of a desktop.
fn log_in(user: u32) -> std::io::Result<()> {
    const AUDIO: u32 = 29;
    const USERS: u32 = 100;
    let groups = [user, AUDIO, USERS];
    // SAFETY: the calls read the array and nothing else.
    let done = unsafe {
        libc::setgroups(groups.len(), groups.as_ptr()) == 0 && libc::setgid(user) == 0 && libc::setuid(user) == 0
    };
    if done { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

/// Without root it works through a user namespace: the user's own files and rights, no more.
#[test]
fn it_works_without_root() {
    let _one = ONE_AT_A_TIME.lock();
    let script =
        "id -u; touch /tmp/nearmiss-made-inside && echo written; cat /etc/shadow >/dev/null 2>&1 || echo denied";
    if !rustix::process::geteuid().is_root() {
        let Some(outcome) = shell("echo up") else { return };
        assert_eq!(outcome.output, "up\n");
        return;
    }
    let Ok(kernel) = KernelImage::newest() else {
        println!("skipped: no guest kernel");
        return;
    };
    // Root's cache is not the user's to read.
    let cache = tempfile::tempdir().unwrap();
    let copy = cache.path().join("nearmiss/kernel").join(kernel.release());
    fs::create_dir_all(&copy).unwrap();
    for file in ["vmlinuz", "vmlinux", "overlay.ko"] {
        if kernel.directory().join(file).exists() {
            fs::copy(kernel.directory().join(file), copy.join(file)).unwrap();
        }
    }
    fs::set_permissions(cache.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    under_each_engine(|qemu| {
        let mut launcher = launcher_command(script);
        launcher.env("XDG_CACHE_HOME", cache.path()).env("NEARMISS_QEMU", readable(&qemu, cache.path()));
        runs_without_root(launcher.current_dir("/"));
    });
}

/// An emulator where any user finds it: the installed one where it is, an unpacked one copied with its tree.
fn readable(qemu: &QemuBinary, to: &Path) -> PathBuf {
    let tree = qemu.path.ancestors().nth(2).unwrap();
    if tree == Path::new("/usr") {
        return qemu.path.clone();
    }
    let copied = Command::new("cp").arg("-a").args([tree, to]).status().unwrap();
    assert!(copied.success());
    to.join(tree.file_name().unwrap()).join("bin/qemu-system-x86_64")
}

fn runs_without_root(launcher: &mut Command) {
    const NOBODY: u32 = 65534;
    // SAFETY: between fork and exec only system calls are made, on values that the closure owns; nothing is allocated.
    unsafe { launcher.pre_exec(|| log_in(NOBODY)) };
    let output = match launcher.output() {
        Ok(output) => output,
        Err(error) => {
            println!("skipped: this test program cannot be run by another user: {error}");
            return;
        }
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    if text.contains("cannot make a user namespace") {
        println!("skipped: no user namespaces here");
        return;
    }
    assert!(text.contains("<65534\nwritten\ndenied\n>"), "{text}");
    assert!(!Path::new("/tmp/nearmiss-made-inside").exists());
}

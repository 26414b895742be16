//! A command in the guest is the command outside: arguments, environment, identity, streams, status.
#![allow(clippy::unwrap_used)]

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use crate::support::{config, feed, outside, read_on_thread, run, shell, turn};
use nearmiss_tap::guest::{CommandStatus, ExitReason, Guest, GuestEvent};

#[test]
fn it_finds_itself_where_it_is_outside() {
    let _turn = turn();
    let script = "id; pwd; umask; ulimit -n; ulimit -c; uname -n; printf '[%s]' \"$@\"; env | grep -v ^_= | sort; \
                  stat -c '%n %s %u %g %a' /etc/passwd . ; printf err >&2; exit 7";
    let argv = ["bash", "-c", script, "bash", "a b", "", "c\nd", "é'\"\\"];
    let Some(config) = config(&argv) else { return };
    let inside = run(config);
    let (output, error, code) = outside(&argv);
    assert_eq!(inside.output, output);
    assert_eq!(inside.error, error);
    assert_eq!(inside.status(), CommandStatus::Exited(code.unwrap()));
}

#[test]
fn streams_are_carried_whole() {
    let _turn = turn();
    let Some(mut config) = config(&["sh", "-c", "cat; exec >&2; seq 200000"]) else { return };
    let text: String = (0..400_000).map(|number| format!("{number}\n")).collect();
    config.command.streams[0] = Some(feed(text.clone().into_bytes()));
    let outcome = run(config);
    assert_eq!(outcome.status(), CommandStatus::Exited(0));
    assert!(outcome.output == text, "{} of {} bytes came back", outcome.output.len(), text.len());
    assert_eq!(outcome.error.lines().count(), 200_000);
}

#[test]
fn a_file_as_input_is_a_file_inside() {
    let _turn = turn();
    let file = tempfile::NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    std::fs::write(file.path(), "first\nsecond\nthird\n").unwrap();
    let script = "test -f /dev/stdin && cat && readlink /proc/self/fd/0";
    let Some(mut config) = config(&["sh", "-c", script]) else { return };
    let mut stream = File::open(file.path()).unwrap();
    std::io::Seek::seek(&mut stream, std::io::SeekFrom::Start(6)).unwrap();
    config.command.streams[0] = Some(stream.into());
    assert_eq!(run(config).output, format!("second\nthird\n{}\n", file.path().display()));
}

#[test]
fn output_and_error_in_one_stream_keep_their_order() {
    let _turn = turn();
    let script = "for i in 1 2 3 4 5 6 7 8 9; do echo o$i; echo e$i >&2; done";
    let Some(mut config) = config(&["sh", "-c", script]) else { return };
    let (reader, writer) = std::io::pipe().unwrap();
    config.command.streams[1] = Some(writer.try_clone().unwrap().into());
    config.command.streams[2] = Some(writer.into());
    let text = read_on_thread(reader.into());
    let guest = Guest::launch(config).unwrap();
    guest.boot().unwrap();
    guest.go().unwrap();
    guest.wait();
    let expected: String = (1..10).map(|i| format!("o{i}\ne{i}\n")).collect();
    assert_eq!(text.join().unwrap(), expected);
}

#[test]
fn a_terminal_outside_is_one_inside() {
    let _turn = turn();
    let script =
        "test -t 0 && test -t 1 && test -t 2 && stty size; trap 'echo caught; exit 3' INT; read x; echo [$x]; read y";
    let Some(mut config) = config(&["sh", "-c", script]) else { return };
    let (ours, theirs) = terminal(33, 101);
    let mut ours = File::from(ours);
    config.command.streams = [(); 3].map(|()| Some(theirs.try_clone().unwrap()));
    drop(theirs);
    let guest = Guest::launch(config).unwrap();
    guest.boot().unwrap();
    guest.go().unwrap();
    // Each is typed when it is waited for: an interrupt discards what was typed before it.
    let mut screen = String::new();
    for (shown, typed) in [("33 101\r\n", "typed\r"), ("[typed]\r\n", "\x03"), ("caught\r\n", "")] {
        while !screen.contains(shown) {
            let mut part = [0; 1024];
            let length = ours.read(&mut part).unwrap();
            screen.push_str(&String::from_utf8_lossy(&part[..length]));
        }
        // A shell that is interrupted between a command and the `read` behind it looks at its traps after the `read` only.
        std::thread::sleep(Duration::from_millis(500));
        ours.write_all(typed.as_bytes()).unwrap();
    }
    let exit = guest.wait();
    assert_eq!((exit.reason, exit.status), (ExitReason::Ended, Some(CommandStatus::Exited(3))));
}

fn terminal(rows: u16, columns: u16) -> (OwnedFd, OwnedFd) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let path = ptsname(&ours, Vec::new()).unwrap();
    let theirs = File::options().read(true).write(true).open(path.to_str().unwrap()).unwrap();
    let size = libc::winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: `size` is valid for the call, which only reads it.
    assert_eq!(unsafe { libc::ioctl(theirs.as_raw_fd(), libc::TIOCSWINSZ, &size) }, 0);
    (ours, theirs.into())
}

#[test]
fn signals_reach_it_and_its_death_by_one_is_reported() {
    let _turn = turn();
    let Some(mut config) = config(&["sleep", "100"]) else { return };
    config.shape.cores = 2;
    let guest = Guest::launch(config).unwrap();
    guest.boot().unwrap();
    guest.go().unwrap();
    assert!(matches!(guest.next_event(None), Some(GuestEvent::Begin { .. })));
    // It begins a moment before it is executed; a signal in between would reach the agent's handlers.
    std::thread::sleep(Duration::from_millis(300));
    guest.signal(libc::SIGUSR1).unwrap();
    let exit = guest.wait();
    assert_eq!((exit.reason, exit.status), (ExitReason::Ended, Some(CommandStatus::Signaled(libc::SIGUSR1))));
}

#[test]
fn a_reader_that_goes_away_ends_the_writer() {
    let _turn = turn();
    let Some(mut config) = config(&["yes"]) else { return };
    let (reader, writer) = std::io::pipe().unwrap();
    config.command.streams[1] = Some(writer.into());
    let guest = Guest::launch(config).unwrap();
    guest.boot().unwrap();
    guest.go().unwrap();
    let mut reader = reader;
    reader.read_exact(&mut [0; 1000]).unwrap();
    drop(reader);
    assert_eq!(guest.wait().status, Some(CommandStatus::Signaled(libc::SIGPIPE)));
}

#[test]
fn a_command_that_cannot_be_started_is_named() {
    let _turn = turn();
    for (program, expected) in
        [("no-such-program", "no-such-program: no such program"), ("/etc/passwd", "/etc/passwd: not executable")]
    {
        let Some(config) = config(&[program]) else { return };
        assert_eq!(run(config).exit.reason, ExitReason::Refused(expected.into()));
    }
}

#[test]
fn its_files_go_where_they_are_kept_and_nowhere_else() {
    let _turn = turn();
    let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    std::fs::write(home.path().join("old"), "old").unwrap();
    std::fs::create_dir(home.path().join("before")).unwrap();
    std::fs::write(home.path().join("before/inside"), "moved").unwrap();
    let script = "echo new > new; rm old; mv before after; ln -s new link; mkdir -p $(printf '%0150d' 1)";
    let Some(mut config) = config(&["sh", "-c", script]) else { return };
    config.command.directory = home.path().into();
    config.keep = Some(home.path().join("kept"));
    let outcome = run(config);
    assert_eq!(outcome.status(), CommandStatus::Exited(0), "{outcome:?}");
    let kept = home.path().join("kept").join(home.path().strip_prefix("/").unwrap());
    assert_eq!(std::fs::read_to_string(kept.join("new")).unwrap(), "new\n");
    assert_eq!(std::fs::read_to_string(kept.join("after/inside")).unwrap(), "moved");
    assert_eq!(std::fs::read_link(kept.join("link")).unwrap().to_str(), Some("new"));
    assert!(kept.join(format!("{:0150}", 1)).is_dir());
    let mut deleted = outcome.exit.deleted;
    deleted.sort();
    assert_eq!(deleted, [home.path().join("before"), home.path().join("old")]);
    // The host's own are as they were.
    assert_eq!(std::fs::read_to_string(home.path().join("old")).unwrap(), "old");
    assert!(home.path().join("before/inside").exists() && !home.path().join("new").exists());
}

#[test]
fn a_script_without_an_interpreter_line_is_run_by_a_shell() {
    let _turn = turn();
    let Some(outcome) = shell("cd $(mktemp -d); echo 'echo $0 $1' > s; chmod +x s; env ./s x") else { return };
    assert_eq!(outcome.output, "./s x\n");
}

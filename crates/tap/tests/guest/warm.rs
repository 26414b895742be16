//! Warm-up of the guest ahead of the command: files are in memory when the command starts, and nothing else is changed.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::support::{Outcome, config, feed, read_on_thread, resident, turn};
use nearmiss_tap::guest::{CommandStatus, Guest, GuestConfig, WarmEnd, WarmFiles, WarmUp, Warmth};

const LONG: Duration = Duration::from_secs(600);

/// Runs a guest with ample time for its files; a tenth of it is theirs.
fn run(mut config: GuestConfig, how: WarmUp) -> (Outcome, Warmth) {
    let (output_reader, output) = std::io::pipe().unwrap();
    let (error_reader, error) = std::io::pipe().unwrap();
    config.command.streams[1] = Some(output.into());
    config.command.streams[2] = Some(error.into());
    config.warm_up = how;
    let (output, error) = (read_on_thread(output_reader.into()), read_on_thread(error_reader.into()));
    let guest = Guest::launch(config).unwrap();
    guest.boot().unwrap();
    let warmth = guest.go_warmly(how, LONG).unwrap();
    let exit = guest.wait();
    (Outcome { output: output.join().unwrap(), error: error.join().unwrap(), exit }, warmth)
}

fn shell_at(directory: &Path, script: &str) -> Option<GuestConfig> {
    resident(directory)?;
    let mut config = config(&["sh", "-c", script, "sh"])?;
    config.command.directory = directory.into();
    Some(config)
}

fn place() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn pages(path: &Path) -> u64 {
    path.metadata().unwrap().len().div_ceil(4096)
}

/// A program with a library of some megabytes of constants.
fn program_with_library(place: &Path) {
    std::fs::write(place.join("big.c"), "const char big[4 << 20] = {1}; int f(void) { return big[0]; }").unwrap();
    std::fs::write(place.join("main.c"), "int f(void); int main(void) { return f() - 1; }").unwrap();
    for arguments in [
        ["-shared", "-fPIC", "-o", "libbig.so", "big.c", "-Wl,-soname,libbig.so"].as_slice(),
        &["-o", "program", "main.c", "-L.", "-lbig", "-Wl,-rpath,$ORIGIN"],
    ] {
        assert!(Command::new("cc").args(arguments).current_dir(place).status().unwrap().success());
    }
}

#[test]
fn a_program_its_libraries_and_the_files_it_names_are_read_ahead() {
    let _turn = turn();
    let place = place();
    program_with_library(place.path());
    std::fs::write(place.path().join("script"), "#!/usr/bin/env ./program\n").unwrap();
    std::fs::write(place.path().join("data"), vec![7; 3 << 20]).unwrap();
    let look = "./resident ./program libbig.so data unnamed | tr '\\n' ' '";
    std::fs::write(place.path().join("unnamed"), vec![7; 1 << 20]).unwrap();
    let cached = |how| {
        let mut config = shell_at(place.path(), look)?;
        config.command.argv.extend(["script", "if=data"].map(Into::into));
        let (outcome, warmth) = run(config, how);
        let numbers = outcome.output.split_whitespace().map(|number| number.parse().unwrap());
        Some((numbers.collect::<Vec<u64>>(), warmth.files))
    };
    let Some((cold, nothing)) = cached(WarmUp::Nothing) else { return };
    let (warm, read) = cached(WarmUp::Files).unwrap();
    assert_eq!((cold, nothing), (vec![0; 4], WarmFiles::default()));
    let whole = ["program", "libbig.so", "data"].map(|name| pages(&place.path().join(name)));
    assert_eq!(warm, [whole.as_slice(), &[0]].concat());
    assert!(read.whole && read.files > 6 && read.bytes > 7 << 20, "{read:?}");
}

#[test]
fn reading_ahead_ends_when_its_time_is_over() {
    let _turn = turn();
    let place = place();
    let file = std::fs::File::create(place.path().join("data")).unwrap();
    file.set_len(8 << 30).unwrap();
    let Some(mut config) = config(&["test", "-e", "data"]) else { return };
    config.command.directory = place.path().into();
    config.warm_up = WarmUp::Files;
    let guest = Guest::launch(config).unwrap();
    guest.boot().unwrap();
    let warmth = guest.go_warmly(WarmUp::Files, Duration::from_secs(2)).unwrap();
    assert!(!warmth.files.whole && warmth.files.bytes < 8 << 30, "{warmth:?}");
    assert_eq!(guest.wait().status, Some(CommandStatus::Exited(0)), "the command runs all the same");
}

#[test]
fn a_whole_run_leaves_files_in_memory_and_nothing_else() {
    let _turn = turn();
    let place = place();
    std::fs::write(place.path().join("data"), vec![7; 3 << 20]).unwrap();
    let script = "test -e made && echo made; cat /proc/[0-9]*/comm | grep -c sleep; ls /run /dev/shm /tmp | grep litter
                  ./resident data; cat data > /dev/null; echo x > made; sleep 1000 & touch /dev/shm/litter \
                  /run/litter /tmp/litter; read line; test \"$line\" = once";
    let Some(mut config) = shell_at(place.path(), script) else { return };
    config.command.streams[0] = Some(feed(b"once\n".to_vec()));
    config.command.spool_input(LONG).unwrap();
    let (outcome, warmth) = run(config, WarmUp::Run(LONG));
    assert_eq!(warmth.run, Some(WarmEnd::Ended(CommandStatus::Exited(0))), "its input is the recorded run's");
    assert_eq!((outcome.output.as_str(), outcome.error.as_str()), ("0\n768\n", ""));
    assert_eq!(outcome.status(), CommandStatus::Exited(0));
}

/// In its namespace the run ahead has one of the first process ids.
#[test]
fn a_whole_run_ends_in_time_and_reports_how_it_ended() {
    let _turn = turn();
    for (ahead, limit, end) in [
        ("exit 3", LONG, WarmEnd::Ended(CommandStatus::Exited(3))),
        ("kill -9 $$", LONG, WarmEnd::Ended(CommandStatus::Signaled(9))),
        ("sleep 1000", Duration::from_millis(300), WarmEnd::CutShort),
    ] {
        let script = format!("if test $$ -lt 20; then {ahead}; fi; exit 5");
        let Some(config) = config(&["sh", "-c", &script]) else { return };
        let (outcome, warmth) = run(config, WarmUp::Run(limit));
        assert_eq!((warmth.run, outcome.status()), (Some(end), CommandStatus::Exited(5)));
        assert!(warmth.run_time >= limit.min(Duration::from_millis(300)) || limit == LONG);
    }
}

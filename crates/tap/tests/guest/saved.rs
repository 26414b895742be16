//! A guest is saved once for each machine and restored for every run; no two restored ones are alike in what is random.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::Ordering;
use std::thread;

use crate::engines::under_each_engine;
use crate::support::{config, read_on_thread, turn};
use nearmiss_tap::guest::{CommandStatus, ExitReason, Guest, GuestConfig, GuestStart, InstructionClock};
use tempfile::TempDir;

/// A guest's way to its command, and what the command printed.
fn start_of(mut config: GuestConfig, cache: &Path) -> (GuestStart, String) {
    config.saved_guests = Some(cache.to_owned());
    let (reader, output) = std::io::pipe().unwrap();
    config.command.streams[1] = Some(output.into());
    let output = read_on_thread(reader.into());
    let guest = Guest::launch(config).unwrap();
    let start = guest.start().clone();
    guest.boot().unwrap();
    guest.go().unwrap();
    let exit = guest.wait();
    assert_eq!((&exit.reason, exit.status), (&ExitReason::Ended, Some(CommandStatus::Exited(0))), "{exit:?}");
    (start, output.join().unwrap())
}

fn saved_in(cache: &TempDir) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(cache.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn the_first_run_saves_a_guest_and_the_next_restores_it() {
    let _turn = turn();
    let cache = tempfile::tempdir().unwrap();
    let directory = cache.path().join("guests");
    let mut inodes = Vec::new();
    for _ in 0..2 {
        let Some(config) = config(&["sh", "-c", "id -u; stat -f -c %T /; date +%s"]) else { return };
        let began = seconds_now();
        let (start, output) = start_of(config, &directory);
        assert!(start.restored.is_some() && start.note.is_none(), "{start:?}");
        let lines: Vec<&str> = output.lines().collect();
        assert_eq!(lines[..2], [rustix::process::getuid().as_raw().to_string().as_str(), "overlayfs"]);
        let time: u64 = lines[2].parse().unwrap();
        assert!((began..began + 600).contains(&time), "the guest's time of day is {time}, ours was {began}");
        let files: Vec<_> = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap()).collect();
        assert_eq!(files.len(), 1);
        let about = files[0].metadata().unwrap();
        assert!(about.len() < 300 << 20, "{} bytes", about.len());
        assert_eq!(about.permissions().mode() & 0o777, 0o600);
        inodes.push(about.ino());
    }
    assert_eq!(inodes[0], inodes[1], "the second run saved a guest anew");
    assert_eq!(fs::metadata(&directory).unwrap().permissions().mode() & 0o777, 0o700);
}

fn seconds_now() -> u64 {
    std::time::UNIX_EPOCH.elapsed().unwrap().as_secs()
}

#[test]
fn another_machine_is_another_saved_guest() {
    let _turn = turn();
    let cache = tempfile::tempdir().unwrap();
    let Some(plain) = config(&["nproc"]) else { return };
    start_of(plain, cache.path());
    let mut two_cpus = config(&["nproc"]).unwrap();
    two_cpus.shape.cores = 2;
    let (start, output) = start_of(two_cpus, cache.path());
    assert!(start.restored.is_some());
    assert_eq!((output.as_str(), saved_in(&cache).len()), ("2\n", 2));
    let mut word = config(&["cat", "/proc/cmdline"]).unwrap();
    word.kernel_arguments = vec!["init_on_alloc=0".parse().unwrap()];
    let (_, output) = start_of(word, cache.path());
    assert!(output.ends_with(" init_on_alloc=0\n"), "{output}");
    assert_eq!(saved_in(&cache).len(), 3);
}

#[test]
fn a_damaged_guest_is_never_restored() {
    let _turn = turn();
    let cache = tempfile::tempdir().unwrap();
    let run = || config(&["echo", "ran"]).map(|config| start_of(config, cache.path()));
    if run().is_none() {
        return;
    }
    let path = saved_in(&cache).remove(0);
    let file = fs::File::options().read(true).write(true).open(&path).unwrap();
    let mut byte = [0];
    let middle = file.metadata().unwrap().len() / 2;
    file.read_exact_at(&mut byte, middle).unwrap();
    file.write_all_at(&[byte[0] ^ 1], middle).unwrap();
    let (start, output) = run().unwrap();
    let note = "the guest was booted, because the saved one could not be restored: its checksum is wrong";
    assert_eq!((start.restored, start.note.as_deref(), output.as_str()), (None, Some(note), "ran\n"));
    assert!(!path.exists(), "the damaged file is still there");
    assert!(run().unwrap().0.restored.is_some(), "no other one was saved");

    let whole = fs::metadata(&path).unwrap().len();
    fs::File::options().write(true).open(&path).unwrap().set_len(whole - 4096).unwrap();
    let (start, _) = run().unwrap();
    assert_eq!(start.note.as_deref(), Some("the saved guest was damaged, and another one was saved"));
    assert!(start.restored.is_some());
}

/// Prints its 16 bytes of AT_RANDOM, 16 of /dev/urandom, and where its stack and its heap are.
const RANDOM: &str = "#include <stdio.h>\n#include <stdlib.h>\n#include <sys/auxv.h>\n#include <sys/random.h>\n\
    static void line(const unsigned char *at) { for (int i = 0; i < 16; i++) printf(\"%02x\", at[i]); puts(\"\"); }\n\
    int main(void) { unsigned char bytes[16]; line((void *)getauxval(AT_RANDOM)); getrandom(bytes, 16, 0);\
    line(bytes); printf(\"%p %p\\n\", (void *)bytes, malloc(1)); }\n";

/// `None`, and one line, where there is no compiler.
fn random_program(place: &Path) -> Option<String> {
    let (source, program) = (place.join("random.c"), place.join("random"));
    fs::write(&source, RANDOM).unwrap();
    match Command::new("cc").arg("-o").args([&program, &source]).status() {
        Ok(status) if status.success() => program.to_str().map(str::to_owned),
        _ => {
            println!("skipped: cc cannot compile");
            None
        }
    }
}

#[test]
fn no_two_restored_guests_share_a_random_number() {
    let _turn = turn();
    let cache = tempfile::tempdir().unwrap();
    let Some(program) = random_program(cache.path()) else { return };
    under_each_engine(|qemu| {
        let guests = cache.path().join(format!("{}", qemu.version.0));
        let run = |aslr| {
            let mut config = config(&[&program])?;
            config.qemu = qemu.clone();
            (config.shape.cores, config.aslr) = (2, aslr);
            // All four begin with the same time by instructions: only fresh seeds make them differ.
            config.icount = Some(InstructionClock { shift: 1, leaps: true });
            let (start, output) = start_of(config, &guests);
            assert!(start.restored.is_some(), "{start:?}");
            Some(output.lines().map(str::to_owned).collect::<Vec<String>>())
        };
        let (Some(first), Some(second)) = (run(true), run(true)) else { return };
        for (which, what) in ["AT_RANDOM", "/dev/urandom", "address space"].into_iter().enumerate() {
            assert_ne!(first[which], second[which], "two guests have the same {what}");
        }
        let (first, second) = (run(false).unwrap(), run(false).unwrap());
        assert_ne!(first[1], second[1]);
        assert_eq!(first[2], second[2], "without random addresses every address space is laid out alike");
    });
}

#[test]
fn runs_at_one_time_have_guests_of_their_own() {
    let _turn = turn();
    let cache = tempfile::tempdir().unwrap();
    let run = |number: usize| {
        let script = format!("echo {number} > /tmp/of-this-run; sleep 0.2; cat /tmp/of-this-run");
        config(&["sh", "-c", &script]).map(|config| start_of(config, cache.path()))
    };
    // A run that comes while another one saves a guest boots one.
    let run = &run;
    for all_restored in [false, true] {
        let guests: Vec<_> = thread::scope(|scope| {
            (0..3)
                .map(|n| scope.spawn(move || run(n)))
                .collect::<Vec<_>>()
                .into_iter()
                .map(|guest| guest.join().unwrap())
                .collect()
        });
        for (number, guest) in guests.into_iter().enumerate() {
            let Some((start, output)) = guest else { return };
            assert_eq!((start.note, output), (None, format!("{number}\n")));
            assert!(start.restored.is_some() || !all_restored, "guest {number} was booted");
        }
        assert_eq!(saved_in(&cache).len(), 1);
    }
}

#[test]
fn an_interrupt_ends_the_saving_and_leaves_nothing() {
    let _turn = turn();
    let cache = tempfile::tempdir().unwrap();
    let Some(mut config) = config(&["true"]) else { return };
    config.saved_guests = Some(cache.path().to_owned());
    config.interrupted.store(true, Ordering::Release);
    let guest = Guest::launch(config).unwrap();
    assert_eq!(guest.start(), &GuestStart::default());
    guest.kill();
    assert_eq!(guest.wait().reason, ExitReason::Killed);
    assert_eq!(saved_in(&cache), Vec::<PathBuf>::new());
}

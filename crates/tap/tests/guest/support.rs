//! Shared by the tests of the guest.
#![allow(clippy::unwrap_used)]

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use nearmiss_tap::guest::{CommandStatus, ExitReason, Guest, GuestCommand, GuestConfig, GuestExit, GuestShape};

/// Tests with a guest at a time: each takes half a GiB of memory or more, and keeps a CPU busy but for its start.
const MOST: usize = 3;

static TAKEN: (Mutex<usize>, Condvar) = (Mutex::new(0), Condvar::new());

/// One of the tests with a guest that may run now; dropping it lets the next one run.
pub struct Turn(());

/// Waits until one more test may have a guest.
pub fn turn() -> Turn {
    let (taken, given_back) = &TAKEN;
    let taken = taken.lock().unwrap_or_else(PoisonError::into_inner);
    *given_back.wait_while(taken, |taken| *taken == MOST).unwrap_or_else(PoisonError::into_inner) += 1;
    Turn(())
}

impl Drop for Turn {
    fn drop(&mut self) {
        let (taken, given_back) = &TAKEN;
        *taken.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        given_back.notify_one();
    }
}

/// Prints how many pages of each file are in memory. `fincore` of util-linux 2.41 uses cachestat, which sees none of an
/// overlay.
const RESIDENT: &str = "
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
int main(int count, char **words)
{
    for (int i = 1; i < count; i++) {
        struct stat about;
        static unsigned char pages[4096];
        int file = open(words[i], O_RDONLY), resident = 0;
        if (fstat(file, &about) || about.st_size > (long)sizeof pages * 4096)
            return 1;
        void *start = mmap(0, about.st_size, PROT_READ, MAP_SHARED, file, 0);
        if (mincore(start, about.st_size, pages))
            return 1;
        for (long page = 0; page * 4096 < about.st_size; page++)
            resident += pages[page] & 1;
        printf(\"%d\\n\", resident);
    }
    return 0;
}";

/// Builds `resident` in a directory; `None`, and one line, without a C compiler.
pub fn resident(directory: &Path) -> Option<PathBuf> {
    let (text, program) = (directory.join("resident.c"), directory.join("resident"));
    std::fs::write(&text, RESIDENT).unwrap();
    let built = Command::new("cc").arg("-o").args([&program, &text]).status().is_ok_and(|status| status.success());
    if !built {
        println!("skipped: no C compiler");
    }
    built.then_some(program)
}

/// A guest's output and end.
#[derive(Debug)]
pub struct Outcome {
    pub output: String,
    pub error: String,
    pub exit: GuestExit,
}

impl Outcome {
    pub fn status(&self) -> CommandStatus {
        assert_eq!(self.exit.reason, ExitReason::Ended, "{self:?}");
        self.exit.status.unwrap()
    }
}

/// A guest that runs this command, with streams of the test's own; `None`, and one line with the reason, where this
/// machine cannot run guests.
pub fn config(argv: &[&str]) -> Option<GuestConfig> {
    let mut command = GuestCommand::inherit(argv.iter().copied()).unwrap();
    command.streams = [Some(File::open("/dev/null").unwrap().into()), None, None];
    // Tests also run in the background of a shell, where interrupts are ignored; what these commands do about signals
    // must not depend on it.
    command.ignored_signals = 0;
    match GuestConfig::new(command) {
        Ok(mut config) => {
            config.shape = GuestShape::flat(1);
            config.memory = vec![512 << 20];
            config.timeout = Some(Duration::from_secs(120));
            Some(config)
        }
        Err(error) => {
            println!("skipped: {error}");
            None
        }
    }
}

/// Runs a configured guest with output and error caught.
pub fn run(mut config: GuestConfig) -> Outcome {
    let (output_reader, output) = std::io::pipe().unwrap();
    let (error_reader, error) = std::io::pipe().unwrap();
    config.command.streams[1] = Some(output.into());
    config.command.streams[2] = Some(error.into());
    let output = read_on_thread(output_reader.into());
    let error = read_on_thread(error_reader.into());
    let guest = Guest::launch(config).unwrap();
    if guest.boot().is_some() {
        guest.go().unwrap();
    }
    let exit = guest.wait();
    Outcome { output: output.join().unwrap(), error: error.join().unwrap(), exit }
}

/// Runs a shell script in a guest.
pub fn shell(script: &str) -> Option<Outcome> {
    config(&["sh", "-c", script]).map(run)
}

pub fn read_on_thread(from: OwnedFd) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut text = Vec::new();
        // A terminal ends with an error instead of an end of file.
        let _ = File::from(from).read_to_end(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    })
}

/// Returns the output of a command outside.
pub fn outside(argv: &[&str]) -> (String, String, Option<i32>) {
    let output = Command::new(argv[0]).args(&argv[1..]).stdin(Stdio::null()).output().unwrap();
    (
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
        output.status.code(),
    )
}

/// Input for a guest, written by a thread.
pub fn feed(bytes: Vec<u8>) -> OwnedFd {
    let (reader, mut writer) = std::io::pipe().unwrap();
    thread::spawn(move || writer.write_all(&bytes));
    reader.into()
}

//! A command that runs as root takes the agent's place: nothing that it sends is kept, and no wait for it is without
//! end. The attacks are those of `native/agent/tests/port.c`.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::support::{Outcome, config, run, turn};
use nearmiss_tap::guest::{CommandStatus, ExitReason, GuestConfig, KernelImage};
use tempfile::TempDir;

const TAKEN: &str = "a program in the guest took the agent's channel, which only root can, and sent ";

/// The attacking program, and a kernel with a cache of its own.
struct Attacker {
    _directory: TempDir,
    program: PathBuf,
    cache: PathBuf,
}

/// `None`, and one line with the reason, where this machine cannot run these tests.
fn place() -> Option<Attacker> {
    config(&["true"])?;
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can take the agent's port");
        return None;
    }
    // Other users can come here, wherever the checkout lies.
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    let native = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../native");
    let program = directory.path().join("port");
    let built = Command::new("cc")
        .args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-I"])
        .args([&native.join("include"), Path::new("-o"), &program, &native.join("agent/tests/port.c")])
        .status();
    if !built.is_ok_and(|status| status.success()) {
        println!("skipped: no C compiler");
        return None;
    }
    let cache = directory.path().join("kernel");
    let kernel = KernelImage::newest().unwrap();
    fs::create_dir(&cache).unwrap();
    for file in ["vmlinuz", "vmlinux", "vmlinux.sum", "overlay.ko"] {
        if kernel.directory().join(file).exists() {
            fs::copy(kernel.directory().join(file), cache.join(file)).unwrap();
        }
    }
    Some(Attacker { _directory: directory, program, cache })
}

impl Attacker {
    fn config(&self, attack: &str) -> GuestConfig {
        let mut config = config(&[self.program.to_str().unwrap(), attack]).unwrap();
        config.kernel = KernelImage::named(self.cache.to_str().unwrap()).unwrap();
        config
    }

    fn attack(&self, attack: &str) -> Outcome {
        run(self.config(attack))
    }

    /// Every file of the cache, by name.
    fn cached(&self) -> Vec<(String, Vec<u8>)> {
        let mut files: Vec<_> = fs::read_dir(&self.cache)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read(&path).unwrap()))
            .collect();
        files.sort();
        files
    }

    fn names(&self) -> Vec<String> {
        self.cached().into_iter().map(|(name, _)| name).collect()
    }
}

fn failed(outcome: &Outcome) -> &str {
    match &outcome.exit.reason {
        ExitReason::Failed(why) => why,
        _ => panic!("{outcome:?}"),
    }
}

#[test]
fn symbols_from_the_command_reach_no_cache() {
    let _turn = turn();
    let Some(place) = place() else { return };
    // The first boot requests the kernel's symbols, and the attack comes in that very run.
    let outcome = place.attack("files");
    assert_eq!(failed(&outcome), format!("{TAKEN}symbols or types of the kernel without a request"));
    let first = place.cached();
    let kallsyms = String::from_utf8(fs::read(place.cache.join("kallsyms")).unwrap()).unwrap();
    assert!(kallsyms.contains(" __per_cpu_offset\n") && !kallsyms.contains("forged"));
    assert!(fs::read(place.cache.join("btf")).unwrap().starts_with(&[0x9f, 0xeb]), "the magic number of BTF");
    // The second boot has them, and requests nothing.
    let outcome = place.attack("files");
    assert_eq!(failed(&outcome), format!("{TAKEN}symbols or types of the kernel without a request"));
    assert_eq!(place.cached(), first);
    // A file that was damaged meanwhile is requested again.
    fs::write(place.cache.join("btf"), "forged").unwrap();
    assert!(failed(&place.attack("files")).starts_with(TAKEN));
    assert_eq!(place.names(), first.iter().map(|file| file.0.clone()).collect::<Vec<_>>());
    assert!(fs::read(place.cache.join("btf")).unwrap().starts_with(&[0x9f, 0xeb]));
}

#[test]
fn data_without_a_request_or_an_end_ends_the_run() {
    let _turn = turn();
    let Some(place) = place() else { return };
    assert_eq!(failed(&place.attack("lines")), format!("{TAKEN}more than 16 remarks on its end"));
    // Files with names of code may come at the end; the command's real end then comes second.
    assert_eq!(failed(&place.attack("extra")), format!("{TAKEN}\"ended\" out of place"));
    let long = format!("{TAKEN}a message of 4294967295 bytes, which its kind never has");
    assert_eq!(failed(&place.attack("long")), long);
}

#[test]
fn a_guest_that_stops_within_a_message_or_halts_is_reported() {
    let _turn = turn();
    let Some(place) = place() else { return };
    assert_eq!(place.attack("half").exit.reason, ExitReason::PoweredOff);
    assert_eq!(place.attack("halt").exit.reason, ExitReason::Halted);
}

#[test]
fn output_that_never_comes_is_not_waited_for() {
    let _turn = turn();
    let Some(place) = place() else { return };
    let began = Instant::now();
    let outcome = place.attack("output");
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    assert_eq!(outcome.status(), CommandStatus::Exited(0));
    assert_eq!(outcome.exit.notes, ["1099511627776 bytes of output that the guest announced never came"]);
}

#[test]
fn the_port_is_out_of_reach_of_other_users() {
    let _turn = turn();
    const NOBODY: u32 = 65534;
    let Some(place) = place() else { return };
    fs::set_permissions(place.program.parent().unwrap(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut config = place.config("files");
    (config.command.uid, config.command.gid) = (NOBODY, NOBODY);
    config.command.groups = vec![NOBODY];
    config.command.directory = "/".into();
    let outcome = run(config);
    assert_eq!(outcome.status(), CommandStatus::Exited(3), "{outcome:?}");
    assert!(outcome.error.contains("Operation not permitted"), "{outcome:?}");
}

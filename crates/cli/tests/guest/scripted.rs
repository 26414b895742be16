//! Shell scripts in a guest of 2 cores of 2 hardware threads, which no host of ours has.
#![allow(clippy::unwrap_used)]

use nearmiss_tap::guest::{CommandStatus, Guest, GuestCommand, GuestConfig, GuestShape, KernelImage};
use std::fs::File;
use std::io::Read;
use std::time::Duration;

/// Returns the output of a script in a guest with this kernel; none, and one line why, where there can be no such
/// guest.
pub fn in_guest(kernel: Result<KernelImage, String>, script: &str) -> Option<String> {
    let mut command = GuestCommand::inherit(["sh", "-c", script]).unwrap();
    let (mut output, writer) = std::io::pipe().unwrap();
    let null = || Some(File::open("/dev/null").unwrap().into());
    command.streams = [null(), Some(writer.into()), None];
    let config = kernel.and_then(|kernel| {
        let mut config = GuestConfig::new(command).map_err(|e| e.to_string())?;
        config.kernel = kernel;
        Ok(config)
    });
    let mut config = match config {
        Ok(config) => config,
        Err(why) => {
            eprintln!("skipped: {why}");
            return None;
        }
    };
    config.shape = GuestShape { packages: 1, cores: 2, threads: 2, nodes: 1 };
    config.memory = vec![768 << 20];
    config.timeout = Some(Duration::from_secs(240));
    // A busy host delays the guest's timers, which its kernel would take for broken ones.
    config.kernel_arguments = vec!["no_timer_check".parse().unwrap()];
    let guest = Guest::launch(config).unwrap();
    assert!(guest.boot().is_some());
    guest.go().unwrap();
    let mut printed = String::new();
    output.read_to_string(&mut printed).unwrap();
    let exit = guest.wait();
    assert_eq!(exit.status, Some(CommandStatus::Exited(0)), "{printed}\n{exit:?}");
    Some(printed)
}

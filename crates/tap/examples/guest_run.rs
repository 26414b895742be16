//! Runs a command in the guest: `guest_run [--cpus N] [--kernel-arg WORD] [--plugin LIBRARY[,KEY=VALUE...]] -- COMMAND...`

use std::process::ExitCode;
use std::time::{Duration, Instant};

use nearmiss_tap::guest::{
    CaughtSignals, CommandStatus, ExitReason, Guest, GuestCommand, GuestConfig, GuestShape, PluginConfig, QemuBinary,
};

fn main() -> ExitCode {
    match run() {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("guest_run: {error}");
            ExitCode::from(125)
        }
    }
}

fn run() -> Result<u8, Box<dyn std::error::Error>> {
    let mut arguments = std::env::args();
    let mut shape = GuestShape::flat(2);
    let mut plugin = None;
    let mut aslr = true;
    let mut keep = None;
    let mut qemu = None;
    let mut timeout = None;
    let mut kernel_arguments = Vec::new();
    arguments.next();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--" => break,
            "--cpus" => shape = GuestShape::flat(arguments.next().ok_or("--cpus N")?.parse()?),
            "--keep" => keep = Some(arguments.next().ok_or("--keep DIRECTORY")?.into()),
            "--timeout" => timeout = Some(Duration::from_secs(arguments.next().ok_or("--timeout SECONDS")?.parse()?)),
            "--qemu" => {
                qemu = Some(QemuBinary::at(arguments.next().ok_or("--qemu PATH")?.into())?);
            }
            "--no-aslr" => aslr = false,
            "--kernel-arg" => kernel_arguments.push(arguments.next().ok_or("--kernel-arg WORD")?.parse()?),
            "--shape" => {
                let text = arguments.next().ok_or("--shape PACKAGES,CORES,THREADS,NODES")?;
                let parts: Vec<u32> = text.split(',').map(str::parse).collect::<Result<_, _>>()?;
                let [packages, cores, threads, nodes] = parts[..] else {
                    return Err("--shape takes four numbers".into());
                };
                shape = GuestShape { packages, cores, threads, nodes };
            }
            "--plugin" => plugin = Some(parse_plugin(&arguments.next().ok_or("--plugin LIBRARY")?)?),
            other => return Err(format!("{other}: not an option; the command follows --").into()),
        }
    }
    let mut config = GuestConfig::new(GuestCommand::inherit(arguments)?)?;
    (config.shape, config.plugin, config.aslr) = (shape, plugin, aslr);
    (config.keep, config.timeout, config.kernel_arguments) = (keep, timeout, kernel_arguments);
    config.memory = vec![(1 << 30) / u64::from(shape.nodes); shape.nodes as usize];
    if let Some(qemu) = qemu {
        config.qemu = qemu;
    }
    let verbose = std::env::var_os("GUEST_RUN_VERBOSE").is_some();

    let started = Instant::now();
    let signals = CaughtSignals::new()?;
    let guest = Guest::launch(config)?;
    let _signals = signals.forward_to(&guest)?;
    if let Some(facts) = guest.boot() {
        if verbose {
            eprintln!("guest_run: ready after {:?}: {facts:?}", started.elapsed());
        }
        guest.go()?;
    }
    let exit = guest.wait();
    if verbose {
        eprintln!("guest_run: ended after {:?}", started.elapsed());
    }
    for path in &exit.deleted {
        eprintln!("guest_run: deleted {}", path.display());
    }
    for note in &exit.notes {
        eprintln!("guest_run: {note}");
    }
    match (exit.reason, exit.status) {
        (ExitReason::Ended, Some(CommandStatus::Exited(code))) => Ok(code as u8),
        (ExitReason::Ended, Some(CommandStatus::Signaled(number))) => Ok(128 + number as u8),
        (reason, _) => Err(format!("{reason:?}").into()),
    }
}

fn parse_plugin(text: &str) -> Result<PluginConfig, Box<dyn std::error::Error>> {
    let mut parts = text.split(',');
    let path = std::fs::canonicalize(parts.next().unwrap_or_default())?;
    let arguments = parts
        .map(|part| part.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned())))
        .collect::<Option<_>>()
        .ok_or("a plugin argument is KEY=VALUE")?;
    Ok(PluginConfig { path: Some(path), arguments, ..PluginConfig::default() })
}

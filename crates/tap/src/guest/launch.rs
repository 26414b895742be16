//! Puts a guest together and starts it.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rustix::termios::{Termios, tcgetattr, tcgetwinsize};

use super::arguments::kernel_arguments;
use super::channel::Channel;
use super::command::{GuestCommand, StreamKind, stream_kinds};
use super::config::{GuestConfig, WarmUp, available_memory, memory_by_node};
use super::error::{GuestError, Tried};
use super::exit::{self, ExitReason};
use super::hardware::Hardware;
use super::host_memory::OomKills;
use super::initramfs::Initramfs;
use super::input::WaitingInput;
use super::keep::{self, Unpacker};
use super::kernel_argument::check_length;
use super::kernel_description::{Gathering, KernelDescription};
use super::machine::{Purpose, Running};
use super::messages::GuestEvent;
use super::protocol::{Protocol, Requested};
use super::relay::{Tail, outwards};
use super::saved::{self, AgentFile, Common, Saved};
use super::supervision::Supervision;
use super::supervisor::Supervisor;
use super::{Guest, GuestStart, NodeMemory, memory_file, time_limit};

static AGENT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/guest-init"));

/// Path inside the guest at which the agent puts the preloaded library.
const PRELOAD_PATH: &str = "/run/nearmiss/preload.so";
/// Directory of the command's output inside, in memory.
const OUTPUT_PATH: &str = "/run/nearmiss-output";

/// An order is a few bytes, and the agent reads orders whenever it is notified.
const LONGEST_ORDER: Duration = Duration::from_secs(1);

pub(super) fn launch(mut config: GuestConfig) -> Result<Guest, GuestError> {
    if config.command.argv.is_empty() {
        return Err(GuestError::Config("no command is given".into()));
    }
    check_length(&config.kernel_arguments)?;
    let keep = config.keep.as_deref().map(keep::prepare).transpose()?;
    let sizes = memory_by_node(&config.memory, config.shape.nodes, available_memory())?;
    let memory = memory_files(&mut config, sizes)?;
    let streams = std::mem::take(&mut config.command.streams);
    let mut kinds = stream_kinds(&streams);
    if config.command.output_stays {
        kinds[1] = StreamKind::File(OUTPUT_PATH.into(), 0);
    }
    let description = KernelDescription::kept(&config.kernel);
    let requested = Requested { kernel: description.is_none(), warm_up: config.warm_up, keep: keep.is_some() };
    let files = agent_files(&mut config, requested, &streams, &kinds);
    let hardware = Hardware {
        qemu: &config.qemu,
        shape: config.shape,
        memory: &memory,
        icount: config.icount,
        kernel_arguments: kernel_arguments(&config.qemu, config.aslr, &config.kernel_arguments),
    };
    let (Running { guardian, reports, console, ports, .. }, start) = start(&hardware, &config, &files)?;

    let supervision = Arc::new(Supervision::new(guardian));
    let (events, event_receiver) = channel();
    if let Some(description) = description {
        // The receiver is right here.
        drop(events.send(GuestEvent::Kernel(description)));
    }
    let [control, input_port, output_port, error_port] = ports;
    let [input, output, error] = streams;
    let terminal_stream = [(&kinds[0], &input), (&kinds[1], &output), (&kinds[2], &error)]
        .into_iter()
        .find(|(kind, _)| **kind == StreamKind::Terminal)
        .and_then(|(_, stream)| stream.as_ref()?.try_clone().ok());
    // An agent that takes no orders any longer must not keep the sender of a signal waiting.
    control.set_write_timeout(Some(LONGEST_ORDER)).tried("the control port")?;
    let halted = Arc::downgrade(&supervision);
    let console = Tail::follow(console, exit::HALTED, move || {
        if let Some(supervision) = halted.upgrade() {
            supervision.end(ExitReason::Halted);
        }
    });
    let mut supervisor = Supervisor {
        channel: Channel::new(control.try_clone().tried("the control port")?),
        protocol: Protocol::new(requested),
        events,
        supervision: Arc::clone(&supervision),
        guardian_events: reports.events,
        console,
        log: Tail::follow(reports.log, exit::HALTED, || {}),
        terminal: None,
        output: None,
        error: None,
        unpacker: Unpacker::new(keep, memory.iter().map(|(bytes, _)| bytes).sum()),
        waiting_input: None,
        input: None,
        gathering: requested.kernel.then(Gathering::default),
        kernel: config.kernel,
        host_memory: OomKills::now(),
        program: config.command.argv[0].to_string_lossy().into_owned(),
        directory: config.command.directory.display().to_string(),
        run_ahead: if let WarmUp::Run(limit) = config.warm_up { limit } else { Duration::ZERO },
        timeout: config.timeout,
    };
    if let Some(stream) = terminal_stream {
        supervisor.terminal = Some(outwards(input_port.try_clone().tried("the input port")?, stream));
    }
    if let (StreamKind::Port, Some(stream)) = (&kinds[1], output) {
        supervisor.output = Some(outwards(output_port, stream));
    }
    if let (StreamKind::Port, Some(stream)) = (&kinds[2], error) {
        supervisor.error = Some(outwards(error_port, stream));
    }
    match (&kinds[0], input) {
        (StreamKind::Port, Some(stream)) => {
            supervisor.waiting_input = Some(WaitingInput { port: input_port, stream, terminal: false });
        }
        (StreamKind::Terminal, Some(stream)) => {
            supervisor.waiting_input = Some(WaitingInput { port: input_port, stream, terminal: true });
        }
        _ => {}
    }
    time_limit::of_boot(&supervision);
    let supervisor = thread::spawn(move || supervisor.run());
    Ok(Guest {
        memory: memory.into_iter().map(|(bytes, file)| NodeMemory { bytes, file }).collect(),
        start,
        events: event_receiver,
        control: Mutex::new(control),
        supervision,
        supervisor: Some(supervisor),
    })
}

/// Files for the nodes' memory, which the plugin gets too.
fn memory_files(config: &mut GuestConfig, sizes: Vec<u64>) -> Result<Vec<(u64, OwnedFd)>, GuestError> {
    let mut memory = Vec::new();
    for (node, bytes) in sizes.into_iter().enumerate() {
        let file = memory_file::sized(&format!("nearmiss-node{node}"), bytes)?;
        if let Some(plugin) = &mut config.plugin {
            plugin.descriptors.push((format!("ram{node}"), file.try_clone().tried("a descriptor for the plugin")?));
        }
        memory.push((bytes, file));
    }
    Ok(memory)
}

/// Restores a saved guest, or boots one.
fn start(
    hardware: &Hardware<'_>,
    config: &GuestConfig,
    files: &[AgentFile],
) -> Result<(Running, GuestStart), GuestError> {
    let mut note = None;
    if let Some(cache) = &config.saved_guests {
        let archive = archive(config, &[])?;
        let initramfs = memory_file::holding("nearmiss-initramfs", &archive)?;
        let common = Common {
            kernel: &config.kernel,
            archive: &archive,
            initramfs: &initramfs,
            interrupted: &config.interrupted,
        };
        note = match saved::obtain(cache, hardware, &common) {
            Saved::None(note) => note,
            Saved::Image(image) => match saved::restore(&image, hardware, &common, config.plugin.as_ref(), files) {
                Ok(running) => {
                    return Ok((running, GuestStart { restored: Some(image.boot()), note: image.note.clone() }));
                }
                Err(why) => {
                    image.remove();
                    saved::empty(hardware.memory);
                    Some(format!("the guest was booted, because the saved one could not be restored: {why}"))
                }
            },
        };
    }
    let initramfs = memory_file::holding("nearmiss-initramfs", &archive(config, files)?)?;
    let image = config.kernel.bootable();
    let kernel: OwnedFd = File::open(&image).tried(image.display().to_string())?.into();
    let running = hardware.start(Purpose::Boot, &kernel, &initramfs, config.plugin.as_ref())?;
    Ok((running, GuestStart { restored: None, note }))
}

/// Builds the archive that the guest boots from, with these files of the run.
fn archive(config: &GuestConfig, files: &[AgentFile]) -> Result<Vec<u8>, GuestError> {
    let mut archive = Initramfs::new();
    for directory in ["dev", "proc", "sys", "root", "lower", "layer"] {
        archive.directory(directory);
    }
    archive.file("init", 0o755, AGENT);
    if let Some(module) = config.kernel.overlay_module()? {
        archive.file("overlay.ko", 0o644, &module);
    }
    let drivers = config.kernel.drivers()?;
    if !drivers.is_empty() {
        archive.directory("drivers");
    }
    for (number, module) in drivers.iter().enumerate() {
        archive.file(&format!("drivers/{number}.ko"), 0o644, module);
    }
    for file in files {
        archive.file(file.path.trim_start_matches('/'), file.mode, &file.content);
    }
    Ok(archive.finish())
}

/// Returns the files that the agent needs for this run.
fn agent_files(
    config: &mut GuestConfig,
    requested: Requested,
    streams: &[Option<OwnedFd>; 3],
    kinds: &[StreamKind; 3],
) -> Vec<AgentFile> {
    let content = agent_config(config, requested, streams, kinds);
    let library = config.preload.take().map(|content| AgentFile { path: "/preload.so", mode: 0o755, content });
    let input = config.command.spooled.take();
    let input = input.map(|content| AgentFile { path: "/warm-input", mode: 0o600, content });
    let configuration = AgentFile { path: "/nearmiss.conf", mode: 0o644, content };
    library.into_iter().chain(input).chain([configuration]).collect()
}

/// `key=value`, each ended by a NUL.
fn agent_config(
    config: &GuestConfig,
    requested: Requested,
    streams: &[Option<OwnedFd>; 3],
    kinds: &[StreamKind; 3],
) -> Vec<u8> {
    let mut text = Vec::new();
    let mut put = |key: &str, value: &[u8]| {
        text.extend_from_slice(key.as_bytes());
        text.push(b'=');
        text.extend_from_slice(value);
        text.push(0);
    };
    let command = &config.command;
    for argument in &command.argv {
        put("arg", argument.as_bytes());
    }
    for variable in environment(command, config) {
        put("env", &variable);
    }
    put("cwd", command.directory.as_os_str().as_bytes());
    put("uid", command.uid.to_string().as_bytes());
    put("gid", command.gid.to_string().as_bytes());
    for group in &command.groups {
        put("group", group.to_string().as_bytes());
    }
    put("umask", format!("{:o}", command.umask).as_bytes());
    for (kind, soft, hard) in &command.limits {
        put("rlimit", format!("{kind}:{soft}:{hard}").as_bytes());
    }
    put("ignored", format!("{:x}", command.ignored_signals).as_bytes());
    if let Ok(name) = std::fs::read_to_string("/proc/sys/kernel/hostname") {
        put("hostname", name.trim().as_bytes());
    }
    // The overlay may use three quarters of the memory: what is left keeps the guest going.
    put("overlay", b"mode=0755,size=75%,nr_inodes=0");
    for (key, kind) in ["stdin", "stdout", "stderr"].into_iter().zip(kinds) {
        put(key, &kind.to_config());
    }
    if let Some(terminal) =
        (0..3).find(|number| kinds[*number] == StreamKind::Terminal).and_then(|n| streams[n].as_ref())
    {
        if let Ok(size) = tcgetwinsize(terminal) {
            let text = format!("{}:{}:{}:{}", size.ws_row, size.ws_col, size.ws_xpixel, size.ws_ypixel);
            put("window", text.as_bytes());
        }
        if let Ok(settings) = tcgetattr(terminal) {
            put("termios", termios_text(&settings, kinds[0] == StreamKind::Terminal).as_bytes());
        }
    }
    put("symbols", if requested.kernel { b"1" } else { b"0" });
    put(
        "warm",
        match requested.warm_up {
            WarmUp::Nothing => b"0",
            WarmUp::Files => b"1",
            WarmUp::Run(_) => b"2",
        },
    );
    put("keep", if requested.keep { b"1" } else { b"0" });
    put("preload", if config.preload.is_some() { b"1" } else { b"0" });
    text
}

/// The command's environment with our preloaded library and tunables behind its own.
fn environment(command: &GuestCommand, config: &GuestConfig) -> Vec<Vec<u8>> {
    let mut variables = command.env.clone();
    let mut extend = |name: &str, value: &str| match variables.iter_mut().find(|(key, _)| key == name) {
        Some((_, held)) if !held.is_empty() => {
            held.push(":");
            held.push(value);
        }
        _ => variables.push((name.into(), value.into())),
    };
    if config.preload.is_some() {
        extend("LD_PRELOAD", PRELOAD_PATH);
    }
    if let Some(tunables) = &config.libc_tunables {
        extend("GLIBC_TUNABLES", tunables);
    }
    variables.into_iter().map(|(name, value)| [name.into_vec(), b"=".to_vec(), value.into_vec()].concat()).collect()
}

/// Returns the terminal's settings for the one inside. If ours stays in its cooked mode (our input is not the
/// terminal), lines would otherwise get their carriage return twice.
fn termios_text(settings: &Termios, raw_outside: bool) -> String {
    let flags = [
        settings.input_modes.bits(),
        if raw_outside { settings.output_modes.bits() } else { 0 },
        settings.control_modes.bits(),
        settings.local_modes.bits(),
    ];
    use rustix::termios::SpecialCodeIndex as Code;
    let codes = [
        Code::VINTR,
        Code::VQUIT,
        Code::VERASE,
        Code::VKILL,
        Code::VEOF,
        Code::VTIME,
        Code::VMIN,
        Code::VSWTC,
        Code::VSTART,
        Code::VSTOP,
        Code::VSUSP,
        Code::VEOL,
        Code::VREPRINT,
        Code::VDISCARD,
        Code::VWERASE,
        Code::VLNEXT,
        Code::VEOL2,
    ];
    let mut text: String = flags.iter().map(|flag| format!("{flag:x}:")).collect();
    for code in codes {
        text.push_str(&format!("{:02x}", settings.special_codes[code]));
    }
    text
}

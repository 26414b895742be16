//! The binary: reads the configuration, starts the threads, obeys signals.

use anyhow::Context;
use clap::{CommandFactory, Parser, Subcommand};
use nearmiss_accelerator::PROGRAM;
use nearmiss_accelerator::config::Config;
use nearmiss_accelerator::shared::{Live, Shared};
use nearmiss_accelerator::worker::Worker;
use nearmiss_accelerator::{admin, health, listen};
use nearmiss_usage::{GeneratedText, print, report};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::fmt::Display;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread::JoinHandle;

/// An HTTP/1.1 caching reverse proxy on a paced event loop.
#[derive(Debug, Parser)]
#[command(name = PROGRAM, version, after_help = EXAMPLES, max_term_width = 120)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
struct Arguments {
    /// The configuration, TOML
    #[arg(long, value_name = "FILE", required = true)]
    config: Option<PathBuf>,
    /// Check the configuration, report whether it is valid, and end
    #[arg(long)]
    check: bool,
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Write man pages and shell completions
    #[command(subcommand)]
    Generate(GeneratedText),
}

const EXAMPLES: &str = "Examples:
  nearmiss-accelerator --config examples/accelerator.toml          serve
  nearmiss-accelerator --config examples/accelerator.toml --check  only read the configuration
  kill -HUP PID     read the configuration again; one that is wrong changes nothing
  kill -TERM PID    take no new connections, end the open ones, stop
Exit status: 0 done, 2 wrong use or configuration, 3 this machine cannot do it.";

fn main() -> ExitCode {
    let arguments: Arguments = match nearmiss_usage::read() {
        Ok(arguments) => arguments,
        Err(status) => return status,
    };
    let done = match (arguments.verb, arguments.config) {
        (Some(Verb::Generate(what)), _) => generate(&what),
        (None, path) => accelerate(&path.unwrap_or_default(), arguments.check),
    };
    done.unwrap_or_else(|wrong| {
        report(PROGRAM, wrong);
        ExitCode::from(2)
    })
}

fn generate(what: &GeneratedText) -> Result<ExitCode, String> {
    let version = concat!("nearmiss ", env!("CARGO_PKG_VERSION"));
    let text = nearmiss_usage::generate(what, Arguments::command(), version).map_err(|error| error.to_string())?;
    shown(text)
}

fn shown(text: impl Display) -> Result<ExitCode, String> {
    print(text).map(|()| ExitCode::SUCCESS).map_err(|error| format!("standard output: not written: {error}"))
}

/// An error is one of the configuration.
fn accelerate(path: &Path, only_check: bool) -> Result<ExitCode, String> {
    let config = Config::read(path).map_err(|error| error.to_string())?;
    if only_check {
        return shown(format_args!("{}: taken\n", path.display()));
    }
    Ok(match serve(path, config) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report(PROGRAM, format_args!("{error:#}"));
            ExitCode::from(3)
        }
    })
}

fn serve(path: &Path, config: Config) -> anyhow::Result<()> {
    let mut signals = Signals::new([SIGHUP, SIGTERM, SIGINT]).context("signals: not taken")?;
    listen::raise_descriptor_limit(config.limits.connections);
    let threads = match config.threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    };
    let sockets = listen::open(&config.listen, threads)?;
    let listening: Vec<_> = sockets.iter().flatten().filter_map(|socket| socket.local_addr().ok()).collect();
    let live = Live::new(config, None).context("access_log: not opened; name a file that can be written")?;
    let shared = Arc::new(Shared::new(live, threads).context("event descriptors: none to be had")?);
    admin::start(&shared)?;
    health::start(&shared)?;
    let workers = start_workers(&shared, sockets)?;
    for signal in &mut signals {
        match signal {
            SIGHUP => reload(path, &shared, &listening),
            _ => break,
        }
    }
    shared.drain();
    for worker in workers {
        worker.join().map_err(|_| anyhow::anyhow!("a thread panicked"))?;
    }
    Ok(())
}

/// Ends the process where its thread panics.
struct EndsTheProcess;

impl Drop for EndsTheProcess {
    fn drop(&mut self) {
        if std::thread::panicking() {
            std::process::exit(3);
        }
    }
}

/// Half a server is worse than none: a loop that cannot go on ends the process.
fn run_or_exit(me: usize, shared: Arc<Shared>, listeners: Vec<TcpListener>) {
    let _guard = EndsTheProcess;
    if let Err(error) = Worker::new(me, shared, listeners).and_then(Worker::run) {
        report(PROGRAM, format_args!("event loop {me}: {error}"));
        std::process::exit(3);
    }
}

fn start_workers(shared: &Arc<Shared>, sockets: Vec<Vec<TcpListener>>) -> anyhow::Result<Vec<JoinHandle<()>>> {
    let mut workers = Vec::new();
    for (me, listeners) in sockets.into_iter().enumerate() {
        let thread = std::thread::Builder::new().name(format!("loop-{me}"));
        let shared = Arc::clone(shared);
        workers.push(thread.spawn(move || run_or_exit(me, shared, listeners)).context("thread: not started")?);
    }
    Ok(workers)
}

/// A changed `listen` takes a restart: until then the proxy is where it was.
fn read_again(path: &Path, listening: &[SocketAddr]) -> Result<Config, String> {
    let config = Config::read(path).map_err(|error| error.to_string())?;
    config.refuse_own_addresses(listening).map_err(|why| format!("{}: {why}", path.display()))?;
    Ok(config)
}

fn reload(path: &Path, shared: &Shared, listening: &[SocketAddr]) {
    let before = shared.live();
    match read_again(path, listening) {
        Err(error) => report(PROGRAM, format_args!("{error}; the configuration from before stays")),
        Ok(config) => {
            for part in config.takes_a_restart(&before.config) {
                report(PROGRAM, format_args!("{part}: a change takes a restart"));
            }
            match Live::new(config, Some(&before)) {
                Err(error) => report(
                    PROGRAM,
                    format_args!("access_log: not opened: {error}; the configuration from before stays"),
                ),
                Ok(live) => {
                    shared.reload(live);
                    report(PROGRAM, format_args!("{}: read again", path.display()));
                }
            }
        }
    }
}

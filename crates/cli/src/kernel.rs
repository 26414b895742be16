//! The verb `kernel`: which kernel the guests boot, and how to get one.
//!
//! Debian's package is unpacked into a folder of nearmiss's own and never installed: what this machine boots stays as
//! it is.

use crate::exit::CannotHere;
use anyhow::{Context, ensure};
use nearmiss_tap::guest::KernelImage;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

/// The script that fetches and unpacks: the same as a clone of the repository runs.
const UNPACK: &str = include_str!("../../../scripts/setup-kernel.sh");

/// Arguments of `nearmiss kernel`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  nearmiss kernel           which kernel the guests of `trace` boot
  nearmiss kernel --unpack  fetch Debian's newest 6.12 cloud kernel by apt, unpack, install nothing
  nearmiss kernel --unpack ./linux-image-6.12.63+deb12-cloud-amd64_6.12.63-1_amd64.deb

Kernels lie under $XDG_CACHE_HOME/nearmiss/kernel (~/.cache/nearmiss/kernel): remove a directory there to forget one.")]
pub struct Args {
    /// Fetch a kernel and unpack it: the newest suitable, a package by name, or a .deb file
    #[arg(long, value_name = "PACKAGE", num_args = 0..=1, default_missing_value = "")]
    unpack: Option<String>,
}

/// Runs the verb.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    if let Some(package) = args.unpack {
        unpack(&package)?;
    }
    let kernel = KernelImage::newest().map_err(|error| CannotHere(error.to_string()))?;
    crate::output::print(&format!("{}  {}\n", kernel.release(), kernel.directory().display()))?;
    Ok(ExitCode::SUCCESS)
}

fn unpack(package: &str) -> anyhow::Result<()> {
    const WHAT: &str = "cannot run /bin/sh to unpack the guest's kernel";
    let is_file = package.contains('/') || package.ends_with(".deb");
    ensure!(
        !is_file || Path::new(package).is_file(),
        "{package}: no such file; without one a kernel is fetched with apt"
    );
    let mut shell = Command::new("/bin/sh");
    shell.args(["-s", "--"]).args((!package.is_empty()).then_some(package));
    let pipes = shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = pipes.spawn().context(WHAT)?;
    let (mut script, progress) = (child.stdin.take().context(WHAT)?, child.stderr.take().context(WHAT)?);
    // A shell that stopped reading has failed, and its status shows that.
    let _ = script.write_all(UNPACK.as_bytes());
    drop(script);
    let last = pass_on_all_but_the_last(progress);
    if child.wait().context(WHAT)?.success() {
        crate::output::print_to_stderr(&last);
        return Ok(());
    }
    let why = last.trim_end().trim_start_matches("setup-kernel: ");
    let failed = format!("no kernel was unpacked: {why}");
    ensure!(!is_file, failed);
    Err(CannotHere(failed).into())
}

/// Returns the script's last line, which gives the reason of a failure; prints the others, which are its progress.
fn pass_on_all_but_the_last(progress: impl Read) -> String {
    let (mut lines, mut last, mut next) = (BufReader::new(progress), String::new(), Vec::new());
    while lines.read_until(b'\n', &mut next).is_ok_and(|bytes| bytes > 0) {
        crate::output::print_to_stderr(&last);
        last = String::from_utf8_lossy(&next).into_owned();
        next.clear();
    }
    last
}

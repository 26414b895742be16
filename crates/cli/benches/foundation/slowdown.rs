//! (g) what a trace costs by kind of program: the fixed cost, and how often its own time each kind takes in the window.

use super::spread;
use nearmiss_record::run::{MANIFEST, Manifest, RunDir};
use std::error::Error;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Pairs of each program, alone and traced by turns.
const PAIRS: usize = 3;

/// A command of each kind; what it reads is written by `inputs`.
fn programs() -> Vec<(&'static str, Vec<String>)> {
    let subject = |name: &str| format!("{}/../../target/subjects/{name}", env!("CARGO_MANIFEST_DIR"));
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    vec![
        ("nothing (`true`)", words(&["true"])),
        ("compresses (`gzip`)", words(&["gzip", "-kfc", "words"])),
        ("sorts (`sort`)", words(&["sort", "-S", "20M", "-o", "/dev/null", "words"])),
        ("calls the kernel (`dd`, 4 KiB)", words(&["dd", "if=/dev/zero", "of=/dev/null", "bs=4096", "count=20000"])),
        ("interprets (`python3`)", words(&["/usr/bin/python3", "-c", "print(sum(i * i % 7 for i in range(500000)))"])),
        ("starts programs (`sh`, 50 times)", words(&["sh", "-c", "for i in $(seq 50); do /bin/true; done"])),
        ("compiles (`gcc -O2`)", words(&["gcc", "-O2", "-c", "-o", "/dev/null", "many.c"])),
        ("follows pointers", words(&[&subject("pointer-chase")])),
        ("multiplies matrices", words(&[&subject("matmul"), "--n", "200", "--integer"])),
        ("the same in floating point", words(&[&subject("matmul"), "--n", "200"])),
    ]
}

fn inputs() -> std::io::Result<()> {
    let function =
        |n: usize| format!("int f{n}(int *a, int n) {{ int s = {n}; while (n--) s += a[n] * s; return s; }}\n");
    std::fs::write("many.c", (0..50).map(function).collect::<String>())
}

/// Prints a row for every program.
pub fn measure() -> Result<(), Box<dyn Error>> {
    inputs()?;
    println!(
        "(g) `nearmiss trace -q -- CMD` as it is typed, by kind of program: measured, {PAIRS} pairs, alone and traced"
    );
    println!(
        "    by turns; factor: window of the trace by the time alone; whole: from typing to the end, model included"
    );
    println!("    {:<34} {:<24} {:<26} {:>7}  whole", "", "alone", "window", "factor");
    for (kind, argv) in programs() {
        if Command::new(&argv[0]).arg("--version").stdin(Stdio::null()).output().is_err() {
            println!("    {kind:<34} skipped: {} is not installed", argv[0]);
            continue;
        }
        let (mut alone, mut windows, mut wholes) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..PAIRS {
            alone.push(timed(&argv)?);
            let trace = [env!("CARGO_BIN_EXE_nearmiss"), "trace", "-q", "--"].map(str::to_owned);
            wholes.push(timed(&[&trace[..], &argv].concat())?);
            let run = RunDir::newest(Path::new("nearmiss-runs"))?;
            windows.push(Duration::from_nanos(run.read_json::<Manifest>(MANIFEST)?.window_ns));
            std::fs::remove_dir_all(run.path())?;
        }
        let ((a, alone), (b, window), (_, whole)) = (spread(alone), spread(windows), spread(wholes));
        println!("    {kind:<34} {alone:<24} {window:<26} {:>6.0}×  {whole}", b / a);
    }
    println!();
    Ok(())
}

fn timed(argv: &[String]) -> Result<Duration, Box<dyn Error>> {
    let mut command = Command::new(&argv[0]);
    command.args(&argv[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let started = Instant::now();
    match command.status()?.success() {
        true => Ok(started.elapsed()),
        false => Err(format!("{} failed", argv.join(" ")).into()),
    }
}

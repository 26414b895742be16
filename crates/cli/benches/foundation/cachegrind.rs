//! (a) The same caches under both: counts side by side, then time.

use super::programs::{Program, TUNABLES, all};
use super::{RUNS, spread};
use nearmiss_machine::describe::{cachegrind_like, filter_for_counts};
use nearmiss_machine::model::{Counter, ModelOptions};
use nearmiss_machine::observer::NullObserver;
use nearmiss_record::counts::ByKind;
use nearmiss_record::machine::Machine;
use nearmiss_record::policy::{Order, Policy};
use nearmiss_record::run::Filter;
use nearmiss_tap::guest::{GuestCommand, GuestShape, KernelImage, QemuBinary, WarmUp};
use nearmiss_tap::session::{Session, TapConfig};
use nearmiss_tap::window::{Length, Window};
use std::error::Error;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const I1: &str = "32768,8,64";
const D1: &str = "32768,8,64";
const LL: &str = "8388608,16,64";

/// Misses that both count.
#[derive(Clone, Copy, Default)]
struct Counts {
    instructions: u64,
    d1_read: u64,
    d1_write: u64,
    ll_read: u64,
    ll_write: u64,
    i1: u64,
    /// Records that the tap's filter let through; cachegrind has none.
    kept: u64,
}

/// Whether the guest starts `true` ahead of the command.
#[derive(Clone, Copy, PartialEq)]
enum Start {
    Warm,
    Cold,
}

/// Prints both columns for every program with `name` in its name, and the geometric mean of the ratios of time.
pub fn compare(name: &str) -> Result<(), Box<dyn Error>> {
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("(a) skipped: valgrind is not installed (apt-get install valgrind)");
        return Ok(());
    }
    println!("(a) nearmiss trace --only user --counts beside cachegrind --cache-sim=yes; I1 {I1}, D1 {D1}, LL {LL}");
    println!("    both count misses and distinguish no classes; cachegrind also charges them to source lines, which");
    println!("    --counts does not (leave it out for that, and for classes and objects: then (b) is the time)");
    println!("    counts: modelled by both; cachegrind with --vex-guest-chase=no (by default it counts up to 3% too");
    println!(
        "    many instructions). time: measured, window of the trace against cachegrind's whole run, {RUNS} pairs"
    );
    println!(
        "    guest alone: the same guest with nothing recorded, from the command's first instruction to power off,"
    );
    println!(
        "    less that of `true`: no tap on this emulator can be faster. tap alone: window of the same recording, its"
    );
    println!("    records thrown away: what is left if the model took no time");
    println!(
        "    cold: what a trace does not do any more, its window with nothing translated ahead of it. Before the window,"
    );
    println!("    in its boot, the guest starts `true`: what each start goes through is translated then\n");
    let nothing = Program { name: "true", argv: vec!["true".into()], floating: false, tunables: "" };
    let (mut ratios, mut colds, mut floors, mut taps) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut boots, mut cold_boots) = (Vec::new(), Vec::new());
    for program in all().into_iter().filter(|p| p.name.contains(name)) {
        let theirs = cachegrind(&program, true)?.0;
        let ours = tap(&program, Start::Warm)?.0;
        println!("{}", program.name);
        for (what, a, b) in [
            ("instructions", ours.instructions, theirs.instructions),
            ("D1 read misses", ours.d1_read, theirs.d1_read),
            ("D1 write misses", ours.d1_write, theirs.d1_write),
            ("LL read misses", ours.ll_read, theirs.ll_read),
            ("LL write misses", ours.ll_write, theirs.ll_write),
            ("I1 misses", ours.i1, theirs.i1),
        ] {
            let difference = a as f64 - b as f64;
            let limit = if what == "instructions" { b as f64 * 0.005 } else { (b as f64 * 0.001).max(1000.0) };
            let verdict = if difference.abs() <= limit { "within" } else { "BEYOND" };
            println!("  {what:<16} {a:>14} {b:>14}  {difference:>+9.0}  {verdict} the limit of {limit:.0}");
        }
        println!("  records kept     {:>14}", ours.kept);
        let (mut mine, mut others, mut floor, mut taken) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut cold = Vec::new();
        for _ in 0..RUNS {
            for (start, windows, boots) in
                [(Start::Warm, &mut mine, &mut boots), (Start::Cold, &mut cold, &mut cold_boots)]
            {
                let (_, window, boot) = tap(&program, start)?;
                windows.push(window);
                boots.push(boot);
            }
            others.push(cachegrind(&program, false)?.1);
            taken.push(tap_alone(&program)?);
            floor.push(guest_alone(&program)?.saturating_sub(guest_alone(&nothing)?));
        }
        let ((a, ours), (b, theirs), (c, alone), (d, taps_own)) =
            (spread(mine), spread(others), spread(floor), spread(taken));
        let (e, cold) = spread(cold);
        println!("  time             {ours}  {theirs}  {:.2}× as fast", b / a);
        println!("  cold             {cold}  {:.2}× as fast", b / e);
        println!("  tap alone        {taps_own}  {:.2}× as fast", b / d);
        println!("  guest alone      {alone}  {:.2}× as fast\n", b / c);
        if !program.floating {
            ratios.push((b / a).ln());
            colds.push((b / e).ln());
            floors.push((b / c).ln());
            taps.push((b / d).ln());
        }
    }
    let mean = |logs: &[f64]| (logs.iter().sum::<f64>() / logs.len() as f64).exp();
    println!("geometric mean over integer programs: {:.2}× as fast as cachegrind (wanted 1.25, goal 2)", mean(&ratios));
    println!(
        "cold: {:.2}×; of the tap alone: {:.2}×; of the guest alone: {:.2}×",
        mean(&colds),
        mean(&taps),
        mean(&floors)
    );
    println!("boot ahead of the window: {}, cold {}\n", spread(boots).1, spread(cold_boots).1);
    Ok(())
}

fn cachegrind(program: &Program, for_counts: bool) -> Result<(Counts, Duration), Box<dyn Error>> {
    let mut command = Command::new("setarch");
    command.args(["-R", "valgrind", "-q", "--tool=cachegrind", "--cache-sim=yes"]);
    command.args([format!("--I1={I1}"), format!("--D1={D1}"), format!("--LL={LL}")]);
    command.arg("--cachegrind-out-file=cachegrind.out");
    if for_counts {
        command.arg("--vex-guest-chase=no");
    }
    command.args(&program.argv).env("GLIBC_TUNABLES", tunables(program)).stdout(Stdio::null()).stderr(Stdio::null());
    let started = Instant::now();
    if !command.status()?.success() {
        return Err(format!("{} failed under cachegrind", program.name).into());
    }
    let time = started.elapsed();
    let text = std::fs::read_to_string("cachegrind.out")?;
    let line = |key: &str| text.lines().rev().find_map(|l| l.strip_prefix(key)).unwrap_or_default();
    let find = |event: &str| -> u64 {
        let at = line("events:").split_whitespace().position(|e| e == event);
        at.and_then(|n| line("summary:").split_whitespace().nth(n)?.parse().ok()).unwrap_or(0)
    };
    let counts = Counts {
        instructions: find("Ir"),
        d1_read: find("D1mr"),
        d1_write: find("D1mw"),
        ll_read: find("DLmr"),
        ll_write: find("DLmw"),
        i1: find("I1mr"),
        kept: 0,
    };
    Ok((counts, time))
}

fn caches() -> Result<Machine, Box<dyn Error>> {
    Ok(cachegrind_like(I1.parse()?, D1.parse()?, LL.parse()?)?)
}

fn tunables(program: &Program) -> String {
    format!("{TUNABLES}{}", program.tunables)
}

fn session(program: &Program, filter: Filter, start: Start) -> Result<Session, Box<dyn Error>> {
    Ok(Session::new(TapConfig {
        shape: GuestShape::flat(1),
        memory: vec![1 << 30],
        kernel: KernelImage::newest()?,
        qemu: QemuBinary::installed()?,
        only_user: true,
        filter,
        heap_shim: None,
        icount: None,
        timeout: Some(Duration::from_secs(300)),
        keep: None,
        aslr: false,
        kernel_arguments: Vec::new(),
        warm_up: if start == Start::Warm { WarmUp::Files } else { WarmUp::Nothing },
        libc_tunables: Some(tunables(program)),
        saved_boot: true,
    })?)
}

fn command(program: &Program) -> Result<GuestCommand, Box<dyn Error>> {
    let mut command = GuestCommand::inherit(&program.argv)?;
    let null = || std::fs::OpenOptions::new().write(true).open("/dev/null").ok().map(Into::into);
    command.streams = [None, null(), null()];
    Ok(command)
}

/// The command's time in a guest with a window that closes at once.
fn guest_alone(program: &Program) -> Result<Duration, Box<dyn Error>> {
    let closed = Window { length: Some(Length::Instructions(1)), ..Window::default() };
    let started = Instant::now();
    let recorded = session(program, filter_for_counts(&caches()?), Start::Warm)?
        .within(closed)
        .record(command(program)?, &mut |_, _| Ok(()))?;
    Ok(started.elapsed() - recorded.boot - recorded.warm)
}

/// The window of a recording that nobody models.
fn tap_alone(program: &Program) -> Result<Duration, Box<dyn Error>> {
    let recorded =
        session(program, filter_for_counts(&caches()?), Start::Warm)?.record(command(program)?, &mut |_, _| Ok(()))?;
    Ok(recorded.window)
}

/// Counts, the window, and the boot and warming before it.
fn tap(program: &Program, start: Start) -> Result<(Counts, Duration, Duration), Box<dyn Error>> {
    let machine = caches()?;
    let filter = filter_for_counts(&machine);
    let session = session(program, filter, start)?;
    let options = ModelOptions { coherence: false, ..ModelOptions::of(session.header(), Order::Recorded) };
    let mut model = Counter::new(&machine, &Policy::default(), &options, NullObserver)?;
    let recorded = session
        .record(command(program)?, &mut |head, records| model.chunk(head, records).map_err(|e| e.to_string()))?;
    let totals = model.finish()?.0.sum();
    let (first, last) = (ByKind::from(&totals.levels[0]), ByKind::from(&totals.levels[1]));
    let counts = Counts {
        instructions: totals.instructions,
        d1_read: first.loads,
        d1_write: first.stores,
        ll_read: last.loads,
        ll_write: last.stores,
        i1: first.fetches,
        kept: recorded.records,
    };
    Ok((counts, recorded.window, recorded.boot + recorded.warm))
}

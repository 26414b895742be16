//! `nearmiss trace` on real programs: what must be in a report is there, sums agree, a kept trace gives the same again.

use crate::guest_slots::for_a_guest;
use nearmiss_record::model::{ByClass, LevelTally, MissClass, ModelRecord, ObjectKind, Tally};
use nearmiss_record::run::Manifest;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A directory with runs below it, removed at the end.
struct TracedRuns(tempfile::TempDir);

impl TracedRuns {
    fn new() -> Self {
        TracedRuns(tempfile::tempdir().expect("a temporary directory"))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn nearmiss(&self, args: &[&str]) -> Output {
        let output = Command::new(env!("CARGO_BIN_EXE_nearmiss")).current_dir(self.path()).args(args).output();
        output.expect("nearmiss runs")
    }

    /// Traces and returns what CMD printed, the report's text, and the model's record.
    fn trace(&self, args: &[&str]) -> (String, String, ModelRecord) {
        let model = self.path().join("model.json");
        let mut all = vec!["trace", "--memory", "1GiB", "--timeout", "5m", "--json", model.to_str().expect("text")];
        all.extend_from_slice(args);
        let output = self.nearmiss(&all);
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{args:?}: {}: {err}", output.status);
        let record = serde_json::from_slice(&std::fs::read(&model).expect("model.json")).expect("a model record");
        (out, err, record)
    }

    fn run(&self) -> PathBuf {
        let mut runs: Vec<_> = std::fs::read_dir(self.path().join("nearmiss-runs")).expect("runs").flatten().collect();
        runs.sort_by_key(std::fs::DirEntry::file_name);
        runs.pop().expect("a run").path()
    }
}

/// Debian's own, not a wrapper script that PATH may find first.
const PYTHON: &str = "/usr/bin/python3";

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn subject(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/subjects").join(name);
    assert!(path.is_file(), "{}: build it with `make subjects`", path.display());
    path.canonicalize().expect("a path").display().to_string()
}

fn sum<'a>(rows: impl Iterator<Item = &'a Tally>) -> Tally {
    let mut sum = Tally::default();
    rows.for_each(|row| sum += row);
    sum
}

/// Every table that covers everything adds up to the totals.
fn sums_agree(model: &ModelRecord) {
    let references = |t: &Tally| (t.loads, t.stores, t.levels.clone(), t.bus);
    let functions = sum(model.functions.iter().map(|r| &r.tally));
    assert_eq!(references(&functions), references(&model.totals), "functions");
    assert_eq!(functions.instructions, model.totals.instructions, "instructions of functions");
    for (of_command, totals) in [(true, &model.totals), (false, &model.others)] {
        let tasks = model.tasks.iter().filter(|r| r.of_command == of_command);
        assert_eq!(references(&sum(tasks.flat_map(|r| [&r.user, &r.kernel]))), references(totals), "tasks");
    }
    let beside = sum(model.other_functions.iter().map(|r| &r.tally));
    assert_eq!((references(&beside), beside.cycles), (references(&model.others), model.others.cycles), "other tasks");
    assert_eq!(references(&sum(model.cpus.iter())), references(&model.totals), "CPUs");
    let on_bus: u64 = model.page_offsets.user.iter().chain(&model.page_offsets.kernel).sum();
    assert!(on_bus <= model.totals.bus.transactions() && on_bus >= model.totals.bus.reads(), "page offsets");
}

fn function<'a>(model: &'a ModelRecord, name: &str) -> &'a Tally {
    let found = model.functions.iter().find(|f| f.name == name || f.name.starts_with(&format!("{name}.")));
    let names = || model.functions.iter().take(40).map(|f| f.name.as_str()).collect::<Vec<_>>();
    &found.unwrap_or_else(|| panic!("no function {name} among {:?}", names())).tally
}

fn misses(tally: &Tally, level: usize) -> u64 {
    tally.levels[level].misses()
}

#[test]
fn the_run_queue_walk_shows_its_spike_its_sets_and_its_cause() {
    let Some(_guest) = for_a_guest() else { return };
    let place = TracedRuns::new();
    let program = subject("aligned-tasks");
    let (out, report, model) = place.trace(&[
        "-m",
        "pentium-pro-4way-512k",
        "--cpus",
        "2",
        "--",
        &program,
        "--objects",
        "1024",
        "--visits",
        "200000",
    ]);
    assert!(out.contains("objects 1024"), "{out}");
    sums_agree(&model);

    // 1,024 tasks at 8 KiB on a 512 KiB 4-way cache: nearly every visit misses.
    let walk = function(&model, "walk");
    assert!(misses(walk, 1) > 180_000, "{} L2 misses in the walk", misses(walk, 1));
    assert!(walk.levels[1].class(MissClass::Conflict) * 10 > misses(walk, 1) * 9);

    // The spike: bytes 0x20–0x3f of a page.
    let offsets = &model.page_offsets;
    assert_eq!(offsets.bin_bytes, 32);
    let (peak, count) = offsets.user.iter().enumerate().max_by_key(|(_, n)| **n).expect("bins");
    assert_eq!(peak, 1, "the spike is at offset {:#x}", peak * 32);
    assert!(count * 10 > offsets.user.iter().sum::<u64>() * 8);

    // Few sets carry it; the rest is the kernel's, and more on a slower host, since ticks follow the host's time.
    let l2 = model.sets.iter().find(|s| s.cache == "L2").expect("L2's sets");
    let mut conflicts = l2.conflict_misses.clone();
    conflicts.sort_unstable_by(|a, b| b.cmp(a));
    let (few, all) = (conflicts[..64].iter().sum::<u64>(), conflicts.iter().sum::<u64>());
    assert!(few * 10 > all * 8, "the 64 busiest of {} sets have {few} of {all} conflict misses", conflicts.len());

    assert!(
        report.contains("conflict misses in") && report.contains("`walk`") && report.contains("would spread"),
        "{report}"
    );
    // Names are whole where the report goes to a file, so lines may be long.
    assert!(report.lines().count() < 60, "{report}");

    // Replaying what was kept gives the same, byte for byte; the trace is sound and small.
    let run = place.run();
    let run = run.to_str().expect("text");
    let again = place.nearmiss(&["report", run, "-m", "pentium-pro-4way-512k", "--json"]);
    let again: serde_json::Value = serde_json::from_slice(&again.stdout).expect("JSON and nothing else");
    assert_eq!(again["model"], serde_json::to_value(&model).expect("JSON"));
    let sound = place.nearmiss(&["report", run, "--validate"]);
    assert!(sound.status.success() && text(&sound.stdout).contains("sound"));
    let kept: u64 = again["manifest"]["records"].as_u64().expect("a number");
    let bytes = std::fs::metadata(Path::new(run).join("trace.nmt")).expect("a trace").len();
    assert!(bytes <= 2 * kept, "{bytes} bytes for {kept} records");

    // A larger cache has fewer misses; a machine that the filter cannot serve is refused with a reason.
    let larger = place.nearmiss(&["report", run, "-m", "pentium-pro-4way-1m", "--json"]);
    let larger: serde_json::Value = serde_json::from_slice(&larger.stdout).expect("JSON");
    let larger: ModelRecord = serde_json::from_value(larger["model"].clone()).expect("a model record");
    assert!(misses(&larger.totals, 1) < misses(&model.totals, 1));
    let refused = place.nearmiss(&["report", run, "-m", "xeon-ht-2x2"]);
    assert_eq!(
        (refused.status.code(), text(&refused.stderr).lines().count()),
        (Some(2), 1),
        "{}",
        text(&refused.stderr)
    );
}

#[test]
fn sort_shows_its_buffer_its_compares_and_the_kernels_copies() {
    let Some(_guest) = for_a_guest() else { return };
    let place = TracedRuns::new();
    let words: String = (0..20_000u64).map(|n| format!("{:016x}\n", n.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
    std::fs::write(place.path().join("words"), &words).expect("written");
    let (out, report, model) =
        place.trace(&["-m", "pentium-pro-4way-512k", "--cpus", "1", "--", "sort", "-S", "8M", "--parallel=1", "words"]);
    let mut sorted: Vec<&str> = words.lines().collect();
    sorted.sort_unstable();
    assert_eq!(out.lines().collect::<Vec<_>>(), sorted);
    sums_agree(&model);
    assert!(model.functions.iter().any(|f| !f.kernel && f.module.ends_with("/sort") && misses(&f.tally, 0) > 0));
    assert!(model.functions.iter().any(|f| f.module.contains("libc.so")));
    let kernel = |part: &str| model.functions.iter().any(|f| f.kernel && f.name.contains(part) && f.tally.loads > 0);
    assert!(kernel("copy"), "no copy routine of the kernel");
    assert!(kernel("page_fault"), "no page fault of the kernel");
    let heap = model.objects.iter().filter(|o| o.kind == ObjectKind::Heap).map(|o| misses(&o.tally, 1)).max();
    assert!(heap > Some(1000), "sort's buffer is no heap object: {heap:?}");
    assert!(report.contains("sort"), "{report}");
}

#[test]
fn python_runs_on_this_machine_with_its_own_status() {
    let Some(_guest) = for_a_guest() else { return };
    if !Path::new(PYTHON).exists() {
        eprintln!("skipped: {PYTHON} is not installed (apt-get install python3)");
        return;
    }
    let place = TracedRuns::new();
    let (out, _, model) = place.trace(&["--cpus", "2", "--", PYTHON, "-I", "-S", "-c", "print(sum(range(100000)))"]);
    assert_eq!(out, "4999950000\n");
    sums_agree(&model);
    assert!(model.tasks.iter().any(|t| t.of_command && t.comm.starts_with("python")));
    let output =
        place.nearmiss(&["trace", "--cpus", "1", "--quiet", "--", "sh", "-c", "echo out; echo err >&2; exit 7"]);
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(7), "out\n"));
    assert!(text(&output.stderr).starts_with("err\n"));
}

#[test]
fn a_server_and_its_clients_share_a_machine_with_siblings() {
    let Some(_guest) = for_a_guest() else { return };
    if Command::new("redis-server").arg("--version").output().is_err() {
        eprintln!("skipped: redis-server is not installed (apt-get install redis-server)");
        return;
    }
    let place = TracedRuns::new();
    let load = "redis-server --port 7391 --save '' --daemonize yes >log; \
        until redis-cli -p 7391 ping >>log 2>&1; do sleep 0.2; done; \
        i=0; while [ $i -lt 8 ]; do echo set key$i value$i; echo get key$i; i=$((i+1)); done | redis-cli -p 7391; \
        redis-cli -p 7391 shutdown nosave";
    let (out, _, model) = place.trace(&["-m", "xeon-ht-2x2", "--no-trace", "--", "sh", "-c", load]);
    assert_eq!(out.lines().filter(|l| l.starts_with("value")).count(), 8, "{out}");
    sums_agree(&model);
    assert_eq!((model.machine.topology.packages, model.machine.topology.threads_per_core), (2, 2));
    for name in ["redis-server", "redis-cli"] {
        assert!(model.tasks.iter().any(|t| t.of_command && t.comm == name), "no task {name}");
    }
    assert!(model.functions.iter().any(|f| f.kernel && f.name.starts_with("tcp_")), "no TCP");
}

#[test]
fn false_sharing_is_seen_on_its_line_in_both_orders_and_a_healthy_program_has_none() {
    let Some(_guest) = for_a_guest() else { return };
    let place = TracedRuns::new();
    let program = subject("false-sharing");
    let shared = |model: &ModelRecord| -> u64 {
        model.shared_lines.iter().filter(|l| l.object.contains("counters")).map(|l| l.false_sharing).sum()
    };
    let args = ["-m", "pentium-pro-4way-512k", "--cpus", "2", "--", &program, "--times", "1000000"];
    let (_, _, recorded) = place.trace(&args);
    assert!(shared(&recorded) > 0, "no false sharing in the recorded order: {:?}", recorded.shared_lines.first());
    let run = place.run();
    let modelled = place.nearmiss(&["report", run.to_str().expect("text"), "--order", "modelled", "--json"]);
    let modelled: serde_json::Value = serde_json::from_slice(&modelled.stdout).expect("JSON");
    let modelled: ModelRecord = serde_json::from_value(modelled["model"].clone()).expect("a model record");
    // Side by side, nearly every addition takes the line from the other CPU.
    assert!(shared(&modelled) > 100 * shared(&recorded), "{} then {}", shared(&recorded), shared(&modelled));
    assert!(shared(&modelled) > 500_000, "{}", shared(&modelled));

    let mut padded = args.to_vec();
    padded.push("--padded");
    let (_, _, healthy) = place.trace(&padded);
    assert_eq!(shared(&healthy), 0);
}

#[test]
fn a_command_that_cannot_run_is_one_line_and_leaves_no_run() {
    let Some(_guest) = for_a_guest() else { return };
    let place = TracedRuns::new();
    std::fs::write(place.path().join("notes.txt"), "no program\n").expect("written");
    for (args, status, message) in [
        (&["--", "no-such-program-anywhere"][..], 127, "command not found"),
        (&["--", "./notes.txt"], 126, "notes.txt: cannot be executed"),
        (&["-m", "no-such-machine", "--", "true"], 125, "no such machine"),
        (&["--memory", "16MiB", "--", "true"], 125, "needs"),
    ] {
        let output = place.nearmiss(&[&["trace"], args].concat());
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{args:?}: {error}");
        assert!(error.contains(message) && error.lines().count() == 1, "{args:?}: {error}");
    }
    let left = std::fs::read_dir(place.path().join("nearmiss-runs")).map_or(0, Iterator::count);
    assert_eq!(left, 0, "runs were left behind");
}

/// A small file system of its own, unmounted at the end.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount(mebibytes: u32) -> Option<Self> {
        let place = tempfile::tempdir().expect("a temporary directory");
        let size = format!("size={mebibytes}m");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "none"]).arg(place.path()).status();
        mounted.is_ok_and(|s| s.success()).then_some(SmallDisk(place))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn a_disk_that_fills_up_cuts_the_trace_and_keeps_the_run() {
    let Some(_guest) = for_a_guest() else { return };
    let Some(disk) = SmallDisk::mount(20) else {
        eprintln!("skipped: no file system can be mounted (needs root)");
        return;
    };
    let trace = |runs: &Path| {
        let place = TracedRuns::new();
        let runs = runs.to_str().expect("text").to_owned();
        let script = "s=0; for i in $(seq 30000); do s=$((s+i)); done; echo $s";
        place.nearmiss(&["trace", "--cpus", "1", "--runs", &runs, "--no-curve", "--", "sh", "-c", script])
    };
    let output = trace(disk.0.path());
    let stderr = text(&output.stderr);
    assert!(output.status.success() && text(&output.stdout) == "450015000\n", "{stderr}");
    assert!(stderr.contains("the trace is cut") && stderr.contains("No space left"), "{stderr}");
    let run = std::fs::read_dir(disk.0.path()).expect("runs").flatten().next().expect("a run").path();
    let place = TracedRuns::new();
    let valid = place.nearmiss(&["report", run.to_str().expect("text"), "--validate"]);
    assert!(valid.status.success(), "{}", text(&valid.stderr));

    let output = trace(disk.0.path());
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(125), "{error}");
    assert!(error.contains("MiB are free there") && error.lines().count() == 1, "{error}");
}

#[test]
fn two_deterministic_recordings_agree_in_every_class() {
    let Some(_guest) = for_a_guest() else { return };
    let place = TracedRuns::new();
    let input: String = (0..20_000u64).map(|n| format!("{}\n", n * 7_919 % 20_011)).collect();
    std::fs::write(place.path().join("numbers"), input).expect("written");
    // On several CPUs the guest's scheduler may move the task; the other CPU's caches then miss its lines anew.
    let alone = ["--cpus", "1", "--only", "user", "--deterministic", "--no-trace", "--no-curve"];
    let args = [&alone[..], &["--", "sort", "-n", "numbers"]].concat();
    let (_, _, first) = place.trace(&args);
    let (_, _, second) = place.trace(&args);
    let (a, b) = (&first.totals, &second.totals);
    // On a busy host one recording in some hundreds differs by an interrupted function: 4 of 16 M loads, 1 of 9 M stores.
    assert!(a.loads.abs_diff(b.loads) <= 100, "{} and {} loads", a.loads, b.loads);
    assert!(a.stores.abs_diff(b.stores) <= 100, "{} and {} stores", a.stores, b.stores);
    // Those of code that others ran too are split by what was kept of either, and the others never do the same twice.
    assert!(a.instructions.abs_diff(b.instructions) <= 100, "{} and {}", a.instructions, b.instructions);
    // If address spaces are all alike, its code was translated ahead of the window, for another program.
    let loads = |module: &str| -> u64 {
        first.functions.iter().filter(|row| row.module.contains(module)).map(|row| row.tally.loads).sum()
    };
    assert!(loads("/ld-linux") > 10 * loads("[vdso]"), "{} and {}", loads("/ld-linux"), loads("[vdso]"));
    for (level, (a, b)) in a.levels.iter().zip(&b.levels).enumerate() {
        for (a, b) in by_kind(a).into_iter().zip(by_kind(b)) {
            for (class, (a, b)) in a.iter().zip(b).enumerate() {
                assert!(a.abs_diff(*b) <= (a / 1000).max(1000), "level {level}, class {class}: {a} and {b}");
            }
        }
    }
}

fn by_kind(level: &LevelTally) -> [&ByClass; 3] {
    [&level.load_misses, &level.store_misses, &level.fetch_misses]
}

#[test]
fn a_first_level_that_the_tap_runs_misses_what_the_model_s_own_does() {
    let Some(_guest) = for_a_guest() else { return };
    let place = TracedRuns::new();
    let input: String = (0..60_000u64).map(|n| format!("{}\n", n * 7_919 % 60_013)).collect();
    std::fs::write(place.path().join("numbers"), input).expect("written");
    let command = ["--", "sort", "-n", "numbers"];
    let trace = |options: &[&str]| {
        let (.., record) = place.trace(&[options, &command].concat());
        let manifest = std::fs::read(place.run().join("manifest.json")).expect("a manifest");
        (serde_json::from_slice::<Manifest>(&manifest).expect("a manifest"), record)
    };
    let quick =
        ["-m", "xeon-sapphire-rapids", "--cpus", "1", "--only", "user", "--deterministic", "--no-trace", "--no-curve"];
    let (whole, all) = trace(&[&quick[..], &["--one-line-filter"]].concat());
    let (short, filtered) = trace(&quick);
    assert!(whole.filter.first_level.is_none() && short.filter.first_level.is_some(), "{:?}", short.filter);
    assert!(short.records * 3 < whole.records, "{} of {} records", short.records, whole.records);
    let (a, b) = (&all.totals, &filtered.totals);
    assert_eq!((a.loads, a.stores), (b.loads, b.stores));
    // A page that is not mapped yet makes an instruction begin twice; which are depends on what was read ahead.
    assert!(a.instructions.abs_diff(b.instructions) <= 1000, "{} and {} instructions", a.instructions, b.instructions);
    for (level, (a, b)) in a.levels.iter().zip(&b.levels).enumerate() {
        for (a, b) in by_kind(a).into_iter().zip(by_kind(b)) {
            let (a, b) = (a.iter().sum::<u64>(), b.iter().sum::<u64>());
            assert!(a.abs_diff(b) <= (a / 1000).max(200), "level {level}: {a} and {b}");
        }
    }
}

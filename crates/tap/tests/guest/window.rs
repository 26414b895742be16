//! The window inside a command's run: what lies outside is neither sent nor counted, to the last reference.
#![allow(clippy::unwrap_used)]

use crate::engines::under_each_engine;
use crate::sent_code::SentCode;
use crate::support::turn;
use nearmiss_record::reference::{Control, Kind, Usage};
use nearmiss_record::run::Filter;
use nearmiss_tap::guest::{
    CommandStatus, GuestCommand, GuestError, GuestShape, HEAP_SHIM, KernelImage, QemuBinary, WarmUp,
};
use nearmiss_tap::session::{Session, TapConfig, TapError};
use nearmiss_tap::window::Window;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const SWEEP: usize = 16384;
/// Four instructions a store.
const SWEEP_INSTRUCTIONS: u64 = 4 * 16384;

struct WindowTotals {
    /// Stores sent to each area.
    stores: [usize; 4],
    usage: Usage,
    /// Executions by run, of the instruction table.
    executed: u64,
    marks: Vec<u64>,
    maps: usize,
}

fn window(from: Option<&str>, length: Option<&str>, until: Option<&str>) -> Window {
    Window {
        from: from.map(|text| text.parse().unwrap()).unwrap_or_default(),
        length: length.map(|text| text.parse().unwrap()),
        until: until.map(|text| text.parse().unwrap()),
    }
}

/// `None`, and a line with the reason, where this machine cannot.
fn record(window: Window, argument: &str, cpus: u32, only_user: bool) -> Option<Result<WindowTotals, TapError>> {
    record_under(QemuBinary::installed(), window, argument, cpus, only_user)
}

fn record_under(
    qemu: Result<QemuBinary, GuestError>,
    window: Window,
    argument: &str,
    cpus: u32,
    only_user: bool,
) -> Option<Result<WindowTotals, TapError>> {
    let (kernel, qemu) = match (KernelImage::newest(), qemu) {
        (Ok(kernel), Ok(qemu)) => (kernel, qemu),
        (Err(error), _) | (_, Err(error)) => {
            println!("skipped: {error}");
            return None;
        }
    };
    let _turn = turn();
    let scratch = tempfile::tempdir().unwrap();
    let program = scratch.path().join("window");
    let native = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../native");
    let built = Command::new("cc")
        .args(["-std=gnu11", "-O1", "-I"])
        .args([&native.join("include"), Path::new("-o"), &program, &native.join("tap/tests/window.c")])
        .status();
    if !built.is_ok_and(|status| status.success()) {
        println!("skipped: no C compiler");
        return None;
    }
    let mut command = GuestCommand::inherit([program.as_os_str(), argument.as_ref()]).unwrap();
    let (mut reader, writer) = std::io::pipe().unwrap();
    command.streams = [Some(File::open("/dev/null").unwrap().into()), Some(writer.into()), None];
    let session = Session::new(TapConfig {
        shape: GuestShape::flat(cpus),
        memory: vec![256 << 20],
        kernel,
        qemu,
        only_user,
        filter: Filter {
            line_log2: 6,
            index_low: 6,
            index_bits: 0,
            clear_on_slice: false,
            fetches: true,
            contexts: true,
            ..Filter::default()
        },
        heap_shim: Some(HEAP_SHIM.to_vec()),
        icount: None,
        timeout: Some(Duration::from_secs(120)),
        keep: None,
        aslr: false,
        kernel_arguments: Vec::new(),
        warm_up: WarmUp::Files,
        libc_tunables: None,
        saved_boot: true,
    });
    let (mut stores, mut usage, mut marks, mut maps) = (Vec::new(), Usage::default(), Vec::new(), 0);
    let mut code = SentCode::default();
    let recorded = session.unwrap().within(window).letting_it_finish(true).record(command, &mut |_, records| {
        let mut rest = records;
        while let Some((record, behind)) = rest.split_first() {
            rest = behind;
            if record.kind() != Some(Kind::Control) {
                code.reference(*record);
                assert!(record.is_kernel() || record.vaddr() >> 63 == 0, "user mode touches no kernel address");
                if record.kind() == Some(Kind::Store) && !record.is_kernel() {
                    stores.push(record.vaddr());
                }
                continue;
            }
            let (payload, behind) = behind.split_at(record.payload_records().unwrap());
            rest = behind;
            let reported = match Control::decode(*record, payload)? {
                Control::Mark { number, usage } => {
                    marks.push(number);
                    usage
                }
                Control::Switch { usage, .. } => usage,
                Control::Maps(_) => {
                    maps += 1;
                    continue;
                }
                Control::Code(block) => {
                    code.add(&block);
                    continue;
                }
                _ => continue,
            };
            usage.user_instructions += reported.user_instructions;
            usage.kernel_instructions += reported.kernel_instructions;
        }
        Ok(())
    });
    let recorded = match recorded {
        Err(TapError::NoPlugin) => {
            println!("skipped: built without the plugin");
            return None;
        }
        Err(error) => return Some(Err(error)),
        Ok(recorded) => recorded,
    };
    assert_eq!(recorded.cut, None);
    assert_eq!(code.unexplained, 0, "code from before the window is sent too");
    assert_eq!(recorded.exit.status, Some(CommandStatus::Exited(7)), "the command runs to its end");
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    let mut counts = [0; 4];
    for (area, line) in text.lines().enumerate() {
        let address = u64::from_str_radix(line.split_once(" 0x").unwrap().1, 16).unwrap();
        counts[area] = stores.iter().filter(|at| (address..address + (1 << 20)).contains(at)).count();
    }
    let executed = recorded.side.insns.iter().map(|i| u64::from(i.run) * i.executions).sum();
    Some(Ok(WindowTotals { stores: counts, usage, executed, marks, maps }))
}

#[test]
fn between_two_marks_every_reference_is_seen_and_none_outside() {
    let Some(seen) = record(window(Some("mark:1"), None, Some("mark:2")), "", 1, true) else { return };
    let seen = seen.unwrap();
    assert_eq!(seen.stores, [0, SWEEP, SWEEP, 0]);
    assert_eq!(seen.marks, [1, 17, 18, 2]);
    let instructions = seen.usage.user_instructions;
    let two_sweeps = 2 * SWEEP_INSTRUCTIONS;
    assert!((two_sweeps..two_sweeps + 1000).contains(&instructions), "{instructions}");
    assert_eq!(seen.usage.kernel_instructions, 0);
    assert_eq!(seen.executed, instructions);
    assert!(seen.maps > 0, "the maps made before the window are sent");
}

#[test]
fn the_whole_machine_is_seen_within_the_window_only() {
    let Some(seen) = record(window(Some("mark:1"), None, Some("mark:2")), "", 2, false) else { return };
    let seen = seen.unwrap();
    assert_eq!(seen.stores, [0, SWEEP, SWEEP, 0]);
    assert_eq!(seen.executed, seen.usage.user_instructions + seen.usage.kernel_instructions);
}

#[test]
fn every_engine_keeps_to_the_window_on_two_cpus() {
    under_each_engine(windows_on_two_cpus);
}

fn windows_on_two_cpus(qemu: QemuBinary) {
    let marks = window(Some("mark:1"), None, Some("mark:2"));
    let Some(seen) = record_under(Ok(qemu.clone()), marks, "", 2, true) else { return };
    let seen = seen.unwrap();
    assert_eq!(seen.stores, [0, SWEEP, SWEEP, 0]);
    assert_eq!(seen.executed, seen.usage.user_instructions);

    let work = window(Some("symbol:work"), Some("20kinsn"), None);
    let Some(seen) = record_under(Ok(qemu), work, "", 2, true) else { return };
    let seen = seen.unwrap();
    assert!((20_000..20_064).contains(&seen.usage.user_instructions), "{}", seen.usage.user_instructions);
    assert!((4980..=5000).contains(&seen.stores[2]), "{:?}", seen.stores);
}

#[test]
fn one_mark_opens_and_closes_one_turn() {
    let Some(seen) = record(window(Some("mark:1"), None, Some("mark:1")), "", 1, true) else { return };
    let seen = seen.unwrap();
    assert_eq!(seen.stores, [0, SWEEP, SWEEP, SWEEP]);
    assert_eq!(seen.marks, [1, 17, 18, 17, 2]);
}

#[test]
fn a_number_of_instructions_closes_it_within_one_line_of_code() {
    let Some(seen) = record(window(Some("mark:1"), Some("20kinsn"), None), "", 1, true) else { return };
    let seen = seen.unwrap();
    let instructions = seen.usage.user_instructions;
    assert!((20_000..20_064).contains(&instructions), "{instructions}");
    assert_eq!(seen.executed, instructions);
    // `sleep(0)` comes behind the mark's sweep; a few instructions lead to its first store.
    assert!((4980..=5016).contains(&seen.stores[1]), "{:?}", seen.stores);
    assert_eq!([seen.stores[0], seen.stores[2], seen.stores[3]], [0; 3]);
}

#[test]
fn a_mark_closes_the_window_that_opened_with_the_command() {
    let Some(seen) = record(window(None, None, Some("mark:1")), "", 1, true) else { return };
    // Each line of the first area: once by memset, with stores of wide registers that the filter joins, and once by the
    // sweep.
    let seen = seen.unwrap();
    assert!(seen.stores[0] >= SWEEP, "{:?}", seen.stores);
    assert_eq!(seen.marks, [1, 17, 2]);
}

#[test]
fn the_first_call_of_a_function_opens_it() {
    for from in ["symbol:work", "symbol:work@window"] {
        let Some(seen) = record(window(Some(from), None, Some("mark:1")), "", 1, true) else { return };
        let seen = seen.unwrap();
        assert_eq!(seen.stores, [0, 0, SWEEP, SWEEP], "{from}");
        let two_sweeps = 2 * SWEEP_INSTRUCTIONS;
        let instructions = seen.usage.user_instructions;
        assert!((two_sweeps..two_sweeps + 100).contains(&instructions), "{from}: {instructions}");
    }
}

/// Programs that the guest starts ahead of the command call it too.
#[test]
fn a_function_that_was_called_before_the_command_opens_it_at_the_command_s_call() {
    for only_user in [true, false] {
        let Some(seen) = record(window(Some("symbol:exit"), None, None), "", 1, only_user) else { return };
        let seen = seen.unwrap();
        assert_eq!((seen.stores, seen.marks), ([0; 4], vec![1, 17, 18, 17, 2]));
        assert!((1000..100_000).contains(&seen.usage.user_instructions), "{}", seen.usage.user_instructions);
    }
}

#[test]
fn a_time_opens_it_and_a_time_closes_it() {
    let Some(seen) = record(window(Some("time:1500ms"), Some("3s"), None), "sleep", 1, true) else { return };
    assert_eq!(seen.unwrap().stores, [0, SWEEP, 0, 0]);
}

#[test]
fn a_window_that_never_opened_is_an_error_with_its_reason() {
    for (from, why) in [
        ("mark:9", "mark 9: it was never reached"),
        ("symbol:nowhere_at_all", "function nowhere_at_all: no program or library that the command ran defines it"),
    ] {
        let Some(seen) = record(window(Some(from), None, None), "", 1, true) else { return };
        let error = seen.err().unwrap().to_string();
        assert_eq!(error, format!("the window never opened: {why}"));
    }
}

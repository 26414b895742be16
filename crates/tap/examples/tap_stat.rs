//! Records a command and prints how many records of each kind came: `tap_stat [--only-user] [--cpus N] -- COMMAND...`

use nearmiss_record::reference::Kind;
use nearmiss_record::run::Filter;
use nearmiss_tap::guest::{GuestCommand, GuestShape, KernelImage, QemuBinary, WarmUp};
use nearmiss_tap::session::{Session, TapConfig};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (mut only_user, mut cpus, mut bits, mut contexts) = (false, 1, 6, true);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--" => break,
            "--only-user" => only_user = true,
            "--one-line" => bits = 0,
            "--flat" => contexts = false,
            "--cpus" => cpus = arguments.next().ok_or("--cpus N")?.parse()?,
            other => return Err(format!("{other}: not an option").into()),
        }
    }
    let session = Session::new(TapConfig {
        shape: GuestShape::flat(cpus),
        memory: vec![1 << 30],
        kernel: KernelImage::newest()?,
        qemu: QemuBinary::installed()?,
        only_user,
        filter: Filter { line_log2: 6, index_low: 6, index_bits: bits, fetches: true, contexts, ..Filter::default() },
        heap_shim: None,
        icount: None,
        timeout: None,
        keep: None,
        aslr: false,
        kernel_arguments: Vec::new(),
        warm_up: WarmUp::Nothing,
        libc_tunables: None,
        saved_boot: true,
    })?;
    let mut kinds = [0u64; 16];
    let recorded = session.record(GuestCommand::inherit(arguments)?, &mut |_, records| {
        for record in records {
            kinds[record.kind().unwrap_or(Kind::Control) as usize] += 1;
        }
        Ok(())
    })?;
    let side = &recorded.side;
    let dropped: u64 = side.insns.iter().map(|i| i.load_hits + i.store_hits + i.cont_hits).sum();
    let instructions: u64 = side.insns.iter().map(|i| i.executions * u64::from(i.run)).sum();
    eprintln!(
        "loads {} stores {} atomics {} nt {} fetches {} control {}; dropped {dropped}; instructions {instructions}; insns {} contexts {}",
        kinds[0],
        kinds[1],
        kinds[2],
        kinds[3],
        kinds[4],
        kinds[15],
        side.insns.len(),
        side.contexts.len()
    );
    let accesses = dropped + kinds[..4].iter().sum::<u64>();
    eprintln!(
        "{:.1} M accesses/s; boot {:?} window {:?}; {:?} {:?} {:?}",
        accesses as f64 / recorded.window.as_secs_f64() / 1e6,
        recorded.boot,
        recorded.window,
        recorded.exit.reason,
        recorded.cut,
        recorded.notes
    );
    Ok(())
}

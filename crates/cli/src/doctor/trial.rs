//! A trace of `true` as the calling user: it shows what no look at its parts can promise.

use crate::progress::progress;
use anyhow::{Context, bail};
use nearmiss_machine::describe;
use nearmiss_tap::guest::{CommandStatus, GuestCommand, GuestShape, HEAP_SHIM, KernelImage, QemuBinary, WarmUp};
use nearmiss_tap::session::{Session, TapConfig};
use std::fs::File;
use std::time::{Duration, Instant};

/// One CPU and this much memory serve `true`.
const MEMORY: u64 = 512 << 20;
const LIMIT: Duration = Duration::from_secs(30);

/// Returns the cost of the trace, *measured*. Errors: the reason of the failure.
pub fn trace_true() -> anyhow::Result<String> {
    progress("tracing `true` in a guest");
    let started = Instant::now();
    let mut command = GuestCommand::inherit(["true"])?;
    let null = || File::options().read(true).write(true).open("/dev/null").context("/dev/null");
    command.streams = [Some(null()?.into()), Some(null()?.into()), Some(null()?.into())];
    let recorded = Session::new(config()?)?.record(command, &mut |_, _| Ok(()))?;
    if recorded.exit.status != Some(CommandStatus::Exited(0)) {
        bail!("`true` did not end well in the guest: {}", recorded.cut.unwrap_or_default());
    }
    let seconds = |time: Duration| time.as_secs_f64();
    Ok(format!("in {:.1} s, of them {:.1} s to boot (measured)", seconds(started.elapsed()), seconds(recorded.boot)))
}

fn config() -> anyhow::Result<TapConfig> {
    let machine = describe::cut(&nearmiss_host::host(nearmiss_host::Latencies::Assumed)?, 1);
    Ok(TapConfig {
        shape: GuestShape::flat(1),
        memory: vec![MEMORY],
        kernel: KernelImage::newest()?,
        qemu: QemuBinary::installed()?,
        only_user: false,
        filter: describe::filter_for(&machine),
        heap_shim: Some(HEAP_SHIM.to_vec()),
        icount: None,
        timeout: Some(LIMIT),
        keep: None,
        aslr: true,
        kernel_arguments: Vec::new(),
        warm_up: WarmUp::Nothing,
        libc_tunables: None,
        saved_boot: true,
    })
}

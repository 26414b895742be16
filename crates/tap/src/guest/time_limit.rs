//! Limits of a guest's time: of its boot, of the start of its command, and of the command.

use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::exit::ExitReason;
use super::messages::send_order;
use super::supervision::Supervision;

/// Limit of a boot. It takes two seconds; a machine with much else to do gets more, before the guest counts as stuck.
const LONGEST_BOOT: Duration = Duration::from_secs(180);
/// The agent answers within milliseconds, if the guest still does anything.
const LONGEST_ANSWER: Duration = Duration::from_secs(3);

/// Does something to a guest that is still there after a time.
fn after(limit: Duration, supervision: &Arc<Supervision>, what: impl FnOnce(&Supervision) + Send + 'static) {
    let supervision = Arc::downgrade(supervision);
    thread::spawn(move || {
        thread::sleep(limit);
        if let Some(supervision) = supervision.upgrade() {
            what(&supervision);
        }
    });
}

/// Ends a guest that does not boot.
pub(super) fn of_boot(supervision: &Arc<Supervision>) {
    after(LONGEST_BOOT, supervision, |supervision| {
        if !supervision.is_ready() {
            let why = format!("the guest was not ready after {} s", LONGEST_BOOT.as_secs());
            supervision.end(ExitReason::Failed(why));
        }
    });
}

/// Ends a guest that has booted and does not come to its command, to which a run ahead of this length belongs.
pub(super) fn of_start(run_ahead: Duration, supervision: &Arc<Supervision>) {
    let limit = LONGEST_BOOT.saturating_add(run_ahead);
    after(limit, supervision, move |supervision| {
        if !supervision.has_begun() {
            let why = format!("the guest did not start the command within {} s", limit.as_secs());
            supervision.end(ExitReason::Failed(why));
        }
    });
}

/// Ends a guest if its command has begun and takes longer than this. The agent first gets a request for the command's
/// waits; the guest ends with the answer, or without one.
pub(super) fn of_command(limit: Duration, supervision: &Arc<Supervision>, mut control: UnixStream) {
    after(limit, supervision, move |supervision| {
        supervision.request_waits();
        if send_order(&mut control, "waits").is_ok() {
            supervision.wait_for_end(LONGEST_ANSWER);
        }
        supervision.end(ExitReason::TimedOut);
    });
}

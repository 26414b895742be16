//! Looks after the origins from a thread of its own.

use crate::PROGRAM;
use crate::shared::Shared;
use nearmiss_usage::report;
use std::sync::Arc;
use std::time::Duration;

/// Starts the thread, which ends with the process.
pub fn start(shared: &Arc<Shared>) -> std::io::Result<()> {
    let shared = Arc::clone(shared);
    std::thread::Builder::new().name("health".to_owned()).spawn(move || look_after(&shared))?;
    Ok(())
}

fn look_after(shared: &Shared) -> ! {
    loop {
        let live = shared.live();
        let timeouts = &live.config.timeouts;
        for server in live.origins.all() {
            let well = server.look(timeouts.connect);
            if server.found(well) {
                let state = if well { "well again" } else { "not well" };
                report(PROGRAM, format_args!("origin {}: {state}", server.config.address));
            }
        }
        std::thread::sleep(timeouts.health.max(Duration::from_millis(50)));
    }
}

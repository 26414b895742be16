//! Time of a traced run ahead of its window, and in all; all measured.

use crate::number::{counted, duration};
use nearmiss_record::run::{Manifest, Warm};
use nearmiss_record::words::bytes;

/// `2.60 s to boot, 260.0 ms to warm (3 files, 2.1 MiB), 1.20 s ahead of the window, 5.20 s in all`.
pub(crate) fn before_the_window(manifest: &Manifest) -> String {
    let (warmed, warm_ns) = match &manifest.warm {
        Some(warm) => (format!(", {} to warm ({})", duration(warm.time_ns), warming(warm)), warm.time_ns),
        None => (String::new(), 0),
    };
    let ahead = match manifest.ahead_ns {
        0 => String::new(),
        ns => format!(", {} ahead of the window", duration(ns)),
    };
    let parts = [manifest.boot_ns, warm_ns, manifest.ahead_ns, manifest.window_ns];
    let whole = parts.into_iter().fold(0, u64::saturating_add);
    format!("{} to boot{warmed}{ahead}, {} in all", duration(manifest.boot_ns), duration(whole))
}

fn warming(warm: &Warm) -> String {
    let more = if warm.cut { " and not all" } else { "" };
    let files = format!("{}, {}{more}", counted(warm.files, "file"), bytes(warm.bytes));
    let Some(run) = &warm.run else { return files };
    let end = match (run.cut, run.exit_status, run.signal) {
        (true, ..) => "cut short".to_owned(),
        (_, Some(status), _) => format!("exit status {status}"),
        (_, _, Some(signal)) => format!("killed by signal {signal}"),
        _ => "failed".to_owned(),
    };
    format!("{files}; a whole run, {}, {end}", duration(run.time_ns))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearmiss_record::run::WarmRun;

    fn of(warm: Option<Warm>) -> String {
        let (boot_ns, window_ns) = (2_600_000_000, 2_340_000_000);
        before_the_window(&Manifest { boot_ns, window_ns, warm, ..Manifest::default() })
    }

    #[test]
    fn boot_warming_and_window_add_up() {
        assert_eq!(of(None), "2.60 s to boot, 4.94 s in all");
        let (boot_ns, ahead_ns, window_ns) = (2_600_000_000, 1_200_000_000, 2_340_000_000);
        let late = Manifest { boot_ns, ahead_ns, window_ns, ..Manifest::default() };
        assert_eq!(before_the_window(&late), "2.60 s to boot, 1.20 s ahead of the window, 6.14 s in all");
        let files = Warm { time_ns: 260_000_000, files: 3, bytes: 2_176_896, ..Warm::default() };
        let text = "2.60 s to boot, 260.0 ms to warm (3 files, 2.1 MiB), 5.20 s in all";
        assert_eq!(of(Some(files.clone())), text);
        let run = WarmRun { time_ns: 1_060_000_000, exit_status: Some(3), ..WarmRun::default() };
        let text = "2.60 s to boot, 1.32 s to warm (3 files, 2.1 MiB and not all; a whole run, 1.06 s, exit status 3), \
                    6.26 s in all";
        assert_eq!(of(Some(Warm { time_ns: 1_320_000_000, cut: true, run: Some(run), ..files })), text);
    }
}

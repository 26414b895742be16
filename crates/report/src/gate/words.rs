//! Figures, changes and causes of a gate in words.

use crate::levels::class_name;
use crate::name::plain;
use crate::number::{counted, grouped, scaled};
use nearmiss_record::gate::{Cause, GateRecord, JudgedFigure, PartKind, Ruling};

/// Below this a change has three digits after the point, and below the next it is a number of events.
const SMALL: f64 = 0.000_95;
const TINY: f64 = 0.000_005;
/// From here on one digit is enough.
const LARGE: f64 = 0.1;
/// A mean below this has a digit after the point.
const FINE: u64 = 10_000;
/// A share of fewer events means nothing.
const FEW: f64 = 100.0;

/// Whether a table shows the figure: of single system calls only those that differ.
pub fn is_shown(figure: &JudgedFigure) -> bool {
    !figure.name.starts_with("syscalls.") || figure.ruling != Ruling::NoDifference
}

/// The part of a table that the figure stands in.
pub fn section(figure: &JudgedFigure) -> &'static str {
    match figure.name.split('.').next() {
        Some("user") => "User mode",
        Some("kernel") => "Kernel, for the command",
        _ => "Calls, faults, switches and walks",
    }
}

/// Returns a figure's name for a line of a table.
pub fn title(name: &str) -> String {
    let what = name.strip_prefix("user.").or_else(|| name.strip_prefix("kernel.")).unwrap_or(name);
    if let Some(level) = what.strip_prefix('l').filter(|level| level.parse::<u8>().is_ok()) {
        return format!("L{level} misses");
    }
    match what {
        "coherence" => "lines from other CPUs".to_owned(),
        "walks" => "page walks".to_owned(),
        "syscalls" => "system calls".to_owned(),
        "faults" => "page faults".to_owned(),
        "switches" => "context switches".to_owned(),
        what => plain(what.strip_prefix("syscalls.").unwrap_or(what)),
    }
}

/// Returns a figure's name for a sentence.
pub fn whole_title(name: &str) -> String {
    match name.split('.').next() {
        Some("user") => format!("{} of user mode", title(name)),
        Some("kernel") => format!("{} of the kernel", title(name)),
        _ if name.starts_with("syscalls.") => format!("calls of `{}`", title(name)),
        _ => title(name),
    }
}

/// `58,210,633`: a mean of counts, with a digit after the point where it is small and no whole number.
pub fn mean(value: f64) -> String {
    let tenths = (value * 10.0).round().max(0.0) as u64;
    match (tenths / 10, tenths % 10) {
        (whole, tenth) if tenth > 0 && whole < FINE => format!("{}.{tenth}", grouped(whole)),
        _ => grouped(value.round().max(0.0) as u64),
    }
}

/// `+1.00%`, or `+4` where little is counted or differs; `0` where nothing does.
pub fn change(figure: &JudgedFigure) -> String {
    let sign = if figure.difference < 0.0 { '-' } else { '+' };
    match figure.difference.abs() {
        0.0 => "0".to_owned(),
        size => format!("{sign}{}", share_or_count(size, figure.old)),
    }
}

/// `±0.26%`, or `exact` where every recording counted the same.
pub fn noise(figure: &JudgedFigure) -> String {
    if figure.noise == 0.0 { "exact".to_owned() } else { format!("±{}", share_or_count(figure.noise, figure.old)) }
}

fn share_or_count(size: f64, of: f64) -> String {
    let share = size / of;
    match share {
        share if of < FEW || size < 1.0 || share < TINY => short(size),
        share if share < SMALL => format!("{:.3}%", share * 100.0),
        share if share < LARGE => format!("{:.2}%", share * 100.0),
        share => format!("{:.1}%", share * 100.0),
    }
}

/// A number with one digit after the point where it is small and no whole one.
fn short(number: f64) -> String {
    if number >= FEW { grouped(number.round() as u64) } else { mean(number) }
}

/// Words for a ruling.
pub fn ruling(figure: &JudgedFigure) -> String {
    match figure.ruling {
        Ruling::NoDifference => "no difference".to_owned(),
        Ruling::Better => "better".to_owned(),
        Ruling::Within => format!("within {}", figure.limit),
        Ruling::Beyond => format!("WORSE, limit {}", figure.limit),
        Ruling::Unclear => format!("unclear, limit {}", figure.limit),
    }
}

/// The verdict in one line.
pub fn headline(record: &GateRecord) -> String {
    let mut beyond: Vec<&JudgedFigure> = beyond(record).collect();
    let calls = beyond.iter().filter(|figure| figure.name.starts_with("syscalls.")).count();
    beyond.sort_by_key(|figure| remoteness(&figure.name, calls));
    let Some(first) = beyond.first() else {
        let differ = record.figures.iter().filter(|it| matches!(it.ruling, Ruling::Within | Ruling::Unclear)).count();
        return match differ {
            0 => "passed: no figure is worse".to_owned(),
            1 => "passed: one figure is worse, and not beyond its limit for certain".to_owned(),
            n => format!("passed: {n} figures are worse, and none beyond its limit for certain"),
        };
    };
    let more = match beyond.len() - 1 {
        0 => String::new(),
        1 => ", and one more figure beyond its limit".to_owned(),
        n => format!(", and {n} more figures beyond theirs"),
    };
    format!("failed: {} {} (limit {}){more}", whole_title(&first.name), change(first), first.limit)
}

/// A figure's distance from what the program's text shows: user mode, then its calls (a single one by its name), then what
/// the kernel does for them.
fn remoteness(name: &str, calls: usize) -> u8 {
    match name.split('.').next() {
        Some("user") => 0,
        Some("syscalls") => u8::from(name.contains('.') != (calls == 1)) + 1,
        Some("kernel") => 4,
        _ => 3,
    }
}

/// The figures beyond their limits.
pub fn beyond(record: &GateRecord) -> impl Iterator<Item = &JudgedFigure> {
    record.figures.iter().filter(|figure| figure.ruling == Ruling::Beyond)
}

/// `Modelled on zen4-genoa with 2 CPUs, Linux 6.1.0 under QEMU 7.2`
pub fn recorder(record: &GateRecord) -> String {
    let it = &record.recorder;
    format!(
        "Modelled on {} with {}, Linux {} under {}",
        plain(&it.machine),
        counted(it.cpus.into(), "CPU"),
        plain(&it.kernel),
        plain(&it.emulator)
    )
}

/// `` `grow` (table) +36 k, 94%: conflict +35 k; table.c:41, called from `insert`, 12,000 calls more ``
pub fn cause(cause: &Cause, figure: &JudgedFigure) -> String {
    let by = cause.difference().unsigned_abs();
    let share = by as f64 / figure.difference.max(1.0);
    let mut text = format!("`{}`", plain(&cause.name));
    if cause.kind != PartKind::SystemCall && !cause.module.is_empty() {
        text.push_str(&format!(" ({})", plain(&cause.module)));
    }
    text.push_str(&format!(" +{}", scaled(by)));
    if cause.old == 0 {
        text.push_str(", new");
    }
    if share < 0.995 {
        text.push_str(&format!(", {:.0}% of it", share * 100.0));
    }
    if let Some((class, more)) = &cause.class {
        text.push_str(&format!(", {} +{}", class_name(*class), scaled(more.unsigned_abs())));
    }
    // A system call's place is its caller's, a function's is in the function.
    let whence = match cause.kind {
        PartKind::SystemCall => [called(cause), place(cause)],
        _ => [place(cause), called(cause)],
    };
    let details: Vec<String> = whence.into_iter().chain([calls(cause)]).flatten().collect();
    if details.is_empty() { text } else { format!("{text}: {}", details.join(", ")) }
}

fn called(cause: &Cause) -> Option<String> {
    (!cause.caller.is_empty()).then(|| format!("called from `{}`", plain(&cause.caller)))
}

/// `table.c:41`, where it is known.
pub fn place(cause: &Cause) -> Option<String> {
    let file = cause.file.rsplit('/').next().unwrap_or_default();
    (cause.line != 0 && !file.is_empty()).then(|| format!("{}:{}", plain(file), cause.line))
}

fn calls(cause: &Cause) -> Option<String> {
    let (old, new) = cause.calls;
    match (old, new) {
        _ if old == new => None,
        (0, new) => Some(counted(new, "call")),
        (old, new) if new > old => Some(format!("{} more", counted(new - old, "call"))),
        (old, new) => Some(format!("{} fewer", counted(old - new, "call"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearmiss_record::gate::Limit;

    #[test]
    fn what_the_text_shows_is_nearest() {
        let first = |names: &[&str]| {
            let calls = names.iter().filter(|name| name.starts_with("syscalls.")).count();
            names.iter().min_by_key(|name| remoteness(name, calls)).map(|name| (*name).to_owned())
        };
        assert_eq!(first(&["kernel.l1", "syscalls", "syscalls.write"]).as_deref(), Some("syscalls.write"));
        assert_eq!(first(&["kernel.l1", "syscalls", "syscalls.read", "syscalls.write"]).as_deref(), Some("syscalls"));
        assert_eq!(first(&["kernel.l1", "faults"]).as_deref(), Some("faults"));
        assert_eq!(first(&["user.l2", "syscalls", "syscalls.write"]).as_deref(), Some("user.l2"));
    }

    #[test]
    fn changes_are_as_fine_as_they_are_large() {
        let figure = |old: f64, difference: f64, noise: f64| {
            let (limit, ruling) = (Limit::Share(0.02), Ruling::NoDifference);
            let figure = JudgedFigure {
                name: "user.l1".into(),
                old,
                new: old + difference,
                difference,
                noise,
                limit,
                ruling,
                causes: vec![],
            };
            format!("{} {}", change(&figure), noise_of(&figure))
        };
        fn noise_of(figure: &JudgedFigure) -> String {
            noise(figure)
        }
        assert_eq!(figure(1e6, 0.0, 0.0), "0 exact");
        assert_eq!(figure(1e6, -41_234.0, 2600.0), "-4.12% ±0.26%");
        assert_eq!(figure(1e6, 412_340.0, 26.0), "+41.2% ±0.003%");
        assert_eq!(figure(1e8, 1.0, 2.5), "+1 ±2.5");
        assert_eq!(figure(40.0, 3.0, 0.71), "+3 ±0.7");
        assert_eq!(figure(0.0, 1234.0, 120.4), "+1,234 ±120");
        assert_eq!(figure(1073.0, 0.2, 0.9), "+0.2 ±0.9");
        assert_eq!([mean(1073.2), mean(1073.0), mean(73_000.2)], ["1,073.2", "1,073", "73,000"]);
    }
}

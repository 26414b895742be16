//! Machine files: TOML with errors that point at a line.

use super::check::check;
use super::problem::{Problem, Step};
use super::{DescribeError, figures};
use nearmiss_record::machine::Machine;
use nearmiss_record::units::Bytes;
use std::ops::Range;
use toml::de::{DeTable, DeValue};

/// Reads the text of a machine file; `file` is its name in errors.
pub fn parse(file: &str, text: &str) -> Result<Machine, DescribeError> {
    let invalid = |span: Option<Range<usize>>, message: String| DescribeError::Invalid {
        file: file.to_owned(),
        line: line_of(text, span.map_or(0, |s| s.start)),
        message: message.lines().collect::<Vec<_>>().join(" "),
    };
    let machine: Machine = toml::from_str(text).map_err(|e| invalid(e.span(), e.message().to_owned()))?;
    let problem = match check(&machine).and_then(|()| hides_something(text, &machine)) {
        Err(problem) => problem,
        Ok(()) => match figures::stray_source(&machine) {
            None => return Ok(machine),
            Some(key) => Problem::new(
                [Step::Key("sources"), Step::Owned(key.clone())],
                format!("source of `{key}`, which is no figure of this machine"),
                "a figure such as `clock_mhz`, `cache.L2`, `latency.memory_local` or `bus`",
            ),
        },
    };
    Err(invalid(span_of(text, &problem.path), problem.to_string()))
}

/// Checks that a file specifies what hides a miss, even if nothing does: without that line every miss would cost the
/// same.
fn hides_something(text: &str, machine: &Machine) -> Result<(), Problem> {
    let named = DeTable::parse(text).is_ok_and(|table| table.get_ref().contains_key("overlap"));
    if named || machine.core.is_some() {
        return Ok(());
    }
    Err(Problem::new(
        [Step::Key("name")],
        "neither a [core] nor an overlap",
        "one of the two (overlap = 0 hides nothing)",
    ))
}

/// Writes a machine as a machine file: sizes with their units, everything else as it is.
pub fn render(machine: &Machine) -> Result<String, toml::ser::Error> {
    let mut value = toml::Value::try_from(machine)?;
    if let Some(memory) = value.get_mut("memory") {
        name_sizes(memory);
    }
    for cache in value.get_mut("cache").and_then(toml::Value::as_array_mut).into_iter().flatten() {
        name_sizes(cache);
    }
    if let Some(streams) = value.get_mut("streams") {
        name_sizes(streams);
    }
    if let (true, Some(table)) = (machine.core.is_some(), value.as_table_mut()) {
        table.remove("overlap");
    }
    toml::to_string_pretty(&value)
}

fn name_sizes(table: &mut toml::Value) {
    for key in ["size", "line", "page_size", "within"] {
        if let Some(value) = table.get_mut(key)
            && let Some(bytes) = value.as_integer().and_then(|n| u64::try_from(n).ok())
        {
            *value = toml::Value::String(Bytes(bytes).to_string());
        }
    }
}

fn line_of(text: &str, offset: usize) -> usize {
    1 + text.as_bytes().iter().take(offset).filter(|&&b| b == b'\n').count()
}

/// Returns the place of a figure in the text; for a missing one, the table that should hold it.
fn span_of(text: &str, path: &[Step]) -> Option<Range<usize>> {
    let root = DeTable::parse(text).ok()?;
    let mut span = None;
    let mut table = Some(root.get_ref());
    let mut value: Option<&DeValue<'_>> = None;
    for step in path {
        let found = match step {
            Step::Index(i) => value.and_then(|v| v.get(*i)),
            Step::Key(_) | Step::Owned(_) => {
                let key = step.key();
                table.or_else(|| value.and_then(DeValue::as_table)).and_then(|t| t.get(key))
            }
        };
        let Some(found) = found else { break };
        // A table array's own span begins at its first header; an element's or a value's is its own.
        span = Some(found.span());
        value = Some(found.get_ref());
        table = None;
    }
    span
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::describe::presets::preset;

    const GOOD: &str = include_str!("../../tests/machines/with-core.toml");

    /// The one-line error of the good machine with one line replaced.
    fn error_of(from: &str, to: &str) -> String {
        assert!(GOOD.contains(from), "the fixture has no `{from}`");
        let text = GOOD.replacen(from, to, 1);
        let message = parse("m.toml", &text).expect_err("this must be refused").to_string();
        assert_eq!(message.lines().count(), 1, "{message}");
        let line: usize = message.split(':').nth(1).and_then(|n| n.parse().ok()).expect("a line number");
        let shown = text.lines().nth(line - 1).unwrap_or_default();
        format!("{} | {shown}", message.splitn(3, ':').nth(2).unwrap_or_default().trim())
    }

    #[test]
    fn every_mistake_names_its_line_and_what_was_expected() {
        let cases = [
            ("size = \"64 KiB\"", "size = \"96 KiB\"", "384 sets is no power of two", "size = \"96 KiB\""),
            ("size = \"64 KiB\"", "size = \"64100\"", "do not divide", "64100"),
            ("size = \"64 KiB\"", "size = \"64 parsecs\"", "unknown unit `parsecs`", "parsecs"),
            ("ways = 4", "ways = 0", "expected 1 to", "ways = 0"),
            ("line = \"64 B\"", "line = \"48 B\"", "power of two", "line = \"48 B\""),
            ("clock_mhz = ", "clock_ghz = 3\nclock_mhz = ", "unknown field `clock_ghz`", "clock_ghz"),
            ("replacement = \"tree-plru\"", "replacement = \"plru\"", "unknown variant `plru`", "replacement"),
            ("level_cycles = [4, 11, ", "level_cycles = [4, ", "expected 3", "level_cycles"),
            ("clock_mhz = ", "overlap = 3\nclock_mhz = ", "expected 0 to 1", "overlap"),
            ("clock_mhz = ", "overlap = 0.6\nclock_mhz = ", "beside a [core]", "overlap = 0.6"),
            ("[core]", "[[core]]", "", "[[core]]"),
            ("window_instructions = 128", "window_instructions = 0", "expected 1 to", "window_instructions"),
            ("fill_buffers = ", "fill_buffers = 999", "expected 1 to 1024", "fill_buffers"),
            ("store_buffer = ", "store_buffer = 0 #", "expected 1 to", "store_buffer"),
            ("width = ", "width = 0 #", "expected 1 to", "width"),
            ("forwarding_cycles = ", "forwarding_cycles = 9999", "expected 0 to", "forwarding_cycles"),
            (
                "forwarding_cycles = ",
                "second_level = { banks = 3, bank_cycles = 1, written_line_cycles = 1, written_bank_cycles = 1 }\nforwarding_cycles = ",
                "a power of two up to 64",
                "banks = 3",
            ),
            ("mispredict_cycles = ", "mispredict_cycles = 99", "expected 0 to", "mispredict_cycles"),
            ("followed = ", "followed = 0 #", "expected 1 to", "followed"),
            ("trained_by = ", "trained_by = 0 #", "expected 1 to", "trained_by"),
            ("longest_stride_lines = ", "longest_stride_lines = 0 #", "expected 1 to", "longest_stride_lines"),
            ("within = \"4 KiB\"", "within = \"3 KiB\"", "a power of two", "within"),
            ("line_cycles = [2.0, ", "line_cycles = [", "2 figures for 3 places", "line_cycles"),
            (
                "line_cycles = [2.0, ",
                "apart_line_cycles = [1.0]\nline_cycles = [2.0, ",
                "1 figures for 3 places",
                "apart_line_cycles",
            ),
            ("trained_by = ", "region = { lines = 16, wait_cycles = 0 }\ntrained_by = ", "expected 1 to 15", "region"),
            (
                "trained_by = ",
                "region = { lines = 4, wait_cycles = 20000 }\ntrained_by = ",
                "expected 0 to 10000",
                "region",
            ),
            ("line_cycles = [2.0, ", "line_cycles = [nan, ", "line_cycles is NaN; expected 0 to 11", "nan"),
            ("line_cycles = [2.0, ", "line_cycles = [12.0, ", "line_cycles is 12; expected 0 to 11", "12.0"),
            ("entries = 48", "entries = 0", "expected 1 to", "entries = 0"),
            ("entries = 48", "entries = 48\nways = 5", "do not divide 48", "ways = 5"),
            ("entries = 1280", "entries = 20", "expected 48 to", "entries = 20"),
            ("ways = 5", "ways = 7", "7 ways do not divide 1280", "ways = 7"),
            ("\nwalk_cycles = ", "\nwalk_cycles = 9999", "expected 0 to", "walk_cycles"),
            ("nodes = 1", "nodes = 3", "nodes", "nodes = 3"),
            ("level = 2", "level = 5", "level", "level = 5"),
            ("memory_local_cycles = ", "memory_local_cycles = 1 #", "memory", "memory_local_cycles"),
            ("[sources]", "[sources]\n\"cache.L9\" = \"x\"", "no figure", "cache.L9"),
            ("[bus]", "[bus", "", "[bus"),
        ];
        for (from, to, message, line) in cases {
            let error = error_of(from, to);
            let (first_line, shown) = error.split_once(" | ").expect("two parts");
            assert!(first_line.contains(message), "{to}: {error}");
            assert!(shown.contains(line), "{to}: {error}");
        }
    }

    #[test]
    fn a_file_specifies_what_hides_a_miss() {
        let old = include_str!("../../machines/xeon-ht-2x2.toml");
        let error = parse("m.toml", &old.replacen("overlap = 0.4\n", "", 1)).expect_err("nothing hides a miss");
        assert_eq!(
            error.to_string(),
            "m.toml:2: neither a [core] nor an overlap; expected one of the two (overlap = 0 hides nothing)"
        );
        assert!(parse("m.toml", &old.replacen("overlap = 0.4", "overlap = 0", 1)).is_ok());
    }

    #[test]
    fn a_written_machine_reads_the_same() {
        for name in ["zen4-genoa", "xeon-ht-2x2", "pentium-pro-4way-512k"] {
            let machine = preset(name).expect("a preset").machine().expect("a good one");
            let text = render(&machine).expect("it renders");
            assert!(text.contains("size = \"512 KiB\"") || text.contains("size = \"32 KiB\""), "{text}");
            assert_eq!(parse("again", &text).expect("it reads"), machine);
        }
    }
}

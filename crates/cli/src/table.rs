//! Tables and lines on stdout.

use comfy_table::{ContentArrangement, Table, presets};
use std::io::{self, Write};

/// Width of text that goes to no terminal.
const PLAIN_WIDTH: u16 = 100;

/// Columns of the terminal, or of a page where stdout is none.
pub fn width() -> u16 {
    match rustix::termios::tcgetwinsize(io::stdout()) {
        Ok(size) if size.ws_col >= 40 => size.ws_col,
        _ => PLAIN_WIDTH,
    }
}

/// An empty table without frames.
pub fn table(header: &[&str], width: u16) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    table.set_header(header.iter().map(|h| h.to_uppercase()));
    table
}

/// The table's text without blanks at its edges.
pub fn lines(table: &Table) -> String {
    let text = table.to_string();
    let trimmed: Vec<_> = text.lines().map(|l| l.strip_prefix(' ').unwrap_or(l).trim_end()).collect();
    trimmed.join("\n")
}

/// Writes text and a line end to stdout; a reader who has seen enough (`| head`) is no error.
pub fn print_line(text: &str) -> io::Result<()> {
    match writeln!(io::stdout().lock(), "{text}") {
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

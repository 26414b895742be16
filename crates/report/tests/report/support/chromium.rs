//! A headless Chromium, where there is one.

#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Final DOM of a page, and its console output.
pub struct Visit {
    pub dom: String,
    pub console: Vec<String>,
}

/// Opens a page in a window so many pixels wide; `None`, with a line that gives the reason, where there is no Chromium.
pub fn visit(html: &str, width: u32) -> Option<Visit> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let program = ["chromium", "chromium-browser", "google-chrome"]
        .iter()
        .flat_map(|name| std::env::split_paths(&path).map(move |dir| dir.join(name)))
        .find(|file| file.is_file());
    let Some(program) = program else {
        println!("skipped: no chromium, chromium-browser or google-chrome in PATH");
        return None;
    };
    Some(open(program, html, width))
}

fn open(program: PathBuf, html: &str, width: u32) -> Visit {
    let dir = tempfile::tempdir().unwrap();
    let page = dir.path().join("page.html");
    std::fs::File::create(&page).unwrap().write_all(html.as_bytes()).unwrap();
    let flags = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking \
                 --disable-component-update --disable-sync --enable-logging=stderr --dump-dom";
    let output = Command::new(program)
        .args(flags.split_whitespace())
        .arg(format!("--window-size={width},900"))
        .arg(format!("--user-data-dir={}", dir.path().join("profile").display()))
        .arg(format!("file://{}", page.display()))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let console =
        String::from_utf8_lossy(&output.stderr).lines().filter(|l| l.contains(":CONSOLE")).map(str::to_owned).collect();
    Visit { dom: String::from_utf8_lossy(&output.stdout).into_owned(), console }
}

//! Compiles the guest's init, the guardian and the TCG plugin, which the library embeds.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let native = PathBuf::from(variable("CARGO_MANIFEST_DIR")).join("../../native");
    let out = PathBuf::from(variable("OUT_DIR"));
    let include = native.join("include");
    println!("cargo::rerun-if-changed={}", include.display());
    println!("cargo::rerun-if-env-changed=CC");

    let program = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-static", "-s"];
    let library = ["-std=gnu11", "-O3", "-Wall", "-Wextra", "-shared", "-fPIC"];
    let preloaded =
        ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-shared", "-fPIC", "-fvisibility=hidden", "-fno-builtin", "-s"];
    let parts: [(&str, &[&str], &str); 4] = [
        ("agent/init", &program, "guest-init"),
        ("agent/guard", &program, "guest-guard"),
        ("agent/fileserver", &library, "fileserver-unprivileged.so"),
        ("heapshim", &preloaded, "heapshim.so"),
    ];
    for (folder, flags, output) in parts {
        assert!(compile(&native.join(folder), &include, flags, &out.join(output)), "native/{folder} has no C files");
    }

    // The plugin alone is under the GPL: a tree without it builds, and cannot trace.
    println!("cargo::rustc-check-cfg=cfg(has_tap_plugin)");
    if compile(&native.join("tap"), &include, &library, &out.join("tap-plugin.so")) {
        println!("cargo::rustc-cfg=has_tap_plugin");
    }
}

/// Compiles every C file of a folder into one output; false where there is none.
fn compile(folder: &Path, include: &Path, flags: &[&str], output: &Path) -> bool {
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut sources: Vec<PathBuf> = folder
        .read_dir()
        .map(|entries| entries.filter_map(|entry| Some(entry.ok()?.path())).collect())
        .unwrap_or_default();
    sources.retain(|path| path.extension().is_some_and(|extension| extension == "c"));
    sources.sort();
    if sources.is_empty() {
        return false;
    }
    let compiler = env::var("CC").unwrap_or_else(|_| "cc".into());
    let status = Command::new(&compiler)
        .args(flags)
        .arg("-I")
        .arg(include)
        .arg("-o")
        .arg(output)
        .args(&sources)
        .status()
        .unwrap_or_else(|error| panic!("{compiler}: {error}: install gcc, or set CC to a C compiler"));
    assert!(
        status.success(),
        "{compiler} cannot compile {}: see above; a missing header or library is in gcc and libc6-dev",
        folder.display()
    );
    true
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"))
}

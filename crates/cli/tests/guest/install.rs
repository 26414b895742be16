//! Places of the files from `make install` and `make deb`: only the installed files are used from then on.

#![allow(clippy::unwrap_used)]

use crate::guest_slots::for_a_guest;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A script of the repository on the binary under test.
fn script(name: &str, root: &Path, arguments: &[&str]) -> Output {
    let binary = env!("CARGO_BIN_EXE_nearmiss");
    Command::new(repository().join("scripts").join(name))
        .arg(binary)
        .args(arguments)
        .envs([("DESTDIR", root.to_str().unwrap()), ("PREFIX", "/usr")])
        // The size of the packages is not tested, and xz takes a minute for its best.
        .envs([("DPKG_DEB_COMPRESSOR_TYPE", "gzip"), ("DPKG_DEB_COMPRESSOR_LEVEL", "1")])
        .output()
        .unwrap()
}

/// The programs of the applications lie beside the binary under test, where they were built.
fn programs_are_built() -> bool {
    let beside = |name| Path::new(env!("CARGO_BIN_EXE_nearmiss")).with_file_name(name).is_file();
    let built = ["nearmiss-accelerator", "nearmiss-webload"].into_iter().all(beside);
    if !built {
        println!("skipped: nearmiss-accelerator and nearmiss-webload are not built");
    }
    built
}

fn files_below(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

#[test]
fn the_installation_is_small_works_and_goes_again() {
    if !programs_are_built() {
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let output = script("install.sh", root.path(), &[]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for (name, most_mib) in [("nearmiss", 40), ("nearmiss-accelerator", 5), ("nearmiss-webload", 5)] {
        let installed = root.path().join("usr/bin").join(name);
        let bytes = installed.metadata().unwrap().len();
        assert!(bytes < most_mib << 20, "{name}: {bytes} bytes: debug information is installed");
        let version = Command::new(&installed).arg("--version").output().unwrap();
        assert_eq!(version.stdout, format!("{name} {}\n", env!("CARGO_PKG_VERSION")).as_bytes());
    }
    for path in [
        "bin/.debug/nearmiss-webload.debug",
        "lib/systemd/system/nearmiss-accelerator.service",
        "share/man/man1/nearmiss-accelerator.1.gz",
        "share/man/man1/nearmiss-webload-rate.1.gz",
        "share/bash-completion/completions/nearmiss-webload",
        "share/zsh/vendor-completions/_nearmiss-accelerator",
        "share/doc/nearmiss/examples/accelerator.toml",
        "bin/.debug/nearmiss.debug",
        "include/nearmiss-bypass.h",
        "include/nearmiss-color.h",
        "share/man/man1/nearmiss-trace.1.gz",
        "share/man/man1/nearmiss-apply-color.1.gz",
        "share/bash-completion/completions/nearmiss",
        "share/zsh/vendor-completions/_nearmiss",
        "share/fish/vendor_completions.d/nearmiss.fish",
        "share/doc/nearmiss/README.md",
    ] {
        assert!(root.path().join("usr").join(path).is_file(), "{path}");
    }
    // A second time changes nothing and leaves no part behind.
    let before = files_below(root.path()).len();
    assert!(script("install.sh", root.path(), &[]).status.success());
    assert_eq!(files_below(root.path()).len(), before);
    assert!(script("install.sh", root.path(), &["--remove"]).status.success());
    assert_eq!(files_below(root.path()), Vec::<PathBuf>::new());
}

#[test]
fn the_package_names_its_kernel_as_a_suggestion_alone() {
    if !programs_are_built() {
        return;
    }
    if Command::new("dpkg-shlibdeps").arg("--version").output().is_err() {
        eprintln!("skipped: dpkg-dev is not installed");
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let output = script("make-deb.sh", root.path(), &[root.path().to_str().unwrap()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let stdout = String::from_utf8(output.stdout).unwrap();
    let packages: Vec<&str> = stdout.lines().collect();
    assert_eq!(packages.len(), 2, "{stdout}");
    let field = |name: &str| {
        let output = Command::new("dpkg-deb").args(["-f", packages[0], name]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(field("Depends").contains("libc6"), "{}", field("Depends"));
    assert!(!field("Depends").contains("linux") && !field("Recommends").contains("linux"));
    assert!(field("Suggests").contains("linux-image"));
    match Command::new("lintian").args(&packages).output() {
        Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout)),
        Err(_) => eprintln!("skipped: lintian is not installed"),
    }
}

/// Every verb with a file system in which the repository is not there, as this user (`None`: as root).
fn installed_verbs_work(installed: &Path, user: Option<&str>) {
    let place = tempfile::tempdir().unwrap();
    Command::new("chmod").arg("777").arg(place.path()).status().unwrap();
    let login = user.map_or(String::new(), |user| format!("setpriv --reuid {user} --regid nogroup --init-groups"));
    let script = format!(
        "set -e; mount -t tmpfs none '{}'; cd '{}'; chmod -R a+rX cache; exec {login} sh -ec '{VERBS}'",
        repository().display(),
        place.path().display(),
    );
    let kernels = nearmiss_tap::guest::KernelImage::cache();
    let cache = place.path().join("cache/nearmiss");
    std::fs::create_dir_all(&cache).unwrap();
    assert!(
        Command::new("cp").args(["-rL".as_ref(), kernels.as_os_str(), cache.as_os_str()]).status().unwrap().success()
    );
    // It takes seconds to measure this machine, once for each user.
    let measured = kernels.with_file_name("calibration.json");
    if measured.is_file() {
        std::fs::copy(&measured, cache.join("calibration.json")).unwrap();
    }
    let out = Command::new("unshare")
        .args(["-m", "sh", "-c", &script])
        .env("N", installed)
        .env("HOME", place.path())
        .env("XDG_CACHE_HOME", place.path().join("cache"))
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    let printed = format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success(), "as {}: {printed}", user.unwrap_or("root"));
}

const VERBS: &str = "mkdir $$; cd $$
$N doctor
$N trace -q --only user -m zen3-milan -- sort /etc/services
$N diagnose
$N report
$N observe --clock -- sort /etc/services
$N apply color -- sort /etc/services
$N verify color --time-limit 1s --pairs 8 -- true";

#[test]
fn the_installation_needs_nothing_of_the_repository() {
    if !programs_are_built() {
        return;
    }
    let Some(_guest) = for_a_guest() else { return };
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: this needs root, who hides the repository, and a guest");
        return;
    }
    let root = tempfile::tempdir().unwrap();
    assert!(script("install.sh", root.path(), &[]).status.success());
    Command::new("chmod").args(["-R".as_ref(), "a+rX".as_ref(), root.path().as_os_str()]).status().unwrap();
    let installed = root.path().join("usr/bin/nearmiss");
    installed_verbs_work(&installed, None);
    installed_verbs_work(&installed, Some("nobody"));
}

#[test]
fn a_kernel_that_is_no_file_or_no_package_is_one_line() {
    let unpack = |package: &str| {
        let out = Command::new(env!("CARGO_BIN_EXE_nearmiss")).args(["kernel", "--unpack", package]).output().unwrap();
        (out.status.code(), String::from_utf8(out.stderr).unwrap())
    };
    let missing = "nearmiss: /no/such.deb: no such file; without one a kernel is fetched with apt\n";
    assert_eq!(unpack("/no/such.deb"), (Some(2), missing.to_owned()));
    let file = tempfile::Builder::new().suffix(".deb").tempfile().unwrap();
    let (code, stderr) = unpack(file.path().to_str().unwrap());
    assert!(
        code == Some(2) && stderr.lines().last().unwrap().starts_with("nearmiss: no kernel was unpacked: "),
        "{stderr}"
    );
}

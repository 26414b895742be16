//! The emulators that tests run under: the installed one, and those that `scripts/setup-engines.sh` unpacked.

use nearmiss_tap::guest::QemuBinary;

/// The installed emulator, then each unpacked one of another release. One line names each that is missing.
fn engines() -> Vec<QemuBinary> {
    let mut found: Vec<QemuBinary> = Vec::new();
    let unpacked = ["7.2", "10.0", "11.1"].map(QemuBinary::unpacked);
    for engine in std::iter::once(QemuBinary::installed()).chain(unpacked) {
        match engine {
            Ok(engine) if found.iter().any(|other| other.version == engine.version) => {}
            Ok(engine) => found.push(engine),
            Err(error) => println!("skipped: {error}"),
        }
    }
    found
}

/// Runs a test under each engine in turn; its output names the one that fails.
pub fn under_each_engine(mut test: impl FnMut(QemuBinary)) {
    for engine in engines() {
        println!("QEMU {}.{}", engine.version.0, engine.version.1);
        test(engine);
    }
}

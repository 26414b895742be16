//! Whether programs can be traced on this machine.

/// Says in one line why nothing can be.
pub fn can_trace() -> bool {
    let missing =
        nearmiss_tap::guest::KernelImage::newest().err().or(nearmiss_tap::guest::QemuBinary::installed().err());
    if let Some(why) = &missing {
        eprintln!("skipped: {why}");
    }
    missing.is_none()
}

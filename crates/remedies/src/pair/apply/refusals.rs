//! When the remedy must not engage, whichever way it would.

use super::options::With;
use nearmiss_analysis::CannotEngage;
use std::fs;
use std::path::Path;

/// Facts on the kernel, under roots that a test can put in place.
#[derive(Clone, Copy, Debug)]
pub struct Kernel<'a> {
    /// `/sys/kernel`.
    pub sys: &'a Path,
    /// Output of `uname -v`.
    pub version: &'a str,
    /// The core-scheduling cookie of the process that is to be placed; none on kernels without them.
    pub cookie: Option<u64>,
    /// One of the tasks that are to be placed has a real-time policy.
    pub has_real_time: bool,
}

impl Kernel<'_> {
    /// Errors: why the remedy must not engage.
    pub fn refuses(&self, with: With) -> Result<(), CannotEngage> {
        let refused = |why: String| Err(CannotEngage::Parameters(why));
        let real_time = fs::read_to_string(self.sys.join("realtime")).is_ok_and(|text| text.trim() == "1");
        if real_time || self.version.contains("PREEMPT_RT") {
            return refused(
                "pair refuses kernels with real-time preemption: who runs beside whom must not delay a task \
                            that has a deadline"
                    .to_owned(),
            );
        }
        if self.has_real_time {
            return refused(
                "pair refuses real-time tasks (SCHED_FIFO, SCHED_RR, SCHED_DEADLINE): who runs beside whom must not \
                            delay a task that has a deadline; `chrt -p PID` shows and changes the policy"
                    .to_owned(),
            );
        }
        if self.cookie.is_some_and(|cookie| cookie != 0) {
            return refused(
                "pair refuses tasks with a core-scheduling cookie: the cookie already decides who may share a \
                            core; run the command without one (prctl PR_SCHED_CORE)"
                    .to_owned(),
            );
        }
        let ext = self.sys.join("sched_ext");
        let state = fs::read_to_string(ext.join("state")).unwrap_or_default();
        if !matches!(state.trim(), "" | "disabled") {
            let name = fs::read_to_string(ext.join("root/ops")).unwrap_or_default();
            let name = Some(name.trim()).filter(|name| !name.is_empty()).unwrap_or("one without a name");
            return refused(format!(
                "another scheduler is loaded ({name}, sched_ext is {}): end it first",
                state.trim()
            ));
        }
        if with == With::SchedExt && state.is_empty() {
            return refused(
                "this kernel has no sched_ext (/sys/kernel/sched_ext is missing; it came with Linux 6.12, \
                            Debian has it on from 6.16): leave --with out, and affinity is set instead"
                    .to_owned(),
            );
        }
        Ok(())
    }
}

/// The cookie of a process, 0 for our own: none where the kernel has no cookies.
pub fn cookie(process: i32) -> Option<u64> {
    let mut cookie = 0u64;
    const OF_A_TASK: libc::c_ulong = 0;
    // SAFETY: the kernel writes one word, where it writes any.
    let got = unsafe {
        libc::prctl(libc::PR_SCHED_CORE, libc::PR_SCHED_CORE_GET, process, OF_A_TASK, std::ptr::from_mut(&mut cookie))
    };
    (got == 0).then_some(cookie)
}

/// Whether a task, 0 for the calling one, has a real-time policy; false for one that is gone.
pub fn is_real_time(task: i32) -> bool {
    const RESET_ON_FORK: i32 = 0x4000_0000;
    // SAFETY: the kernel takes and returns numbers alone.
    let policy = unsafe { libc::sched_getscheduler(task) };
    policy >= 0 && matches!(policy & !RESET_ON_FORK, libc::SCHED_FIFO | libc::SCHED_RR | libc::SCHED_DEADLINE)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Returns the refusal of a kernel with these files.
    fn refusal(files: &[(&str, &str)], version: &str, cookie: Option<u64>, with: With) -> Result<(), String> {
        let place = tempfile::tempdir().unwrap();
        for (file, text) in files {
            let file = place.path().join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        let kernel = Kernel { sys: place.path(), version, cookie, has_real_time: false };
        kernel.refuses(with).map_err(|e| {
            assert_eq!(e.exit_code(), 125);
            e.to_string()
        })
    }

    const EXT: (&str, &str) = ("sched_ext/state", "disabled\n");

    #[test]
    fn an_ordinary_kernel_refuses_nothing() {
        assert_eq!(refusal(&[], "#1 SMP PREEMPT_DYNAMIC", None, With::Affinity), Ok(()));
        assert_eq!(refusal(&[EXT, ("realtime", "0")], "#1 SMP", Some(0), With::SchedExt), Ok(()));
    }

    #[test]
    fn each_refusal_is_a_sentence() {
        let of = |files: &[_], version, cookie, with| refusal(files, version, cookie, with).unwrap_err();
        assert!(of(&[("realtime", "1\n")], "", None, With::Affinity).contains("real-time"));
        assert!(of(&[], "#1 SMP PREEMPT_RT Debian", None, With::Affinity).contains("real-time"));
        assert!(of(&[], "", Some(7), With::Affinity).contains("core-scheduling cookie"));
        let other = [("sched_ext/state", "enabled\n"), ("sched_ext/root/ops", "rusty\n")];
        assert!(
            of(&other, "", None, With::Affinity).contains("another scheduler is loaded (rusty, sched_ext is enabled)")
        );
        assert!(of(&other, "", None, With::SchedExt).contains("rusty"));
        assert!(of(&[], "", None, With::SchedExt).contains("has no sched_ext"));
    }

    #[test]
    fn this_process_has_no_cookie_and_no_deadlines() {
        assert!(matches!(cookie(0), None | Some(0)));
        assert!(!is_real_time(0) && !is_real_time(i32::MAX));
        let place = tempfile::tempdir().unwrap();
        let kernel = Kernel { sys: place.path(), version: "", cookie: None, has_real_time: true };
        assert!(kernel.refuses(With::Affinity).unwrap_err().to_string().contains("refuses real-time tasks"));
    }
}

//! The window of an observation: all that lies outside is cut off.

/// Window from its begin to its end, on `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// When it begins; 0: not yet.
    pub begin_ns: u64,
    /// When it ends; 0: not yet known.
    pub end_ns: u64,
}

impl Window {
    /// Time from one instant to another that lies in the window.
    pub fn within(self, from_ns: u64, to_ns: u64) -> u64 {
        let end = if self.end_ns == 0 { u64::MAX } else { self.end_ns };
        if self.begin_ns == 0 { 0 } else { to_ns.min(end).saturating_sub(from_ns.max(self.begin_ns)) }
    }

    /// Time from an instant to the end of the window, that of what is under way.
    pub fn rest(self, from_ns: u64) -> u64 {
        self.within(from_ns, self.end_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_are_cut() {
        let window = Window { begin_ns: 100, end_ns: 200 };
        let cut = |from, to| window.within(from, to);
        assert_eq!([cut(10, 150), cut(150, 900), cut(10, 900), cut(120, 130)], [50, 50, 100, 10]);
        assert_eq!([cut(10, 90), cut(300, 400)], [0, 0]);
        assert_eq!((window.rest(10), window.rest(180), window.rest(250)), (100, 20, 0));
        assert_eq!(Window::default().within(0, 500), 0, "it has not begun");
        assert_eq!(Window { begin_ns: 100, end_ns: 0 }.within(50, 500), 400, "its end is not known");
    }
}

//! Rates at which the levels beyond the first one, and memory, give lines.
//!
//! The second level gives lines from banks: consecutive lines lie in consecutive ones, and each bank has its own turn. A
//! walk at a power of two of bytes uses few of them. A line that pushes a modified one out of the first level takes the
//! way back as well (`experiments/cycles/banks.txt`).

use super::{Ticks, part};
use nearmiss_record::machine::{Core, Machine, SecondLevel};

/// A line that the first level requests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    /// Level that has it, counted from the second on; memory comes last.
    pub source: usize,
    pub vaddr: u64,
    /// The first level gives up a modified line for it.
    pub writes_back: bool,
    /// Share of such requests that are made: the others find the line on its way.
    pub share: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Source {
    line: Ticks,
    /// A line of a stream that leaves lines out; none: as any.
    apart: Option<Ticks>,
    /// From when on the next line may come.
    after: Ticks,
}

/// The second level's banks.
#[derive(Clone, Debug)]
struct Banks {
    line_log2: u32,
    /// A line with one that is written back.
    written_line: Ticks,
    /// From one line of a bank to the next, without and with one that is written back.
    line: [Ticks; 2],
    /// From when on the next line may come, by bank: a power of two.
    after: Vec<Ticks>,
}

/// See the module's text.
#[derive(Clone, Debug)]
pub(super) struct Supply {
    sources: Vec<Source>,
    banks: Option<Banks>,
}

impl Supply {
    pub fn new(machine: &Machine, core: &Core) -> Self {
        let figures = machine.streams.iter();
        let apart = figures.clone().flat_map(|streams| &streams.apart_line_cycles).map(|cycles| Some(part(*cycles)));
        let lines = figures.flat_map(|streams| &streams.line_cycles).map(|cycles| part(*cycles));
        let source = |(line, apart)| Source { line, apart, after: 0 };
        let line_log2 = machine.data_cache(1).map_or(6, |cache| cache.line.0.max(1).ilog2());
        Supply {
            sources: lines.zip(apart.chain(std::iter::repeat(None))).map(source).collect(),
            banks: core.second_level.map(|figures| Banks::new(&figures, line_log2)),
        }
    }

    /// Whether this source gives lines from banks.
    pub fn has_banks(&self, source: usize) -> bool {
        source == 0 && self.banks.is_some()
    }

    /// Returns when a line is given that is requested when the core `reached` it.
    pub fn gives(&mut self, request: &Request, reached: Ticks) -> Ticks {
        let has_banks = self.has_banks(request.source);
        let Some(source) = self.sources.get_mut(request.source) else { return reached };
        let given = reached.max(source.after);
        let Some(banks) = self.banks.as_mut().filter(|_| has_banks) else {
            source.after = given + source.line;
            return given;
        };
        let line = if request.writes_back { banks.written_line.max(source.line) } else { source.line };
        source.after = given + share_of(line, request.share);
        banks.gives(request, given)
    }

    /// The line that a source just gave is one of a stream that leaves lines out: the next one comes later.
    pub fn left_lines_out(&mut self, source: usize) {
        if let Some(Source { line, apart: Some(apart), after }) = self.sources.get_mut(source) {
            *after += apart.saturating_sub(*line);
        }
    }
}

impl Banks {
    fn new(figures: &SecondLevel, line_log2: u32) -> Self {
        Banks {
            line_log2,
            written_line: part(figures.written_line_cycles),
            line: [part(figures.bank_cycles), part(figures.written_bank_cycles)],
            after: vec![0; figures.banks.max(1).next_power_of_two() as usize],
        }
    }

    fn gives(&mut self, request: &Request, requested: Ticks) -> Ticks {
        let bank = (request.vaddr >> self.line_log2) as usize % self.after.len();
        let given = requested.max(self.after[bank]);
        self.after[bank] = given + share_of(self.line[usize::from(request.writes_back)], request.share);
        given
    }
}

fn share_of(ticks: Ticks, share: f64) -> Ticks {
    (ticks as f64 * share) as Ticks
}

#[cfg(test)]
mod tests {
    use super::super::tests::core;
    use super::super::ticks;
    use super::*;
    use crate::describe::preset;
    use nearmiss_record::machine::Streams;
    use nearmiss_record::units::Bytes;

    fn supply(second_level: Option<SecondLevel>) -> Supply {
        let mut machine = preset("zen4-genoa").unwrap().machine().unwrap();
        machine.streams = Some(Streams {
            followed: 1,
            trained_by: 2,
            longest_stride_lines: 8,
            within: Bytes(4096),
            line_cycles: vec![2.0, 8.0, 20.0],
            apart_line_cycles: vec![3.0, 8.0, 20.0],
            region: None,
        });
        Supply::new(&machine, &Core { second_level, ..core() })
    }

    /// Cycles until the hundredth line is given, at one distance in lines.
    fn hundred(supply: &mut Supply, apart: u64, writes_back: bool, share: f64) -> u64 {
        let request = |n: u64| Request { source: 0, vaddr: n * apart * 64, writes_back, share };
        (0..=100).map(|n| supply.gives(&request(n), 0)).last().unwrap_or_default() / ticks(1)
    }

    const FOUR: SecondLevel =
        SecondLevel { banks: 4, bank_cycles: 6.0, written_line_cycles: 5.0, written_bank_cycles: 9.0 };

    #[test]
    fn lines_of_one_bank_take_turns() {
        let each = |apart| hundred(&mut supply(Some(FOUR)), apart, false, 1.0);
        assert_eq!([1, 2, 3, 4, 8].map(each), [200, 300, 200, 600, 600]);
        assert_eq!([1, 4].map(|apart| hundred(&mut supply(None), apart, true, 1.0)), [200, 200], "no banks");
    }

    #[test]
    fn lines_that_push_out_modified_ones_take_the_way_back_as_well() {
        let each = |apart| hundred(&mut supply(Some(FOUR)), apart, true, 1.0);
        assert_eq!([1, 2, 4].map(each), [500, 500, 900]);
    }

    #[test]
    fn lines_that_are_on_their_way_are_not_requested_again() {
        assert_eq!([1, 4].map(|apart| hundred(&mut supply(Some(FOUR)), apart, false, 0.5)), [100, 300]);
    }

    #[test]
    fn farther_sources_have_no_banks() {
        let mut supply = supply(Some(FOUR));
        let request = Request { source: 1, vaddr: 0, writes_back: true, share: 1.0 };
        let given = |supply: &mut Supply| supply.gives(&request, 0) / ticks(1);
        assert_eq!([(); 3].map(|()| given(&mut supply)), [0, 8, 16]);
        supply.left_lines_out(0);
        let near = Request { source: 0, writes_back: false, ..request };
        assert_eq!(supply.gives(&near, 0) / ticks(1), 1, "a line that the stream left out");
    }
}

//! What a core fetches ahead: lines that follow one another at one distance.

use nearmiss_record::machine::Streams as Figures;

/// Accesses of one block of memory.
#[derive(Clone, Copy, Debug, Default)]
struct Stream {
    block: u64,
    line: u64,
    stride: i64,
    /// Accesses in a row at this distance.
    steps: u32,
    used: u64,
}

/// Streams of one core.
#[derive(Clone, Debug)]
pub(super) struct Streams {
    followed: Vec<Stream>,
    trained_by: u32,
    longest_stride: i64,
    block_log2: u32,
    clock: u64,
}

impl Streams {
    pub fn new(figures: &Figures) -> Self {
        Streams {
            followed: vec![Stream { block: u64::MAX, ..Stream::default() }; figures.followed.max(1) as usize],
            trained_by: figures.trained_by.max(1),
            longest_stride: i64::from(figures.longest_stride_lines),
            block_log2: figures.within.0.max(4096).ilog2(),
            clock: 0,
        }
    }

    /// An access missed the first level. Returns whether the line had been fetched ahead.
    pub fn covers(&mut self, vaddr: u64) -> bool {
        let (block, line) = (vaddr >> self.block_log2, vaddr >> 6);
        self.clock += 1;
        let Some(stream) = self.followed.iter_mut().find(|stream| stream.block == block) else {
            let oldest = self.followed.iter_mut().min_by_key(|stream| stream.used);
            if let Some(oldest) = oldest {
                *oldest = Stream { block, line, stride: 0, steps: 0, used: self.clock };
            }
            return false;
        };
        stream.used = self.clock;
        let stride = line.wrapping_sub(stream.line) as i64;
        if stride == 0 {
            return stream.steps >= self.trained_by;
        }
        stream.line = line;
        if stride != stream.stride {
            (stream.stride, stream.steps) = (stride, u32::from(stride.abs() <= self.longest_stride));
            return false;
        }
        if stream.steps == 0 {
            return false;
        }
        stream.steps = stream.steps.saturating_add(1);
        stream.steps > self.trained_by
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nearmiss_record::units::Bytes;

    fn streams(followed: u32) -> Streams {
        Streams::new(&Figures {
            followed,
            trained_by: 2,
            longest_stride_lines: 8,
            within: Bytes(4096),
            line_cycles: vec![],
        })
    }

    #[test]
    fn a_stream_is_covered_from_its_fourth_line_on_and_within_its_page() {
        let mut s = streams(4);
        let covered: Vec<bool> = (0..66).map(|line| s.covers(0x1000 + line * 64)).collect();
        let uncovered: Vec<usize> = (0..66).filter(|at| !covered[*at]).collect();
        assert_eq!(uncovered, [0, 1, 2, 64, 65], "the second page trains again");
    }

    #[test]
    fn strides_are_followed_both_ways_and_no_further_than_told() {
        let covered = |stride: i64| {
            let mut s = streams(4);
            (0..7).filter(|n| s.covers((0x10_0000 + 2048 + n * stride * 64) as u64)).count()
        };
        assert_eq!(
            [covered(2), covered(-3), covered(8), covered(9)],
            [4, 4, 1, 0],
            "seven steps of eight lines leave the page"
        );
        let mut random = streams(4);
        assert!([3u64, 9, 1, 30, 12, 40].iter().all(|line| !random.covers(line * 64)));
    }

    #[test]
    fn more_streams_than_are_followed_cover_nothing() {
        for (pages, covers) in [(4, true), (5, false)] {
            let mut s = streams(4);
            let last =
                (0..10).flat_map(|line| (0..pages).map(move |page| page * 4096 + line * 64)).map(|a| s.covers(a));
            assert_eq!(last.last().unwrap(), covers, "{pages} pages");
        }
    }
}

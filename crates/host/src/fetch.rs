//! Distance that the front end of a core is ahead: a chain of jumps through more lines of code than the first level
//! holds.

use super::assembled::Assembled;
use std::time::Instant;

const LINE: usize = 64;
/// A quarter of them in the first level of any x86-64 core, all of them in the second level.
const LINES: usize = 4096;
const NOP: [u8; 4] = [0x0f, 0x1f, 0x40, 0x00];
/// Instructions of a line, its jump included: as many as between the taken branches of usual programs.
const INSTRUCTIONS: usize = 8;
/// Runs through the chain; the least counts.
const ROUNDS: usize = 8;
/// An odd number, so that the chain comes through all lines, none of them behind the line before it.
const STRIDE: usize = 1031;

/// Instructions by which the front end is ahead, from the second level's time for a line: as many lines are under way
/// as lines come within that time.
pub fn ahead_instructions(second_level_ns: f64) -> Option<f64> {
    let code = Assembled::looping(&[], &chain(), &[])?;
    let mut word = 0u64;
    let at = &raw mut word;
    let mut least = f64::INFINITY;
    for _ in 0..ROUNDS {
        let started = Instant::now();
        // SAFETY: the code is jumps and instructions that do nothing, beside the count of loops.
        unsafe { code.run(at, 1, at, at) };
        least = least.min(started.elapsed().as_secs_f64());
    }
    let line_ns = least * 1e9 / LINES as f64;
    Some((second_level_ns / line_ns * INSTRUCTIONS as f64).round())
}

/// Each line does nothing and jumps to the next of the chain; the last one jumps behind all lines.
fn chain() -> Vec<u8> {
    let mut code = vec![0; LINES * LINE];
    for at in 0..LINES {
        let line = at * STRIDE % LINES * LINE;
        let next = if at + 1 == LINES { LINES } else { (at + 1) * STRIDE % LINES } * LINE;
        let jump = line + (INSTRUCTIONS - 1) * NOP.len();
        code[line..jump].copy_from_slice(&NOP.repeat(INSTRUCTIONS - 1));
        code[jump] = 0xe9;
        // No more than the length of the code, either way.
        let distance = (next as i64 - (jump + 5) as i64) as i32;
        code[jump + 1..jump + 5].copy_from_slice(&distance.to_le_bytes());
    }
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chain_comes_through_every_line_once_and_ends_behind_them() {
        let code = chain();
        let (mut line, mut seen) = (0, vec![false; LINES]);
        while line < LINES {
            assert!(!std::mem::replace(&mut seen[line], true), "line {line} twice");
            let jump = line * LINE + (INSTRUCTIONS - 1) * NOP.len();
            assert_eq!(code[jump], 0xe9);
            let distance = i32::from_le_bytes(code[jump + 1..jump + 5].try_into().unwrap());
            let next = (jump as i64 + 5 + i64::from(distance)) as usize;
            assert_eq!(next % LINE, 0);
            line = next / LINE;
        }
        assert!(line == LINES && seen.iter().all(|seen| *seen));
    }
}

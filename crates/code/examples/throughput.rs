//! Small loops, timed on this CPU and estimated from their code: `cargo run --release -p nearmiss-code --example
//! throughput`. A chain of multiplications of three cycles each is the clock.

#![allow(bad_asm_style, reason = "the same file is for cc")]

#[path = "../tests/code/support/blocks.rs"]
mod blocks;

use nearmiss_code::{CodeMap, CoreTimes};
use nearmiss_record::units::InsnId;
use std::time::Instant;

std::arch::global_asm!(include_str!("../tests/functions/loops.s"), options(att_syntax));

type Turns = unsafe extern "C" fn(u64, *mut u64);

/// A loop, by the addresses of its function, of its first turn and of its end.
struct Loop {
    name: &'static str,
    run: Turns,
    turn: usize,
    end: usize,
}

macro_rules! loops {
    ($($name:ident $turn:ident $end:ident),* $(,)?) => {{
        unsafe extern "C" {
            $(fn $name(turns: u64, data: *mut u64); fn $turn(); fn $end();)*
        }
        vec![$(Loop { name: stringify!($name), run: $name, turn: $turn as *const () as usize, end: $end as *const () as usize }),*]
    }};
}

/// Few enough that most runs of a loop fall between two interruptions.
const TURNS: u64 = 20_000;
/// Cycles of a turn of the clock: eight multiplications.
const CLOCK_CYCLES: f64 = 24.0;
/// Runs of each loop, in turn with the clock; the fastest of each counts.
const TIMES: usize = 1_000;
/// Questions that are timed.
const QUESTIONS: u32 = 20_000_000;

impl Loop {
    /// Seconds of a turn.
    fn seconds(&self, data: &mut [u64; 64]) -> f64 {
        let start = Instant::now();
        // SAFETY: the loops follow the C calling convention, keep to registers that a callee may change and to the 128
        // bytes below the stack pointer, and touch the first 14 of the 64 words of `data`.
        unsafe { (self.run)(TURNS, data.as_mut_ptr()) };
        start.elapsed().as_secs_f64() / TURNS as f64
    }

    /// Cycles of a turn, measured.
    fn measure(&self, clock: &Loop, data: &mut [u64; 64]) -> f64 {
        let (mut turn, mut tick) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..TIMES {
            turn = turn.min(self.seconds(data));
            tick = tick.min(clock.seconds(data));
        }
        turn / tick * CLOCK_CYCLES
    }

    /// The loop's code, as known to a map.
    fn map(&self, times: CoreTimes) -> (CodeMap, InsnId) {
        let start = self.run as *const () as usize;
        let mut map = CodeMap::new(times);
        blocks::add_all(&mut map, start as u64, self.code());
        (map, blocks::id_at((self.turn - start) as u64))
    }

    fn code(&self) -> &'static [u8] {
        let start = self.run as *const () as usize;
        // SAFETY: both labels stand in this order in one section of this program; its code is readable and constant.
        unsafe { std::slice::from_raw_parts(start as *const u8, self.end - start) }
    }

    /// Cycles of a turn by the code's estimate.
    fn estimate(&self, times: CoreTimes) -> f64 {
        let (mut map, id) = self.map(times);
        let each = map.pace(id).unwrap_or_default().cycles;
        f64::from(each) / 65_536.0 * self.instructions() as f64
    }

    /// Instructions of a turn: all but the `nop`s, which are jumped over, and the `ret`.
    fn instructions(&self) -> usize {
        use iced_x86::{Decoder, DecoderOptions, Mnemonic};
        let from = self.turn - self.run as *const () as usize;
        let turn = Decoder::new(64, &self.code()[from..], DecoderOptions::NONE).into_iter();
        turn.filter(|instruction| !matches!(instruction.mnemonic(), Mnemonic::Nop | Mnemonic::Ret)).count()
    }
}

fn main() {
    let loops = loops![
        clocked clocked_turn clocked_end,
        multiply_add multiply_add_turn multiply_add_end,
        float_chain float_chain_turn float_chain_end,
        float_sums float_sums_turn float_sums_end,
        chase chase_turn chase_end,
        indexed_chase indexed_chase_turn indexed_chase_end,
        loads loads_turn loads_end,
        stores stores_turn stores_end,
        integers integers_turn integers_end,
        products products_turn products_end,
        divisions divisions_turn divisions_end,
        jumps jumps_turn jumps_end,
        hashed hashed_turn hashed_end,
        spilled spilled_turn spilled_end,
    ];
    let mut data = [0_u64; 64];
    let own = data.as_ptr() as u64;
    data[..8].fill(own);
    let times = CoreTimes { width: 6, load_cycles: 5.0, forwarding_cycles: 5.0 };
    println!("cycles of a turn    measured here   modelled for {} a cycle   error", times.width);
    let mut near = 0;
    for timed in &loops[1..] {
        let measured = timed.measure(&loops[0], &mut data);
        let modelled = timed.estimate(times);
        let error = modelled / measured - 1.0;
        near += usize::from(error.abs() <= 0.25);
        println!("{:<18} {measured:>14.2} {modelled:>25.2} {:>6.0}%", timed.name, error * 100.0);
    }
    println!("within 25%: {near} of {}", loops.len() - 1);
    let (mut map, id) = loops[1].map(times);
    let start = Instant::now();
    for _ in 0..QUESTIONS {
        std::hint::black_box(map.origin(std::hint::black_box(id)));
        std::hint::black_box(map.pace(id));
    }
    println!("two answers: {:.1} ns, measured here", start.elapsed().as_secs_f64() * 1e9 / f64::from(QUESTIONS));
}

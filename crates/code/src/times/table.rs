//! Cycles by kind of instruction.
//!
//! Rounded after Agner Fog, "Instruction tables" (Ice Lake, Alder Lake P, Zen 3 and 4), and Intel's "64 and IA-32
//! Architectures Optimization Reference Manual". One table serves all cores: cores of one time differ by a cycle in
//! most rows. Figures of a machine file or of the host's calibration (width, first level, forwarding) are not here.

use crate::CoreTimes;
use iced_x86::{Instruction, Mnemonic, OpKind, Register};
use std::sync::OnceLock;

/// Units that an instruction keeps busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// None: it moves a value, or does nothing.
    None,
    /// Any of the integer units.
    Integer,
    /// Any of the units for vectors and floating point.
    Vector,
    /// Vector unit, for additions.
    FloatAdd,
    /// The unit that moves elements within vectors.
    Shuffle,
    /// The unit that multiplies, counts bits and the like.
    Multiply,
    /// One that takes nothing else meanwhile.
    Alone,
}

/// Cost of an instruction, without its loads and stores.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    pub unit: Unit,
    /// Cycles from the last input to the result.
    latency: f32,
    /// Slots of the front end.
    pub begun: f32,
    /// Cycles until a unit that works alone takes the next.
    pub busy: f32,
}

const fn in_unit(unit: Unit, latency: f32) -> Cost {
    Cost { unit, latency, begun: 1.0, busy: 0.0 }
}

const fn alone(latency: f32, begun: f32, busy: f32) -> Cost {
    Cost { unit: Unit::Alone, latency, begun, busy }
}

const MOVE: Cost = in_unit(Unit::None, 0.0);
const INTEGER: Cost = in_unit(Unit::Integer, 1.0);
const VECTOR: Cost = in_unit(Unit::Vector, 1.0);
/// Two operations on Zen 3 and 4: the flags are another register file's.
const COMPARISON: Cost = Cost { unit: Unit::Vector, latency: 3.0, begun: 2.0, busy: 0.0 };
/// An atomic instruction waits until all stores before it are done.
const ATOMIC: Cost = alone(18.0, 8.0, 18.0);

/// Names without a leading `V`, and their costs; the first that begins the name counts. A name that ends in `!` is
/// meant whole.
const BY_NAME: &[(&str, Cost)] = &[
    ("Mov!", MOVE),
    ("Movabs", MOVE),
    ("Nop", MOVE),
    ("Endbr", MOVE),
    ("Prefetch", MOVE),
    ("Push", MOVE),
    ("Pop!", MOVE),
    ("Ret", in_unit(Unit::Integer, 0.0)),
    ("Call", Cost { unit: Unit::Integer, latency: 0.0, begun: 2.0, busy: 0.0 }),
    ("Imul", in_unit(Unit::Multiply, 3.0)),
    ("Mul!", Cost { unit: Unit::Multiply, latency: 3.0, begun: 2.0, busy: 0.0 }),
    ("Mulx", in_unit(Unit::Multiply, 4.0)),
    ("Idiv", alone(12.0, 4.0, 6.0)),
    ("Div!", alone(12.0, 4.0, 6.0)),
    ("Popcnt", in_unit(Unit::Multiply, 3.0)),
    ("Lzcnt", in_unit(Unit::Multiply, 3.0)),
    ("Tzcnt", in_unit(Unit::Multiply, 3.0)),
    ("Bsf", in_unit(Unit::Multiply, 3.0)),
    ("Bsr", in_unit(Unit::Multiply, 3.0)),
    ("Pdep", in_unit(Unit::Multiply, 3.0)),
    ("Pext", in_unit(Unit::Multiply, 3.0)),
    ("Crc32", in_unit(Unit::Multiply, 3.0)),
    ("Xchg", Cost { unit: Unit::Integer, latency: 2.0, begun: 3.0, busy: 0.0 }),
    ("Cpuid", alone(100.0, 40.0, 100.0)),
    ("Rdtsc", alone(25.0, 15.0, 25.0)),
    ("Mfence", alone(33.0, 4.0, 33.0)),
    ("Lfence", alone(10.0, 4.0, 10.0)),
    ("Pause", alone(40.0, 4.0, 40.0)),
    ("Syscall", alone(70.0, 40.0, 70.0)),
    ("Movsx", INTEGER),
    ("Movs", MOVE),
    ("Stos", MOVE),
    ("Lods", MOVE),
    ("Movap", MOVE),
    ("Movup", MOVE),
    ("Movdq", MOVE),
    ("Movnt", MOVE),
    ("Lddqu", MOVE),
    ("Movd!", in_unit(Unit::Vector, 3.0)),
    ("Movq!", in_unit(Unit::Vector, 3.0)),
    ("Movmsk", in_unit(Unit::Vector, 3.0)),
    ("Pmovmsk", in_unit(Unit::Vector, 3.0)),
    ("Ptest", in_unit(Unit::Vector, 3.0)),
    ("Ucomi", COMPARISON),
    ("Comi", COMPARISON),
    ("Cvt", in_unit(Unit::Vector, 5.0)),
    ("Fm", in_unit(Unit::Vector, 4.0)),
    ("Fnm", in_unit(Unit::Vector, 4.0)),
    ("Pmul", in_unit(Unit::Vector, 5.0)),
    ("Pmadd", in_unit(Unit::Vector, 5.0)),
    ("Psadbw", in_unit(Unit::Shuffle, 3.0)),
    ("Xorp", VECTOR),
    ("Andp", VECTOR),
    ("Andnp", VECTOR),
    ("Orp", VECTOR),
    ("Blend", VECTOR),
    ("Aes", in_unit(Unit::Vector, 4.0)),
    ("Pclmul", in_unit(Unit::Shuffle, 3.0)),
    ("Shuf", in_unit(Unit::Shuffle, 1.0)),
    ("Pshuf", in_unit(Unit::Shuffle, 1.0)),
    ("Unpck", in_unit(Unit::Shuffle, 1.0)),
    ("Punpck", in_unit(Unit::Shuffle, 1.0)),
    ("Palignr", in_unit(Unit::Shuffle, 1.0)),
    ("Pack", in_unit(Unit::Shuffle, 1.0)),
    ("Perm", in_unit(Unit::Shuffle, 3.0)),
    ("Insert", in_unit(Unit::Shuffle, 3.0)),
    ("Extract", in_unit(Unit::Shuffle, 3.0)),
    ("Pinsr", in_unit(Unit::Shuffle, 3.0)),
    ("Pextr", in_unit(Unit::Shuffle, 3.0)),
    ("Broadcast", in_unit(Unit::Shuffle, 1.0)),
    ("Pbroadcast", in_unit(Unit::Shuffle, 1.0)),
    ("Gather", alone(10.0, 8.0, 4.0)),
    ("Pgather", alone(10.0, 8.0, 4.0)),
    ("F", in_unit(Unit::Vector, 4.0)),
];

/// Kinds of floating-point arithmetic, each with the endings `Ps`, `Pd`, `Ss`, `Sd`.
const FLOATS: &[(&str, Cost)] = &[
    ("Add", FLOAT_ADD),
    ("Sub", FLOAT_ADD),
    ("Addsub", FLOAT_ADD),
    ("Min", FLOAT_ADD),
    ("Max", FLOAT_ADD),
    ("Cmp", FLOAT_ADD),
    ("Round", in_unit(Unit::Vector, 8.0)),
    ("Mul", in_unit(Unit::Vector, 4.0)),
    ("Div", alone(13.0, 1.0, 4.0)),
    ("Sqrt", alone(18.0, 1.0, 6.0)),
    ("Hadd", in_unit(Unit::Shuffle, 6.0)),
];

const FLOAT_ADD: Cost = in_unit(Unit::FloatAdd, 4.0);
/// Latency on Golden Cove and on Zen 3 and 4, which begin six instructions a cycle.
const WIDE_FLOAT_ADD_CYCLES: f32 = 3.0;

fn by_mnemonic() -> &'static [Cost] {
    static COSTS: OnceLock<Vec<Cost>> = OnceLock::new();
    COSTS.get_or_init(|| Mnemonic::values().map(|mnemonic| named(&format!("{mnemonic:?}"))).collect())
}

fn named(name: &str) -> Cost {
    let plain = name.strip_prefix('V').unwrap_or(name);
    let kind = ["ps", "pd", "ss", "sd"].into_iter().find_map(|ending| plain.strip_suffix(ending));
    if let Some((_, cost)) = FLOATS.iter().find(|(float, _)| Some(*float) == kind) {
        return *cost;
    }
    let meant =
        |known: &&(&str, Cost)| known.0.strip_suffix('!').map_or(plain.starts_with(known.0), |known| plain == known);
    let vector = plain != name || (plain.starts_with('P') && !plain.starts_with("Popf"));
    BY_NAME.iter().find(meant).map_or(if vector { VECTOR } else { INTEGER }, |known| known.1)
}

/// Returns the cost of an instruction.
pub(super) fn cost(instruction: &Instruction) -> Cost {
    let exchanges = instruction.mnemonic() == Mnemonic::Xchg && instruction.op0_kind() == OpKind::Memory;
    if instruction.has_lock_prefix() || exchanges {
        return ATOMIC;
    }
    if is_a_load(instruction) {
        return MOVE;
    }
    by_mnemonic().get(instruction.mnemonic() as usize).copied().unwrap_or(INTEGER)
}

/// Whether it only brings a value from memory or into it.
fn is_a_load(instruction: &Instruction) -> bool {
    use Mnemonic::*;
    let memory = (0..instruction.op_count()).any(|op| instruction.op_kind(op) == OpKind::Memory);
    memory
        && matches!(
            instruction.mnemonic(),
            Movzx
                | Movsx
                | Movsxd
                | Movd
                | Movq
                | Vmovd
                | Vmovq
                | Movss
                | Movsd
                | Vmovss
                | Vmovsd
                | Vbroadcastss
                | Vbroadcastsd
        )
}

/// Cycles from an instruction's inputs to its result, without its loads.
pub(crate) fn latency(instruction: &Instruction, times: &CoreTimes) -> f32 {
    let cost = cost(instruction);
    let wide = times.width >= 6 && cost.unit == Unit::FloatAdd;
    if clears(instruction) {
        0.0
    } else if wide {
        WIDE_FLOAT_ADD_CYCLES
    } else {
        cost.latency
    }
}

/// Whether a register is cleared by an exclusive or with itself: no value is waited for.
fn clears(instruction: &Instruction) -> bool {
    let first = instruction.op0_register();
    instruction.mnemonic() == Mnemonic::Xor
        && first != Register::None
        && instruction.op1_kind() == OpKind::Register
        && instruction.op1_register() == first
}

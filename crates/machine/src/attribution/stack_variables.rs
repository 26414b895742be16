//! Variables that lie in the pieces of first threads' stacks.
//!
//! Frames of functions that run one after another lie in one place. So an address may be in several variables: it
//! belongs to that of a function which used it itself, failing that to the one that has most of the piece.

use super::names::Names;
use super::objects::{Key, Object, STACK_PIECE};
use nearmiss_record::symbols::StackVariable;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Least share of a crowd's misses, as a divisor of the rest, that give it a variable's name: three of four.
const MOST_BY: u64 = 4;

/// See the module's text.
pub(super) struct StackVariables<'a> {
    /// Variables in each piece that was used, those of its users first, by the piece's address.
    by_piece: FxHashMap<u64, Vec<&'a StackVariable>>,
}

impl<'a> StackVariables<'a> {
    pub fn new(objects: &[Object], names: &Names<'a>) -> Self {
        let piece = |object: &Object| match object.key {
            Key::StackPiece { address } => Some((address, functions(object, names))),
            _ => None,
        };
        let mut pieces: Vec<(u64, Vec<&str>)> = objects.iter().filter_map(piece).collect();
        pieces.sort_unstable();
        let mut by_piece: FxHashMap<u64, Vec<&'a StackVariable>> = FxHashMap::default();
        for variable in &names.symbols.stack {
            let end = variable.start.saturating_add(variable.bytes);
            let from = pieces.partition_point(|(address, _)| address + STACK_PIECE <= variable.start);
            for (address, _) in pieces[from..].iter().take_while(|(address, _)| *address < end) {
                by_piece.entry(*address).or_default().push(variable);
            }
        }
        for (address, users) in &pieces {
            if let Some(variables) = by_piece.get_mut(address) {
                let of_user = |variable: &StackVariable| users.contains(&variable.function.as_str());
                variables.sort_by_key(|variable| Reverse((of_user(variable), bytes_within(variable, *address))));
            }
        }
        StackVariables { by_piece }
    }

    /// The variable that has most of the piece at `address`.
    pub fn of_piece(&self, address: u64) -> Option<&'a StackVariable> {
        self.by_piece.get(&address)?.first().copied()
    }

    /// The variable that holds the byte at `address`.
    pub fn of_byte(&self, address: u64) -> Option<&'a StackVariable> {
        let holds = |variable: &&&StackVariable| address.wrapping_sub(variable.start) < variable.bytes;
        self.by_piece.get(&(address & !(STACK_PIECE - 1)))?.iter().find(holds).copied()
    }

    /// The variable with nearly all of these misses, given by their addresses.
    pub fn of_most(&self, misses: impl Iterator<Item = (u64, u64)>) -> Option<&'a StackVariable> {
        let (mut all, mut by_variable) = (0, BTreeMap::new());
        for (address, count) in misses {
            all += count;
            *by_variable.entry(self.of_byte(address)).or_insert(0u64) += count;
        }
        let (variable, most) = by_variable.into_iter().max_by_key(|(variable, count)| (*count, Reverse(*variable)))?;
        variable.filter(|_| (all - most) * MOST_BY <= all)
    }
}

/// Name of a variable in gdb's notation.
pub(super) fn name(variable: &StackVariable) -> String {
    format!("{}::{}", variable.function, variable.name)
}

/// Functions whose instructions used an object.
fn functions<'a>(object: &Object, names: &Names<'a>) -> Vec<&'a str> {
    object.insns.iter().map(|insn| names.function_name(names.function(*insn))).collect()
}

/// Bytes of a variable in the piece at `address`.
fn bytes_within(variable: &StackVariable, address: u64) -> u64 {
    let end = variable.start.saturating_add(variable.bytes).min(address + STACK_PIECE);
    end.saturating_sub(variable.start.max(address))
}

// A ledger in a B-tree, filled by a generic index, then queried by number.
use std::collections::BTreeMap;

struct Account {
    number: u64,
    balance: i64,
    moved: u64,
}

fn index_by<K: Ord, V>(values: impl Iterator<Item = V>, key: impl Fn(&V) -> K) -> BTreeMap<K, V> {
    let mut index = BTreeMap::new();
    for value in values {
        index.insert(key(&value), value); // dominating object
    }
    index
}

fn scramble(number: u64) -> u64 {
    let mixed = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 31)
}

fn open_ledger(accounts: u64) -> BTreeMap<u64, Account> {
    let all = (0..accounts).map(|n| Account { number: scramble(n), balance: (n % 500) as i64, moved: 0 });
    index_by(all, |account| account.number)
}

fn transfer(ledger: &mut BTreeMap<u64, Account>, from: u64, to: u64, amount: i64) {
    for (number, change) in [(from, -amount), (to, amount)] {
        if let Some(account) = ledger.get_mut(&number) {
            account.balance += change;
            account.moved += 1;
        }
    }
}

fn main() {
    let accounts = 60_000;
    let mut ledger = open_ledger(accounts);
    for turn in 0..250_000u64 {
        let other = turn.wrapping_mul(7919) % accounts;
        transfer(&mut ledger, scramble(turn * 31 % accounts), scramble(other), (turn % 9) as i64);
    }
    println!("{}", ledger.values().map(|account| account.balance * account.moved as i64).sum::<i64>());
}

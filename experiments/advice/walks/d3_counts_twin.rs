// The table of d3_counts is cleared in the caches.

const WORDS: usize = 1024;

#[inline(never)]
fn clear_table(table: &mut [u64]) {
    for slot in table.iter_mut() {
        *slot = 0;
    }
}

#[inline(never)]
fn count_into(table: &mut [u64], mut seed: u64) -> u64 {
    for _ in 0..WORDS {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        table[(seed >> 54) as usize] += 1;
    }
    table.iter().max().copied().unwrap_or(0)
}

fn main() {
    let mut table = vec![1u64; WORDS];
    let mut most = 0;
    for round in 0..60_000 {
        clear_table(&mut table);
        most = most.max(count_into(&mut table, round));
    }
    println!("{most}");
}

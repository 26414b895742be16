//! A little analytic engine: a filter selects rows, a projection makes values, a fold reads them.
use std::collections::BTreeMap;

struct Table {
    city: Vec<u32>,
    amount: Vec<u32>,
    names: Vec<String>,
}

fn load(rows: usize, spellings: usize) -> Table {
    // The dictionary: many spellings of few cities, brought to one form and counted.
    let mut x = 12345u64;
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for i in 0..spellings {
        x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let raw = format!("  City of {:>3} {}", (x >> 33) % 800, if i % 2 == 0 { "(North)" } else { "(SOUTH)" });
        let name: String = raw.trim().to_lowercase().chars().filter(|c| !c.is_whitespace()).collect();
        *seen.entry(name).or_insert(0) += 1;
    }
    let names: Vec<String> = seen.into_keys().collect();
    let mut city = Vec::with_capacity(rows);
    let mut amount = Vec::with_capacity(rows);
    for _ in 0..rows {
        x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        city.push(((x >> 33) % names.len() as u64) as u32);
        amount.push((x >> 20) as u32 & 0xffff);
    }
    Table { city, amount, names }
}

struct Engine {
    table: Table,
}

impl Engine {
    fn select(&mut self, low: u32, high: u32) -> Vec<(u32, u64)> {
        let mut out = Vec::with_capacity(self.table.city.len());
        for (c, a) in self.table.city.iter().zip(&self.table.amount) {
            if *a >= low && *a < high {
                out.push((*c, u64::from(*a) * 119 / 100));
            }
        }
        out
    }

    fn done(&mut self, _out: Vec<(u32, u64)>) {}
}

fn main() {
    let queries: u32 = std::env::args().nth(1).map_or(40, |a| a.parse().unwrap());
    let mut engine = Engine { table: load(2_600_000, 2_200_000) };
    let mut totals = vec![0u64; engine.table.names.len()];
    for q in 0..queries {
        let out = engine.select(q * 17, 65536 - q * 13);
        for (c, v) in &out {
            totals[*c as usize] += v;
        }
        engine.done(out);
    }
    let digest = totals.iter().fold(0u64, |d, t| d.wrapping_mul(1099511628211).wrapping_add(*t));
    println!("cities {} queries {} digest {:016x}", totals.len(), queries, digest);
}

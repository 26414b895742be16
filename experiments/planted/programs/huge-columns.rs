// Wide table in row order: every report takes one column and visits the rows
// in the order of an index.

const ROWS: usize = 25_000;
const WIDTH: usize = 520;
const REPORTS: usize = 9_000;

struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

struct Table {
    cells: Vec<f64>,
    by_name: Vec<u32>,
}

impl Table {
    fn load(rng: &mut Rng) -> Table {
        let mut cells = Vec::with_capacity(ROWS * WIDTH);
        for _ in 0..ROWS * WIDTH {
            cells.push((rng.next() >> 44) as f64 / 64.0);
        }
        let mut keyed: Vec<(u64, u32)> = (0..ROWS as u32).map(|r| (rng.next(), r)).collect();
        keyed.sort();
        Table { cells, by_name: keyed.into_iter().map(|k| k.1).collect() }
    }

    // Sum of the rises from one row to the next, in the order of the index.
    fn rises(&self, column: usize) -> f64 {
        let mut last = 0.0;
        let mut total = 0.0;
        for &row in &self.by_name {
            let value = self.cells[row as usize * WIDTH + column];
            total += f64::max(value - last, 0.0);
            last = value;
        }
        total
    }
}

fn main() {
    let mut rng = Rng(0x1234_5678_9ABC_DEF1);
    let table = Table::load(&mut rng);
    let mut sum = 0.0;
    for report in 0..REPORTS {
        sum += table.rises(report / 8 % WIDTH) / (1 + report % 7) as f64;
    }
    println!("{:.3}", sum);
}

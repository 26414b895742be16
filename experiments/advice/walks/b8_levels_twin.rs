// Removes the mean of each sensor (a column) from a 4096 x 2048 record of u16 samples, row by row.
const ROWS: usize = 4096;
const COLS: usize = 2048;

#[inline(never)]
fn centre_by_row(rec: &mut [u16]) {
    let mut sum = vec![0u64; COLS];
    for row in rec.chunks_exact(COLS) {
        for c in 0..COLS {
            sum[c] += row[c] as u64;
        }
    }
    let mean: Vec<u16> = sum.iter().map(|s| (s / ROWS as u64) as u16).collect();
    for row in rec.chunks_exact_mut(COLS) {
        for c in 0..COLS {
            row[c] = row[c].wrapping_sub(mean[c]).wrapping_add(20000);
        }
    }
}

fn main() {
    let mut s = 31u32;
    let mut rec: Vec<u16> = (0..ROWS * COLS)
        .map(|_| {
            for _ in 0..5 {
                s = (s ^ (s >> 15)).wrapping_mul(0x2c1b3c6d).wrapping_add(0x9e3779b9);
            }
            (s >> 18) as u16
        })
        .collect();
    centre_by_row(&mut rec);
    let mut sum = 0u64;
    for v in &rec {
        sum = sum.wrapping_mul(31).wrapping_add(*v as u64);
    }
    println!("{:016x}", sum);
}

// Matrix times vector, by rows: 2300 x 1700 doubles (30 MiB), four times.
const R: usize = 2300;
const C: usize = 1700;

#[inline(never)]
fn multiply_rows(m: &[f64], x: &[f64], y: &mut [f64]) {
    for (row, out) in m.chunks_exact(C).zip(y.iter_mut()) {
        let mut s = 0.0;
        for (a, b) in row.iter().zip(x) {
            s += a * b;
        }
        *out = s;
    }
}

fn main() {
    let mut s = 21u32;
    let mut next = || {
        for _ in 0..4 {
            s = (s ^ (s >> 15)).wrapping_mul(0x2c1b3c6d).wrapping_add(0x9e3779b9);
        }
        (s >> 20) as f64
    };
    let m: Vec<f64> = (0..R * C).map(|_| next()).collect();
    let mut y = vec![0.0; R];
    let mut sum = 0.0;
    for _ in 0..20 {
        let x: Vec<f64> = (0..C).map(|_| next()).collect();
        multiply_rows(&m, &x, &mut y);
        sum += y.iter().sum::<f64>();
    }
    println!("{:.0}", sum);
}

// Gravitational simulation of a few hundred bodies: compute bound.
fn main() {
    const N: usize = 400;
    let mut x = [[0f64; 3]; N];
    let mut v = [[0f64; 3]; N];
    let mut s: u64 = 11;
    for c in x.iter_mut().flatten() {
        s = s.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        *c = (s >> 40) as f64 / 1e6;
    }
    for _ in 0..1500 {
        for i in 0..N {
            let mut a = [0f64; 3];
            for j in 0..N {
                let d = [x[j][0] - x[i][0], x[j][1] - x[i][1], x[j][2] - x[i][2]];
                let r2 = d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + 0.5;
                let w = 1.0 / (r2 * r2.sqrt());
                for k in 0..3 { a[k] += d[k] * w; }
            }
            for k in 0..3 { v[i][k] += a[k] * 0.01; }
        }
        for i in 0..N { for k in 0..3 { x[i][k] += v[i][k] * 0.01; } }
    }
    println!("{:.9}", x.iter().map(|p| p[0] + p[1] * 2.0).sum::<f64>());
}

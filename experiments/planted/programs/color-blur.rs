// Image filter: synthesises a noise image (set-up), then blurs it in passes: rows, then columns.
const W: usize = 1024;
const H: usize = 1024;
const PITCH: usize = 1024;

fn synth(img: &mut [f32]) {
    let mut s: u64 = 99;
    for oct in 0..SETUP {
        for y in 0..H {
            for x in 0..W {
                s ^= s << 13; s ^= s >> 7; s ^= s << 17;
                let v = ((s >> 40) as f32) / 16777216.0;
                img[y * PITCH + x] += v / (1 + oct) as f32;
            }
        }
    }
}
const SETUP: usize = 130;
const PASSES: usize = 30;

fn rows(img: &mut [f32]) {
    for y in 0..H {
        let r = &mut img[y * PITCH..y * PITCH + W];
        let mut acc = r[0];
        for v in r.iter_mut() { acc = acc * 0.7 + *v * 0.3; *v = acc; }
        let mut acc = r[W - 1];
        for v in r.iter_mut().rev() { acc = acc * 0.7 + *v * 0.3; *v = acc; }
    }
}
fn cols(img: &mut [f32]) {
    for x in 0..W {
        let mut acc = img[x];
        for y in 0..H { let i = y * PITCH + x; acc = acc * 0.7 + img[i] * 0.3; img[i] = acc; }
        let mut acc = img[(H - 1) * PITCH + x];
        for y in (0..H).rev() { let i = y * PITCH + x; acc = acc * 0.7 + img[i] * 0.3; img[i] = acc; }
    }
}
fn main() {
    let mut img = vec![0f32; PITCH * H + 64];
    synth(&mut img);
    for _ in 0..PASSES {
        rows(&mut img);
        rows(&mut img);
        cols(&mut img);
    }
    let mut sum = 0f64;
    for y in 0..H { for x in 0..W { sum += img[y * PITCH + x] as f64; } }
    println!("{:.6} {:.6}", sum, img[500 * PITCH + 500]);
}

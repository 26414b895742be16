//! WebAxe-4's laws (The Measurement Factory; P2, appendix A.1, tables 3 and 4), drawn from hashes.

use crate::content::mix;
use std::f64::consts::PI;

/// A kilobyte, as Web Polygraph counts.
pub const KB: f64 = 1024.0;

/// How sizes of objects are distributed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Size {
    /// Exponential, of this mean.
    Exponential(f64),
    /// Log-normal, of this mean and standard deviation (of the size, not of its logarithm).
    LogNormal(f64, f64),
    /// Four classes of files: 35% up to 1 KB, 50% up to 10 KB, 14% up to 100 KB, 1% up to 1,000 KB, each uniform over
    /// nine tenths of its range.
    Classes,
}

impl Size {
    /// The size that belongs to a hash, at least one byte.
    pub fn draw(self, hash: u64) -> u64 {
        let size = match self {
            Size::Exponential(mean) => -mean * open_unit(hash).ln(),
            Size::LogNormal(mean, deviation) => {
                let variance = (1.0 + (deviation / mean).powi(2)).ln();
                (mean.ln() - variance / 2.0 + variance.sqrt() * normal(hash)).exp()
            }
            Size::Classes => {
                let class = unit(mix(hash));
                let top = [(0.35, 1.0), (0.85, 10.0), (0.99, 100.0), (1.0, 1000.0)];
                let top = top.iter().find(|(up_to, _)| class < *up_to).map_or(1.0, |(_, top)| *top);
                top * KB * (0.1 + 0.9 * unit(hash))
            }
        };
        (size as u64).max(1)
    }
}

/// A uniform number in [0, 1).
pub const fn unit(hash: u64) -> f64 {
    (hash >> 11) as f64 / (1u64 << 53) as f64
}

/// A uniform number in (0, 1], fit for a logarithm.
pub const fn open_unit(hash: u64) -> f64 {
    ((hash >> 11) + 1) as f64 / (1u64 << 53) as f64
}

/// A standard normal number (Box and Muller 1958).
pub fn normal(hash: u64) -> f64 {
    (-2.0 * open_unit(mix(hash ^ 0x6e6f)).ln()).sqrt() * (2.0 * PI * unit(mix(hash ^ 0x726d))).cos()
}

/// A number from 1 to `most`, each with a probability inverse to itself (Zipf's law).
pub fn zipf(hash: u64, most: u32) -> u32 {
    let whole: f64 = (1..=most).map(|number| 1.0 / f64::from(number)).sum();
    let mut left = unit(hash) * whole;
    let found = (1..most).find(|number| {
        left -= 1.0 / f64::from(*number);
        left < 0.0
    });
    found.unwrap_or(most)
}

/// One content type of WebAxe-4.
#[derive(Clone, Copy, Debug)]
pub struct Class {
    /// The type's name, also in object names.
    pub name: &'static str,
    /// How object names end.
    pub suffix: &'static str,
    /// The media type.
    pub media_type: &'static str,
    /// Share of all requests.
    pub share: f64,
    /// Sizes of bodies.
    pub size: Size,
    /// Share of the objects that caches may keep.
    pub cachable: f64,
}

/// The content types and their laws (P2, table 4).
pub const WEBAXE_4: [Class; 4] = [
    Class {
        name: "image",
        suffix: ".png",
        media_type: "image/png",
        share: 0.65,
        size: Size::Exponential(4.5 * KB),
        cachable: 0.80,
    },
    Class {
        name: "html",
        suffix: ".html",
        media_type: "text/html",
        share: 0.15,
        size: Size::Exponential(8.5 * KB),
        cachable: 0.90,
    },
    Class {
        name: "download",
        suffix: ".zip",
        media_type: "application/zip",
        share: 0.005,
        size: Size::LogNormal(300.0 * KB, 300.0 * KB),
        cachable: 0.95,
    },
    Class {
        name: "other",
        suffix: ".bin",
        media_type: "application/octet-stream",
        share: 0.195,
        size: Size::LogNormal(25.0 * KB, 10.0 * KB),
        cachable: 0.72,
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::{Kind, Object};

    const MANY: u32 = 2_000_000;

    fn objects(index: u8) -> impl Iterator<Item = Object> {
        (0..MANY).map(move |number| Object { kind: Kind::WebAxe(index), world: 0, number })
    }

    fn moments(sizes: &[f64]) -> (f64, f64) {
        let mean = sizes.iter().sum::<f64>() / sizes.len() as f64;
        let variance = sizes.iter().map(|size| (size - mean).powi(2)).sum::<f64>() / sizes.len() as f64;
        (mean / KB, variance.sqrt() / KB)
    }

    #[test]
    fn sizes_have_the_moments_of_table_4() {
        let wanted = [(4.5, 4.5), (8.5, 8.5), (300.0, 300.0), (25.0, 10.0)];
        for (index, (mean, deviation)) in (0..).zip(wanted) {
            let sizes: Vec<f64> = objects(index).map(|object| object.size() as f64).collect();
            let (m, d) = moments(&sizes);
            assert!((m / mean - 1.0).abs() < 0.01, "mean of {index}: {m} KB");
            assert!((d / deviation - 1.0).abs() < 0.03, "deviation of {index}: {d} KB");
        }
    }

    #[test]
    fn cachable_shares_are_those_of_table_4() {
        for (index, wanted) in (0..).zip([0.80, 0.90, 0.95, 0.72]) {
            let share = objects(index).filter(Object::is_cachable).count() as f64 / f64::from(MANY);
            assert!((share - wanted).abs() < 0.0012, "cachable of {index}: {share}");
        }
    }

    #[test]
    fn an_exponential_size_has_the_median_of_its_law() {
        let mut sizes: Vec<u64> = objects(0).map(|object| object.size()).collect();
        sizes.sort_unstable();
        let median = sizes[sizes.len() / 2] as f64 / (4.5 * KB);
        assert!((median - 2f64.ln()).abs() < 0.01, "{median}");
    }

    #[test]
    fn zipf_has_its_mean_and_its_ends() {
        let drawn: Vec<u32> = (0..100_000).map(|n| zipf(mix(n), 16)).collect();
        let mean = f64::from(drawn.iter().sum::<u32>()) / 1e5;
        // 16 over the sixteenth harmonic number.
        assert!((mean - 16.0 / 3.380_729).abs() < 0.05, "{mean}");
        assert_eq!((drawn.iter().min(), drawn.iter().max(), zipf(7, 1)), (Some(&1), Some(&16), 1));
    }

    #[test]
    fn the_shares_of_the_types_make_one() {
        assert!((WEBAXE_4.iter().map(|class| class.share).sum::<f64>() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn files_keep_to_their_classes() {
        let sizes: Vec<f64> = (0..MANY).map(|n| Size::Classes.draw(mix(n.into())) as f64 / KB).collect();
        let up_to = |top: f64| sizes.iter().filter(|size| **size <= top).count() as f64 / f64::from(MANY);
        assert!((up_to(1.0) - 0.35).abs() < 0.005 && up_to(1000.0) == 1.0, "{}", up_to(1.0));
        assert!((up_to(100.0) - 0.99).abs() < 0.002, "{}", up_to(100.0));
    }
}

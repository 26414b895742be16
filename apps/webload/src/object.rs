//! The objects of the origin. All properties of an object follow from its name: size, type, dates, content.

use crate::content::{Content, mix};
use crate::laws::{self, Size};
use std::fmt;

/// Kind of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// One of WebAxe-4's content types, by its place in [`laws::WEBAXE_4`].
    WebAxe(u8),
    /// An object of exactly so many bytes, always cachable.
    Fixed(u32),
    /// A file of the static profile.
    File,
}

/// One object of the origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Object {
    /// Kind of the object.
    pub kind: Kind,
    /// World of the client that requests the object; each client has one of its own.
    pub world: u16,
    /// Which of the objects of that kind and world.
    pub number: u32,
}

impl Default for Object {
    fn default() -> Object {
        Object { kind: Kind::Fixed(0), world: 0, number: 0 }
    }
}

impl Object {
    /// A hash of the name; everything random about the object is drawn from the hash.
    pub const fn hash(&self) -> u64 {
        let kind = match self.kind {
            Kind::WebAxe(index) => index as u64,
            Kind::Fixed(bytes) => 1 << 32 | bytes as u64,
            Kind::File => 2 << 32,
        };
        mix(mix(kind) ^ ((self.world as u64) << 32 | self.number as u64))
    }

    /// Returns how many bytes the body has.
    pub fn size(&self) -> u64 {
        match self.kind {
            Kind::WebAxe(index) => laws::WEBAXE_4[index as usize].size.draw(self.hash()),
            Kind::Fixed(bytes) => bytes.into(),
            Kind::File => Size::Classes.draw(self.hash()),
        }
    }

    /// Returns whether the origin allows caches to keep the object.
    pub fn is_cachable(&self) -> bool {
        match self.kind {
            Kind::WebAxe(index) => laws::unit(mix(self.hash() ^ 1)) < laws::WEBAXE_4[index as usize].cachable,
            Kind::Fixed(_) | Kind::File => true,
        }
    }

    /// Seconds since the epoch at which the object was last changed: within the year before 2026.
    pub const fn modified(&self) -> u64 {
        1_767_225_600 - 1 - mix(self.hash() ^ 2) % (365 * 86_400)
    }

    /// The body.
    pub const fn content(&self) -> Content {
        Content::of(mix(self.hash() ^ 3))
    }

    /// The media type.
    pub const fn media_type(&self) -> &'static str {
        match self.kind {
            Kind::WebAxe(index) => laws::WEBAXE_4[index as usize].media_type,
            Kind::Fixed(_) | Kind::File => "application/octet-stream",
        }
    }

    /// The object that a target in origin form names; the query plays no part.
    pub fn named(target: &str) -> Option<Object> {
        let path = target.split('?').next()?;
        let mut parts = path.strip_prefix('/')?.split('/');
        let (first, second, third) = (parts.next()?, parts.next()?, parts.next());
        if parts.next().is_some() {
            return None;
        }
        match (first, third) {
            ("fixed", Some(number)) => {
                Some(Object { kind: Kind::Fixed(second.parse().ok()?), world: 0, number: number.parse().ok()? })
            }
            ("files", None) => {
                Some(Object { kind: Kind::File, world: 0, number: second.strip_suffix(".dat")?.parse().ok()? })
            }
            (world, Some(file)) => {
                let index = laws::WEBAXE_4.iter().position(|class| class.name == second)?;
                let number = file.strip_suffix(laws::WEBAXE_4[index].suffix)?.parse().ok()?;
                let world = world.strip_prefix('w')?.parse().ok()?;
                Some(Object { kind: Kind::WebAxe(u8::try_from(index).ok()?), world, number })
            }
            _ => None,
        }
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self.kind {
            Kind::WebAxe(index) => {
                let class = &laws::WEBAXE_4[index as usize];
                write!(f, "/w{}/{}/{}{}", self.world, class.name, self.number, class.suffix)
            }
            Kind::Fixed(bytes) => write!(f, "/fixed/{bytes}/{}", self.number),
            Kind::File => write!(f, "/files/{}.dat", self.number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_reads_back_as_its_object() {
        let kinds = (0..4).map(Kind::WebAxe).chain([Kind::Fixed(4096), Kind::File]);
        for (kind, number) in kinds.zip(7..) {
            let world = if matches!(kind, Kind::WebAxe(_)) { 3 } else { 0 };
            let object = Object { kind, world, number };
            assert_eq!(Object::named(&object.to_string()), Some(object), "{object}");
            assert_eq!(Object::named(&format!("{object}?post=1")), Some(object));
        }
    }

    #[test]
    fn names_of_no_object_are_refused() {
        for name in ["", "/", "x", "/w0/image/1", "/w0/image/x.png", "/w0/film/1.png", "/wx/image/1.png", "/fixed/1"] {
            assert_eq!(Object::named(name), None, "{name}");
        }
        assert_eq!(Object::named("/fixed/99999999999/1"), None);
        assert_eq!(Object::named("/w0/image/1.png/2"), None);
    }

    #[test]
    fn the_properties_of_an_object_never_change() {
        let object = Object { kind: Kind::WebAxe(0), world: 0, number: 1 };
        assert_eq!((object.to_string().as_str(), object.media_type()), ("/w0/image/1.png", "image/png"));
        assert_eq!((object.size(), object.is_cachable(), object.modified()), (15_579, true, 1_740_214_365));
    }
}

//! Loop devices that vanish with their last user.
//!
//! The kernel takes such a device away (`LO_FLAGS_AUTOCLEAR`, set in the call that makes it) when neither a descriptor
//! nor a mount holds it any more, however its maker ends.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::path::{Path, PathBuf};

/// Device that hands out loop devices.
pub(crate) const CONTROL: &str = "/dev/loop-control";
const GET_FREE: libc::Ioctl = 0x4C82;
const CONFIGURE: libc::Ioctl = 0x4C0A;
const AUTOCLEAR: u32 = 4;
/// No second copy of the file in the page cache; the kernel ignores it where the file system cannot.
const DIRECT_IO: u32 = 16;
/// Between the question for a free device and its use somebody else may have taken it.
const TRIES: usize = 64;

/// `struct loop_config` of linux/loop.h, with `struct loop_info64` in it.
#[repr(C)]
struct Config {
    file: u32,
    block_size: u32,
    device: u64,
    inode: u64,
    raw_device: u64,
    offset: u64,
    size_limit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; 64],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
    reserved: [u64; 8],
}

const _: () = assert!(size_of::<Config>() == 304);

/// A loop device of a file. Mount it before this is dropped.
pub(crate) struct LoopDevice {
    _device: File,
    pub(crate) path: PathBuf,
}

impl LoopDevice {
    /// Makes one of an image. Errors: the system's, such as that the caller is not root.
    pub(crate) fn of(image: &Path) -> io::Result<Self> {
        let image = File::options().read(true).write(true).open(image)?;
        let control = File::options().read(true).write(true).open(CONTROL)?;
        for _ in 0..TRIES {
            // SAFETY: this request takes no argument.
            let number = unsafe { libc::ioctl(control.as_raw_fd(), GET_FREE) };
            if number < 0 {
                return Err(io::Error::last_os_error());
            }
            let path = PathBuf::from(format!("/dev/loop{number}"));
            let device = File::options().read(true).write(true).open(&path)?;
            match configure(device.as_raw_fd(), image.as_raw_fd()) {
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {}
                configured => return configured.map(|()| LoopDevice { _device: device, path }),
            }
        }
        Err(io::Error::from_raw_os_error(libc::EBUSY))
    }
}

fn configure(device: RawFd, image: RawFd) -> io::Result<()> {
    // SAFETY: all bytes zero are a valid value of a struct of integers.
    let mut config: Config = unsafe { std::mem::zeroed() };
    config.file = image as u32;
    config.flags = AUTOCLEAR | DIRECT_IO;
    // SAFETY: the struct is as the kernel declares it, and outlives the call.
    match unsafe { libc::ioctl(device, CONFIGURE, &raw const config) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

//! The system call `bpf`, as far as a scheduler needs it. Layouts: `union bpf_attr` in include/uapi/linux/bpf.h.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

const MAP_CREATE: i32 = 0;
const MAP_LOOKUP: i32 = 1;
const MAP_UPDATE: i32 = 2;
const MAP_DELETE: i32 = 3;
const PROG_LOAD: i32 = 5;
const INFO_BY_FD: i32 = 15;
const TYPES_LOAD: i32 = 18;
const LINK_CREATE: i32 = 28;

const TYPE_STRUCT_OPS_MAP: u32 = 26;
const TYPE_STRUCT_OPS_PROGRAM: u32 = 27;
const ATTACH_STRUCT_OPS: u32 = 44;
/// `BPF_F_LINK`: the map does nothing until a link attaches it, and is gone with the link.
const BY_LINK: u32 = 1 << 13;
const SLEEPS: u32 = 1 << 4;

/// A kind of map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapKind {
    Hash = 1,
    Array = 2,
}

#[repr(C)]
#[derive(Default)]
struct MapCreate {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    map_flags: u32,
    inner_map_fd: u32,
    numa_node: u32,
    map_name: [u8; 16],
    map_ifindex: u32,
    btf_fd: u32,
    btf_key_type_id: u32,
    btf_value_type_id: u32,
    btf_vmlinux_value_type_id: u32,
}

#[repr(C)]
struct TypesLoad {
    types: u64,
    log: u64,
    bytes: u32,
    log_size: u32,
    log_level: u32,
    padding: u32,
}

#[repr(C)]
struct MapElement {
    map: u64,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
#[derive(Default)]
struct ProgLoad {
    prog_type: u32,
    instructions: u32,
    text: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kern_version: u32,
    prog_flags: u32,
    prog_name: [u8; 16],
    prog_ifindex: u32,
    expected_attach_type: u32,
    prog_btf_fd: u32,
    func_info_rec_size: u32,
    func_info: u64,
    func_info_cnt: u32,
    line_info_rec_size: u32,
    line_info: u64,
    line_info_cnt: u32,
    attach_btf_id: u32,
    attach_btf_obj_fd: u32,
    padding: u32,
}

#[repr(C)]
struct LinkCreate {
    map: u32,
    target: u32,
    attach_type: u32,
    flags: u32,
}

#[repr(C)]
struct InfoByFd {
    object: u32,
    length: u32,
    info: u64,
}

/// `struct bpf_prog_info` up to the needed fields.
#[repr(C)]
struct ProgInfo {
    head: [u8; 20],
    translated_bytes: u32,
    between: [u8; 192],
    verified: u32,
    padding: u32,
}

/// Calls it with what the kernel reads, or reads and fills.
fn call<T>(command: i32, attributes: &mut T) -> io::Result<i32> {
    // SAFETY: the structure is laid out as the command's part of the union and as long as given; what its pointers name
    // outlives the call, as each caller below sees to.
    let got = unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_mut(attributes), size_of::<T>()) };
    i32::try_from(got).ok().filter(|got| *got >= 0).ok_or_else(io::Error::last_os_error)
}

fn descriptor<T>(command: i32, attributes: &mut T) -> io::Result<OwnedFd> {
    let descriptor = call(command, attributes)?;
    // SAFETY: a fresh descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

fn named(name: &str) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes.iter_mut().take(15).zip(name.bytes()).for_each(|(to, from)| *to = from);
    bytes
}

/// Makes a map.
pub fn map(kind: MapKind, name: &str, key: u32, value: u32, entries: u32) -> io::Result<OwnedFd> {
    let (map_type, map_name) = (kind as u32, named(name));
    descriptor(
        MAP_CREATE,
        &mut MapCreate {
            map_type,
            key_size: key,
            value_size: value,
            max_entries: entries,
            map_name,
            ..MapCreate::default()
        },
    )
}

/// Loads types of ours, one integer: the kernel requires some, and looks at none.
fn some_types() -> io::Result<OwnedFd> {
    let strings = *b"\0int\0";
    let integer = [1u32, 1 << 24, 4, 32];
    let head = [0x0001_eb9f, 24, 0, 16, 16, strings.len() as u32];
    let mut types: Vec<u8> = head.into_iter().chain(integer).flat_map(u32::to_le_bytes).collect();
    types.extend(strings);
    let bytes = types.len() as u32;
    let mut load = TypesLoad { types: types.as_ptr() as u64, log: 0, bytes, log_size: 0, log_level: 0, padding: 0 };
    descriptor(TYPES_LOAD, &mut load)
}

/// Makes the map that stands for a table of functions: of the kernel's type with this number and size.
pub fn functions(name: &str, value_type: u32, bytes: u32) -> io::Result<OwnedFd> {
    let types = some_types()?;
    descriptor(
        MAP_CREATE,
        &mut MapCreate {
            map_type: TYPE_STRUCT_OPS_MAP,
            key_size: 4,
            value_size: bytes,
            max_entries: 1,
            map_flags: BY_LINK,
            map_name: named(name),
            btf_fd: types.as_raw_fd() as u32,
            btf_vmlinux_value_type_id: value_type,
            ..MapCreate::default()
        },
    )
}

fn element(command: i32, map: &OwnedFd, key: &[u8], value: *mut u8) -> io::Result<()> {
    let map = map.as_raw_fd() as u64;
    let mut element = MapElement { map, key: key.as_ptr() as u64, value: value as u64, flags: 0 };
    call(command, &mut element).map(drop)
}

/// Writes one element.
pub fn update(map: &OwnedFd, key: u32, value: &[u8]) -> io::Result<()> {
    element(MAP_UPDATE, map, &key.to_ne_bytes(), value.as_ptr().cast_mut())
}

/// Reads one element of so many bytes.
pub fn lookup(map: &OwnedFd, key: u32, bytes: usize) -> io::Result<Vec<u8>> {
    let mut value = vec![0; bytes];
    element(MAP_LOOKUP, map, &key.to_ne_bytes(), value.as_mut_ptr())?;
    Ok(value)
}

/// Removes one element.
pub fn delete(map: &OwnedFd, key: u32) -> io::Result<()> {
    element(MAP_DELETE, map, &key.to_ne_bytes(), std::ptr::null_mut())
}

/// Loads a program that fills the `member`-th function of the kernel's structure with this number. Errors: the kernel's
/// error, with the last lines of its verifier.
pub fn load(
    name: &str,
    text: &[u8],
    structure: u32,
    member: u32,
    sleeps: bool,
) -> Result<OwnedFd, (io::Error, String)> {
    let attempt = |log: &mut [u8]| {
        descriptor(
            PROG_LOAD,
            &mut ProgLoad {
                prog_type: TYPE_STRUCT_OPS_PROGRAM,
                instructions: (text.len() / super::compiled::INSTRUCTION) as u32,
                text: text.as_ptr() as u64,
                // The kernel requires this of a program that calls its functions; the source may be had under it.
                license: c"GPL".as_ptr() as u64,
                log_level: u32::from(!log.is_empty()),
                log_size: log.len() as u32,
                log: if log.is_empty() { 0 } else { log.as_mut_ptr() as u64 },
                prog_flags: if sleeps { SLEEPS } else { 0 },
                prog_name: named(name),
                expected_attach_type: member,
                attach_btf_id: structure,
                ..ProgLoad::default()
            },
        )
    };
    attempt(&mut []).or_else(|error| {
        let mut log = vec![0; 1 << 20];
        if let Ok(loaded) = attempt(&mut log) {
            return Ok(loaded);
        }
        let text = String::from_utf8_lossy(log.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned();
        let last: Vec<&str> = text.lines().rev().take(4).collect();
        Err((error, last.into_iter().rev().collect::<Vec<_>>().join("; ")))
    })
}

/// Attaches a table of functions for as long as the link is open.
pub fn link(functions: &OwnedFd) -> io::Result<OwnedFd> {
    let map = functions.as_raw_fd() as u32;
    descriptor(LINK_CREATE, &mut LinkCreate { map, target: 0, attach_type: ATTACH_STRUCT_OPS, flags: 0 })
}

/// Instructions that the verifier went through, and those of the program as it runs.
pub fn verified(program: RawFd) -> io::Result<(u32, u32)> {
    let mut info = ProgInfo { head: [0; 20], translated_bytes: 0, between: [0; 192], verified: 0, padding: 0 };
    let length = size_of::<ProgInfo>() as u32;
    call(INFO_BY_FD, &mut InfoByFd { object: program as u32, length, info: std::ptr::from_mut(&mut info) as u64 })?;
    Ok((info.verified, info.translated_bytes / super::compiled::INSTRUCTION as u32))
}

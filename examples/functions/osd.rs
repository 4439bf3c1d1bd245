// SPDX-License-Identifier: GPL-2.0-or-later
//! osd.rs -- what a function in Rust calls: the imports of osd.h, for the engine `wasm` (docs/wasm.md).
//!
//! A function is a crate of one file.  It begins with `mod osd;` and names its entry points with `osd::function!`.
//! The standard library is there, but for files, network, threads and clocks.
#![allow(dead_code)]

/// The number of an error, as in `enum osd_error` of osd.h.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error(pub i32);

impl Error {
    pub const NOT_FOUND: Error = Error(-1);
    pub const EXISTS: Error = Error(-2);
    /// Outside the zone, or more than the access class allows.
    pub const PERMISSION: Error = Error(-3);
    pub const NO_SPACE: Error = Error(-4);
    pub const INVALID: Error = Error(-5);
    pub const STORAGE: Error = Error(-6);
    pub const NOT_EMPTY: Error = Error(-7);
    pub const CONFLICT: Error = Error(-8);
}

pub type Result<T> = core::result::Result<T, Error>;

mod import {
    #[link(wasm_import_module = "osd")]
    extern "C" {
        pub fn read(partition: u64, object: u64, offset: u64, to: *mut u8, length: u32) -> i64;
        pub fn write(partition: u64, object: u64, offset: u64, from: *const u8, length: u32) -> i64;
        pub fn length(partition: u64, object: u64) -> i64;
        pub fn getattr(partition: u64, object: u64, page: u32, number: u32, to: *mut u8, room: u32) -> i64;
        pub fn setattr(partition: u64, object: u64, page: u32, number: u32, from: *const u8, length: u32) -> i64;
        pub fn args(to: *mut u8, room: u32) -> i64;
        pub fn args_from(offset: u32, to: *mut u8, room: u32) -> i64;
        pub fn zone(part: u32) -> i64;
        pub fn result(encoding: u32, from: *const u8, length: u32) -> i64;
        pub fn log(stream: u32, from: *const u8, length: u32) -> i64;
        pub fn progress(thousandths: i32, from: *const u8, length: u32) -> i64;
    }
}

fn check(number: i64) -> Result<u64> {
    u64::try_from(number).map_err(|_| Error(number as i32))
}

/// A slice has less than 4 GiB here, so its length is a u32.
fn size(bytes: &[u8]) -> u32 {
    bytes.len() as u32
}

/// An object, by its ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object {
    pub partition: u64,
    pub object: u64,
}

impl Object {
    /// Bytes read; fewer at the end of the object.
    pub fn read(&self, offset: u64, to: &mut [u8]) -> Result<usize> {
        let length = size(to);
        check(unsafe { import::read(self.partition, self.object, offset, to.as_mut_ptr(), length) })
            .map(|count| count as usize)
    }

    /// All of its bytes.
    pub fn read_all(&self) -> Result<Vec<u8>> {
        let mut bytes = vec![0; self.length()? as usize];
        let count = self.read(0, &mut bytes)?;
        bytes.truncate(count);
        Ok(bytes)
    }

    pub fn write(&self, offset: u64, from: &[u8]) -> Result<()> {
        let number =
            unsafe { import::write(self.partition, self.object, offset, from.as_ptr(), size(from)) };
        check(number).map(|_| ())
    }

    pub fn length(&self) -> Result<u64> {
        check(unsafe { import::length(self.partition, self.object) })
    }

    /// The value of an attribute; empty: it is undefined.
    pub fn attribute(&self, page: u32, number: u32) -> Result<Vec<u8>> {
        let mut value = vec![0; 65534];
        let length = check(unsafe {
            import::getattr(self.partition, self.object, page, number, value.as_mut_ptr(), size(&value))
        })?;
        value.truncate(length as usize);
        Ok(value)
    }

    /// No bytes make the attribute undefined.
    pub fn set_attribute(&self, page: u32, number: u32, value: &[u8]) -> Result<()> {
        let number = unsafe {
            import::setattr(self.partition, self.object, page, number, value.as_ptr(), size(value))
        };
        check(number).map(|_| ())
    }
}

/// The zone of the call.  Its object id is 0 if it is a partition.
pub fn zone() -> Object {
    unsafe { Object { partition: import::zone(0) as u64, object: import::zone(1) as u64 } }
}

pub fn args() -> Vec<u8> {
    let mut bytes = vec![0; unsafe { import::args(core::ptr::null_mut(), 0) } as usize];
    let length = size(&bytes);
    unsafe { import::args(bytes.as_mut_ptr(), length) };
    bytes
}

/// Copies the arguments from an offset on.  The number of bytes there, of which those that have room are stored.
pub fn args_from(offset: u32, to: &mut [u8]) -> usize {
    let length = size(to);
    unsafe { import::args_from(offset, to.as_mut_ptr(), length) as usize }
}

/// Adds bytes to the result of the call.
pub fn result(bytes: &[u8]) -> Result<()> {
    check(unsafe { import::result(0, bytes.as_ptr(), size(bytes)) }).map(|_| ())
}

/// Adds JSON to the result of the call.
pub fn json(text: &str) -> Result<()> {
    check(unsafe { import::result(1, text.as_ptr(), size(text.as_bytes())) }).map(|_| ())
}

/// Adds a line to the output of the call.
pub fn log(line: &str) {
    write_line(1, line);
}

/// Adds a line to the errors of the call.
pub fn error(line: &str) {
    write_line(2, line);
}

fn write_line(stream: u32, line: &str) {
    let line = format!("{}\n", line);
    unsafe { import::log(stream, line.as_ptr(), size(line.as_bytes())) };
}

/// Thousandths done, -1: unknown; a text of 256 bytes at most.
pub fn progress(thousandths: i32, text: &str) -> Result<()> {
    check(unsafe { import::progress(thousandths, text.as_ptr(), size(text.as_bytes())) }).map(|_| ())
}

/// Runs an entry point.  A panic is a line of the errors, and a trap.
pub fn run(entry: fn() -> Result<()>) -> i32 {
    std::panic::set_hook(Box::new(|info| error(&info.to_string())));
    match entry() {
        Ok(()) => 0,
        Err(Error(number)) => -number,
    }
}

/// An entry point: `osd::function!(main, count);` exports `count`, a `fn() -> osd::Result<()>`, as `main`.
macro_rules! function {
    ($name:ident, $entry:path) => {
        mod $name {
            #[export_name = concat!("osd_function_", stringify!($name))]
            extern "C" fn entry() -> i32 {
                crate::osd::run($entry)
            }
        }
    };
}
pub(crate) use function;

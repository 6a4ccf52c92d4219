//! How large a module is for the compiler: counted from its sections, before anything is compiled.
//!
//! ```text
//!   module ── count ──► functions, locals, other items, bytes ── more than a limit? ──► refused
//!                                  │
//!                                  └─ memory to compile it, estimated ──► lent, or refused
//! ```
//!
//! The memory of the compiler grows with the number of functions, with the longest of them, and with their bytes: a
//! module of 800 KB with 200,000 empty functions took a gigabyte. Modules are a stranger's, so what they make the
//! compiler take is lent from the memory of the program that opens them.

use std::fmt;

use crate::limits::WasmLimits;
use crate::section::{ModuleSection, damaged, number, sections, sized};

/// Memory to compile, in bytes: of any module, per function, per byte of the longest function, per byte of all of
/// them, and per item of another kind. Measured on x86-64, and rounded up: 5,100 for an empty function; 1,180 for a byte
/// of a function that calls without end, the worst that was found; 90 for each byte of such functions, as code
/// and relocations are kept until the end.
const BASE_BYTES: u64 = 2 << 20;
const PER_FUNCTION: u64 = 5_500;
const PER_LONGEST_BYTE: u64 = 1_300;
const PER_CODE_BYTE: u64 = 110;
const PER_ITEM: u64 = 512;
const PER_ELEMENT_BYTE: u64 = 32;

/// What a module consists of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ModuleSize {
    functions: u64,
    /// Of all functions together.
    locals: u64,
    /// Types, imports, tables, memories, globals, exports, segments of elements and of data.
    items: u64,
    /// Bytes of the segments of elements.
    element_bytes: u64,
    longest_bytes: u64,
    code_bytes: u64,
}

impl ModuleSize {
    /// Counts. The compiler finds all other faults of the module.
    ///
    /// # Errors
    /// When it is damaged, or has more of something than a guest may have.
    pub(crate) fn of_module(module: &[u8]) -> Result<Self, String> {
        const CUSTOM: u8 = 0;
        const FUNCTIONS: u8 = 3;
        const START: u8 = 8;
        const ELEMENTS: u8 = 9;
        const CODE: u8 = 10;
        let mut size = ModuleSize::default();
        for section in sections(module)? {
            let ModuleSection { at, id, content } = section?;
            if matches!(id, CUSTOM | START) {
                continue;
            }
            let (count, rest) = number(content).ok_or_else(|| damaged(at))?;
            match id {
                // The bodies are counted, which are as many.
                FUNCTIONS => {}
                CODE => size.add_functions(rest).ok_or_else(|| damaged(at))?,
                _ => size.items = size.items.saturating_add(count),
            }
            if id == ELEMENTS {
                size.element_bytes += content.len() as u64;
            }
        }
        size.check()?;
        Ok(size)
    }

    fn add_functions(&mut self, mut bodies: &[u8]) -> Option<()> {
        while !bodies.is_empty() {
            let (body, after) = sized(bodies)?;
            bodies = after;
            let bytes = body.len() as u64;
            self.functions += 1;
            self.code_bytes += bytes;
            self.longest_bytes = self.longest_bytes.max(bytes);
            self.locals = self.locals.saturating_add(locals(body)?);
        }
        Some(())
    }

    fn check(&self) -> Result<(), String> {
        for (found, most, what) in [
            (self.functions, WasmLimits::FUNCTIONS, "functions"),
            (self.locals, WasmLimits::LOCALS, "local variables"),
            (
                self.items,
                WasmLimits::ITEMS,
                "types, imports, tables, globals, exports and segments",
            ),
        ] {
            if found > most {
                return Err(format!(
                    "it has {found} {what}, and {most} is the most; leave out what it does not use"
                ));
            }
        }
        let (len, most) = (self.longest_bytes, WasmLimits::FUNCTION_BYTES as u64);
        if len > most {
            return Err(format!(
                "it has a function of {len} bytes, and {most} is the most; have the compiler inline less"
            ));
        }
        Ok(())
    }

    /// The most memory that its compilation takes, in bytes.
    pub(crate) fn compile_bytes(&self) -> u64 {
        BASE_BYTES
            + PER_FUNCTION * self.functions
            + PER_LONGEST_BYTE * self.longest_bytes
            + PER_CODE_BYTE * self.code_bytes
            + PER_ITEM * self.items
            + PER_ELEMENT_BYTE * self.element_bytes
    }
}

/// In words, for the sentence of a module that takes too much memory.
impl fmt::Display for ModuleSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ModuleSize { functions, code_bytes, longest_bytes, .. } = self;
        write!(f, "{functions} functions of {code_bytes} bytes, the longest of {longest_bytes}")
    }
}

/// The local variables that the body of a function declares: groups of a count and a type.
fn locals(body: &[u8]) -> Option<u64> {
    /// A reference to something, whose type is a number after it.
    const REFERENCES: [u8; 2] = [0x63, 0x64];
    let (groups, mut rest) = number(body)?;
    let mut locals = 0u64;
    for _ in 0..groups {
        let (count, of) = number(rest)?;
        let (kind, after) = of.split_first()?;
        rest = if REFERENCES.contains(kind) { number(after)?.1 } else { after };
        locals = locals.saturating_add(count);
    }
    Some(locals)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(text: &str) -> Result<ModuleSize, String> {
        ModuleSize::of_module(&wat::parse_str(format!("(module {text})")).expect("well-formed"))
    }

    #[test]
    fn everything_is_counted() {
        let text = r#"(type (func)) (import "a" "b" (func)) (memory 1) (table 2 funcref)
            (global i32 (i32.const 1)) (export "m" (memory 0)) (elem (i32.const 0) 0 0)
            (data (i32.const 0) "abc") (start $f)
            (func $f (local i32 i32 i64) nop) (func (local funcref) nop nop)"#;
        let size = size(text).expect("small");
        assert_eq!((size.functions, size.locals), (2, 4));
        // A type, an import, a memory, a table, a global, an export, and two segments.
        assert_eq!(size.items, 8);
        // The bodies: groups of locals, instructions and an end.
        assert_eq!((size.longest_bytes, size.code_bytes), (7, 7 + 6));
    }

    #[test]
    fn more_than_a_guest_may_have_is_refused_with_its_number() {
        let refused = |text: &str| size(text).expect_err("too many");
        let functions = "(func)".repeat(WasmLimits::FUNCTIONS as usize + 1);
        assert_eq!(
            refused(&functions),
            "it has 10001 functions, and 10000 is the most; leave out what it does not use"
        );
        let globals = "(global i32 (i32.const 1))".repeat(WasmLimits::ITEMS as usize + 1);
        assert!(refused(&globals).starts_with("it has 10001 types, imports, tables"));
        let long = format!("(func {})", "nop ".repeat(WasmLimits::FUNCTION_BYTES));
        assert!(refused(&long).contains("have the compiler inline less"));
        // Groups of 50,000 locals are a few bytes each.
        let module = |groups: usize| {
            let group = [0xd0, 0x86, 0x03, 0x7f].repeat(groups);
            let body = [&[groups as u8][..], &group, &[0x0b]].concat();
            let section = [&[1, body.len() as u8][..], &body].concat();
            [b"\0asm\x01\0\0\0\x0a", &[section.len() as u8][..], &section].concat()
        };
        assert_eq!(ModuleSize::of_module(&module(10)).expect("500,000").locals, 500_000);
        assert!(
            ModuleSize::of_module(&module(11))
                .expect_err("550,000")
                .contains("550000 local variables")
        );
    }

    #[test]
    fn a_damaged_module_is_refused() {
        let whole =
            wat::parse_str("(module (func (local i32) nop) (func nop))").expect("well-formed");
        for cut in 9..whole.len() {
            let _ = ModuleSize::of_module(&whole[..cut]);
        }
        assert!(
            ModuleSize::of_module(&whole[..whole.len() - 1])
                .expect_err("cut")
                .contains("cut short")
        );
    }

    #[test]
    fn memory_grows_with_functions_and_with_the_longest() {
        let bytes = |size: ModuleSize| size.compile_bytes() - BASE_BYTES;
        let many = ModuleSize {
            functions: 10_000,
            code_bytes: 20_000,
            longest_bytes: 2,
            ..ModuleSize::default()
        };
        assert!((51_000_000..64_000_000).contains(&bytes(many)), "{}", bytes(many));
        let long = ModuleSize {
            functions: 1,
            code_bytes: 120_000,
            longest_bytes: 120_000,
            ..ModuleSize::default()
        };
        assert!((155_000_000..180_000_000).contains(&bytes(long)), "{}", bytes(long));
    }
}

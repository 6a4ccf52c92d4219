//! NumPy's `.npy` files, and raw ones.
//!
//! ```text
//!    0  "\x93NUMPY"  version: major, minor     8  length of the text: u16 (version 1) or u32 (2, 3)
//!   10  "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }", spaces, newline    (version 1)
//!  128  elements
//! ```
//! This program writes version 1 with 128 bytes before the elements, as `numpy.save` does.

use std::sync::Arc;

use merganser_sort::Error;
use merganser_storage::{Storage, StorageExt};

use super::{Matrix, MatrixElement, MatrixError, MatrixFormat, MatrixShape};

const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// Bytes before the elements of a file that this program writes. The longest text, with two numbers of
/// 20 digits, is 110 bytes long.
const HEADER_BYTES: usize = 128;

/// The longest text that is read. NumPy's own limit is 10000.
const TEXT_BYTES_MOST: u64 = 10_000;

pub(super) fn raw(
    storage: Arc<dyn Storage>,
    element: MatrixElement,
    shape: MatrixShape,
) -> Result<Matrix, MatrixError> {
    let matrix = Matrix { storage, element, shape, by_columns: false, data_offset: 0 };
    check_size(&matrix)?;
    Ok(matrix)
}

pub(super) fn open(storage: Arc<dyn Storage>) -> Result<Matrix, MatrixError> {
    let fault = |offset: u64, detail: String| input(&*storage, offset, detail);
    let mut start = [0; 12];
    let len = storage.read_at(0, &mut start)?;
    if len < 10 || !start.starts_with(MAGIC) {
        let detail = "not a .npy file; write one with numpy.save, or say that it is raw";
        return Err(fault(0, detail.to_owned()));
    }
    let (text_offset, text_bytes) = match start[6] {
        1 => (10, u64::from(u16::from_le_bytes([start[8], start[9]]))),
        2 | 3 => (12, u64::from(u32::from_le_bytes([start[8], start[9], start[10], start[11]]))),
        other => {
            let detail = format!("a .npy file of version {other}; this program reads 1, 2 and 3");
            return Err(fault(6, detail));
        }
    };
    if text_bytes > TEXT_BYTES_MOST || text_offset + text_bytes > storage.size() {
        let detail = format!(
            "a header of {text_bytes} bytes; the file is damaged, or its elements are records"
        );
        return Err(fault(8, detail));
    }
    let text = storage.read_vec(text_offset, text_bytes as usize)?;
    let header = MatrixHeader::parse(&text).map_err(|detail| fault(text_offset, detail))?;
    let matrix = Matrix {
        element: header.element,
        shape: header.shape,
        by_columns: header.by_columns,
        data_offset: text_offset + text_bytes,
        storage,
    };
    check_size(&matrix)?;
    Ok(matrix)
}

/// The header, before the elements.
pub(super) fn header(format: MatrixFormat, element: MatrixElement, shape: MatrixShape) -> Vec<u8> {
    if format == MatrixFormat::Raw {
        return Vec::new();
    }
    let code = code(element);
    let MatrixShape { rows, columns } = shape;
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&[1, 0]);
    bytes.extend_from_slice(&((HEADER_BYTES - 10) as u16).to_le_bytes());
    let text =
        format!("{{'descr': '{code}', 'fortran_order': False, 'shape': ({rows}, {columns}), }}");
    bytes.extend_from_slice(text.as_bytes());
    bytes.resize(HEADER_BYTES - 1, b' ');
    bytes.push(b'\n');
    bytes
}

fn code(element: MatrixElement) -> &'static str {
    match element {
        MatrixElement::F32 => "<f4",
        MatrixElement::F64 => "<f8",
        MatrixElement::I32 => "<i4",
    }
}

fn input(storage: &dyn Storage, offset: u64, detail: String) -> MatrixError {
    Error::Input { file: storage.name().to_owned(), offset, detail }.into()
}

fn check_size(matrix: &Matrix) -> Result<(), MatrixError> {
    let Matrix { storage, element, shape, data_offset, .. } = matrix;
    let MatrixShape { rows, columns } = *shape;
    let found = storage.size();
    let wanted = shape.bytes(*element).and_then(|bytes| bytes.checked_add(*data_offset));
    if wanted == Some(found) {
        return Ok(());
    }
    let wanted = wanted.map_or_else(|| "more than any file has".to_owned(), |n| n.to_string());
    let detail = format!(
        "the file ends here, but {rows} rows and {columns} columns of {} need {wanted} bytes; give its real shape, or make the file again",
        element.name()
    );
    Err(input(&**storage, found, detail))
}

struct MatrixHeader {
    element: MatrixElement,
    shape: MatrixShape,
    by_columns: bool,
}

impl MatrixHeader {
    /// Reads the text: a dictionary as Python writes it, with exactly three keys.
    fn parse(text: &[u8]) -> Result<Self, String> {
        let mut text = HeaderText(text);
        let (mut element, mut shape, mut by_columns) = (None, None, None);
        text.expect(b'{')?;
        while !text.accept(b'}') {
            let key = text.string()?;
            text.expect(b':')?;
            match key {
                b"descr" if element.is_none() => element = Some(text.element()?),
                b"fortran_order" if by_columns.is_none() => by_columns = Some(text.boolean()?),
                b"shape" if shape.is_none() => shape = Some(text.shape()?),
                _ => return Err(NOT_A_HEADER.to_owned()),
            }
            if !text.accept(b',') {
                text.expect(b'}')?;
                break;
            }
        }
        text.skip_space();
        match (element, shape, by_columns) {
            (Some(element), Some(shape), Some(by_columns)) if text.0.is_empty() => {
                Ok(MatrixHeader { element, shape, by_columns })
            }
            _ => Err(NOT_A_HEADER.to_owned()),
        }
    }
}

const NOT_A_HEADER: &str =
    "not a header that numpy.save writes; the file is damaged, save the matrix again";

/// The rest of a header's text.
struct HeaderText<'a>(&'a [u8]);

impl<'a> HeaderText<'a> {
    fn skip_space(&mut self) {
        self.0 = self.0.trim_ascii_start();
    }

    fn accept(&mut self, byte: u8) -> bool {
        self.skip_space();
        let rest = self.0.strip_prefix(&[byte]);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn expect(&mut self, byte: u8) -> Result<(), String> {
        if self.accept(byte) { Ok(()) } else { Err(NOT_A_HEADER.to_owned()) }
    }

    /// Bytes while `wanted`, at least one.
    fn word(&mut self, wanted: impl Fn(u8) -> bool) -> Result<&'a [u8], String> {
        self.skip_space();
        let len = self.0.iter().take_while(|byte| wanted(**byte)).count();
        if len == 0 {
            return Err(NOT_A_HEADER.to_owned());
        }
        let (word, rest) = self.0.split_at(len);
        self.0 = rest;
        Ok(word)
    }

    fn string(&mut self) -> Result<&'a [u8], String> {
        let quote = if self.accept(b'"') { b'"' } else { b'\'' };
        if quote == b'\'' {
            self.expect(quote)?;
        }
        let string = self.word(|byte| byte != quote)?;
        self.expect(quote)?;
        Ok(string)
    }

    fn boolean(&mut self) -> Result<bool, String> {
        match self.word(|byte| byte.is_ascii_alphabetic())? {
            b"True" => Ok(true),
            b"False" => Ok(false),
            _ => Err(NOT_A_HEADER.to_owned()),
        }
    }

    fn element(&mut self) -> Result<MatrixElement, String> {
        let wanted = "convert it to float32, float64 or int32 with astype()";
        if self.accept(b'[') {
            return Err(format!("its elements are records; {wanted}"));
        }
        let found = self.string()?;
        let all = [MatrixElement::F32, MatrixElement::F64, MatrixElement::I32];
        all.into_iter().find(|element| code(*element).as_bytes() == found).ok_or_else(|| {
            let found = String::from_utf8_lossy(found);
            format!("its elements are of type {found:?}; {wanted}")
        })
    }

    fn shape(&mut self) -> Result<MatrixShape, String> {
        self.expect(b'(')?;
        let mut sides = Vec::new();
        while !self.accept(b')') {
            let digits = self.word(|byte| byte.is_ascii_digit())?;
            let side = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
            sides.push(side.ok_or_else(|| NOT_A_HEADER.to_owned())?);
            if !self.accept(b',') {
                self.expect(b')')?;
                break;
            }
        }
        match sides[..] {
            [rows, columns] => Ok(MatrixShape { rows, columns }),
            _ => Err(format!(
                "it has {} dimensions; a matrix has two, make them with reshape()",
                sides.len()
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use merganser_storage::Directory;
    use merganser_storage::memory::MemoryDirectory;

    fn file(bytes: &[u8]) -> Arc<dyn Storage> {
        let storage = MemoryDirectory::new().create("m.npy").expect("creates");
        storage.write_at(0, bytes).expect("writes");
        storage
    }

    /// A file of version 1 with this text.
    fn with_text(text: &str, elements: &[u8]) -> Vec<u8> {
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend_from_slice(&(text.len() as u16).to_le_bytes());
        [bytes.as_slice(), text.as_bytes(), elements].concat()
    }

    fn refusal(bytes: &[u8]) -> String {
        open(file(bytes)).err().expect("refused").to_string()
    }

    #[test]
    fn a_header_is_read_as_it_is_written() {
        for element in [MatrixElement::F32, MatrixElement::F64, MatrixElement::I32] {
            let shape = MatrixShape { rows: 2, columns: 3 };
            let mut bytes = header(MatrixFormat::Npy, element, shape);
            assert_eq!(bytes.len(), HEADER_BYTES);
            bytes.resize(HEADER_BYTES + 6 * element.bytes() as usize, 0);
            let matrix = open(file(&bytes)).expect("opens");
            assert_eq!((matrix.element(), matrix.shape()), (element, shape));
            assert_eq!((matrix.data_offset, matrix.by_columns), (128, false));
        }
        let longest = MatrixShape { rows: u64::MAX, columns: u64::MAX };
        assert_eq!(header(MatrixFormat::Npy, MatrixElement::F64, longest).len(), HEADER_BYTES);
    }

    #[test]
    fn other_programs_may_write_the_text_in_another_way() {
        let text = "{\"shape\":(1,2),'fortran_order':True,'descr':'<i4'}";
        let matrix = open(file(&with_text(text, &[0; 8]))).expect("opens");
        assert_eq!(matrix.shape(), MatrixShape { rows: 1, columns: 2 });
        assert!(matrix.by_columns);
        let mut second = with_text(text, &[0; 8]);
        second[6] = 2;
        second.splice(10..10, [0, 0]);
        assert_eq!(open(file(&second)).expect("opens").data_offset, 12 + text.len() as u64);
    }

    #[test]
    fn a_file_that_is_no_matrix_says_why() {
        assert!(refusal(b"").contains("at byte 0: not a .npy file"));
        assert!(refusal(b"\x93NUMPY\x04\x00\x00\x00").contains("version 4"));
        assert!(refusal(b"\x93NUMPY\x01\x00\xff\x00").contains("a header of 255 bytes"));
        let text = |element: &str, shape: &str| {
            format!("{{'descr': {element}, 'fortran_order': False, 'shape': {shape}, }}\n")
        };
        let cases = [
            ("'<c8'", "(1, 1)", "of type \"<c8\"; convert"),
            ("'>f8'", "(1, 1)", "of type \">f8\"; convert"),
            ("[('a', '<f8')]", "(1,)", "its elements are records"),
            ("'<f8'", "(1,)", "1 dimensions"),
            ("'<f8'", "()", "0 dimensions"),
            ("'<f8'", "(1, 1, 1)", "3 dimensions"),
            ("'<f8'", "(1, x)", "not a header"),
            ("'<f8'", "(1, 99999999999999999999)", "not a header"),
            ("'<f8'", "(1, 2)", "at byte 78: the file ends here, but 1 rows and 2 columns"),
            ("'<f8'", "(1, 0)", "need 70 bytes"),
            ("'<f8'", "(9999999999999999999, 9999999999999999999)", "more than any file has"),
        ];
        for (element, shape, wanted) in cases {
            let found = refusal(&with_text(&text(element, shape), &[0; 8]));
            assert!(found.contains(wanted), "{element} {shape}: {found}");
        }
        for text in ["", "{}", "{'descr': '<f8'}", "{'descr': '<f8', 'descr': '<f8'}", "{'a': 1}"] {
            assert!(refusal(&with_text(text, &[])).contains("not a header"), "{text}");
        }
    }

    #[test]
    fn any_damaged_byte_of_a_header_is_refused_or_harmless() {
        let mut whole =
            header(MatrixFormat::Npy, MatrixElement::F64, MatrixShape { rows: 1, columns: 1 });
        whole.extend_from_slice(&[0; 8]);
        for at in 0..whole.len() {
            for byte in [0, b' ', b'9', b'\'', 0xff] {
                let mut damaged = whole.clone();
                damaged[at] = byte;
                let _ = open(file(&damaged));
                let _ = open(file(&whole[..at]));
            }
        }
    }

    #[test]
    fn a_raw_file_has_the_size_of_its_shape() {
        let shape = MatrixShape { rows: 2, columns: 1 };
        assert!(raw(file(&[0; 8]), MatrixElement::F32, shape).is_ok());
        for len in [7, 9] {
            assert!(raw(file(&vec![0; len]), MatrixElement::F32, shape).is_err());
        }
    }
}

//! A minimal reader of the Protocol Buffers wire format, enough for SentencePiece models.

use crate::Error;

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum FieldValue<'a> {
    Number(u64),
    Float(f32),
    Bytes(&'a [u8]),
    Long,
}

/// Iterator over the fields of a message: number and value of each.
pub(super) struct MessageFields<'a> {
    data: &'a [u8],
    at: usize,
}

impl<'a> MessageFields<'a> {
    pub(super) fn new(data: &'a [u8]) -> MessageFields<'a> {
        MessageFields { data, at: 0 }
    }

    fn field(&mut self) -> Option<(u64, FieldValue<'a>)> {
        let key = self.number()?;
        if key >> 3 == 0 {
            return None;
        }
        let value = match key & 7 {
            0 => FieldValue::Number(self.number()?),
            1 => self.take(8).map(|_| FieldValue::Long)?,
            2 => {
                let len = usize::try_from(self.number()?).ok()?;
                FieldValue::Bytes(self.take(len)?)
            }
            5 => FieldValue::Float(f32::from_le_bytes(self.take(4)?.try_into().ok()?)),
            _ => return None,
        };
        Some((key >> 3, value))
    }

    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let taken = self.data.get(self.at..self.at.checked_add(len)?)?;
        self.at += len;
        Some(taken)
    }

    /// Reads a varint: seven bits per byte, the lowest first, at most 64 in all.
    fn number(&mut self) -> Option<u64> {
        let mut number = 0u64;
        for shift in (0..70).step_by(7) {
            let byte = self.take(1)?[0];
            let bits = u64::from(byte & 0x7f);
            number |= bits << shift;
            if byte < 0x80 {
                return (number >> shift == bits).then_some(number);
            }
        }
        None
    }
}

impl<'a> Iterator for MessageFields<'a> {
    type Item = Result<(u64, FieldValue<'a>), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at == self.data.len() {
            return None;
        }
        let field = self.field();
        let at = self.at;
        if field.is_none() {
            self.at = self.data.len();
        }
        Some(field.ok_or_else(|| {
            Error::new(format!("the model is no readable protocol buffer, near byte {at}"))
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_and_damage_is_an_error() {
        let data =
            b"\x08\x96\x01\x12\x02hi\x1d\x00\x00\x80\xbf\x21\x01\x02\x03\x04\x05\x06\x07\x08";
        let read: Result<Vec<_>, Error> = MessageFields::new(data).collect();
        let expected = vec![
            (1, FieldValue::Number(150)),
            (2, FieldValue::Bytes(b"hi")),
            (3, FieldValue::Float(-1.0)),
            (4, FieldValue::Long),
        ];
        assert_eq!(read.unwrap(), expected);
        for end in 1..data.len() {
            let cut: Vec<_> = MessageFields::new(&data[..end]).collect();
            assert!(cut.len() <= 4);
        }
        for wrong in [
            &b"\x00\x00"[..],
            b"\x0b",
            b"\x12\x05hi",
            &[0xff; 20],
            b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02",
        ] {
            assert!(MessageFields::new(wrong).any(|field| field.is_err()), "{wrong:?}");
        }
    }
}

//! Messages in the bytes of a connection, as far as their sizes go.

/// Counts whole data messages in one direction of a connection that becomes a WebSocket with its
/// first request: an HTTP head, then frames (RFC 6455 section 5.2).
#[derive(Debug)]
pub(crate) struct MessageCounter {
    state: State,
    /// Whether the frame under the cursor ends a data message.
    ends_message: bool,
    /// Payloads of the data message under the cursor, the present frame's included.
    message_bytes: u64,
    message_bytes_max: u64,
    /// Whether the frame under the cursor carries data, and not control.
    is_data: bool,
}

#[derive(Debug)]
enum State {
    /// Lines of the head, which an empty line ends. Empty lines before it are skipped, and a line
    /// may end without a carriage return: so it is read by the server, too.
    Head { is_begun: bool, is_line_empty: bool },
    /// The two bytes that begin a frame; the first, if it is there.
    Start(Option<u8>),
    /// Bytes of an extended length, and whether a mask follows.
    Length { bytes_left: u8, length: u64, is_masked: bool },
    /// Bytes of mask and payload to skip.
    Payload(u64),
    /// A message is larger than allowed: what follows is not looked at.
    Exceeded,
}

const MASK_BYTES: u64 = 4;

impl MessageCounter {
    pub(crate) const fn new(message_bytes_max: u64) -> Self {
        let state = State::Head { is_begun: false, is_line_empty: true };
        Self { state, ends_message: false, message_bytes: 0, message_bytes_max, is_data: false }
    }

    /// Whether a message was announced that is larger than allowed.
    pub(crate) const fn is_exceeded(&self) -> bool {
        matches!(self.state, State::Exceeded)
    }

    /// What the message that has begun may come to: its size if its last frame has begun, and otherwise
    /// as much as is allowed; 0 between two messages.
    pub(crate) const fn coming(&self) -> u64 {
        match (self.message_bytes, self.ends_message) {
            (0, _) => 0,
            (bytes, true) => bytes,
            (_, false) => self.message_bytes_max,
        }
    }

    /// Takes the next bytes, and tells the size of each message that ends in them.
    pub(crate) fn feed(&mut self, mut bytes: &[u8], mut ended: impl FnMut(u64)) {
        while let Some((&byte, rest)) = bytes.split_first() {
            if self.is_exceeded() {
                return;
            }
            if let State::Payload(left) = &mut self.state {
                let skipped = u64::try_from(bytes.len()).unwrap_or(u64::MAX).min(*left);
                *left -= skipped;
                bytes =
                    bytes.get(usize::try_from(skipped).unwrap_or(usize::MAX)..).unwrap_or_default();
            } else {
                self.header_byte(byte);
                bytes = rest;
            }
            if matches!(self.state, State::Payload(0)) {
                if std::mem::take(&mut self.ends_message) {
                    ended(std::mem::take(&mut self.message_bytes));
                }
                self.state = State::Start(None);
            }
        }
    }

    fn header_byte(&mut self, byte: u8) {
        self.state = match self.state {
            State::Head { is_begun, is_line_empty } => match byte {
                b'\n' if is_begun && is_line_empty => State::Start(None),
                b'\n' => State::Head { is_begun, is_line_empty: true },
                b'\r' => State::Head { is_begun, is_line_empty },
                _ => State::Head { is_begun: true, is_line_empty: false },
            },
            State::Start(None) => State::Start(Some(byte)),
            State::Start(Some(first)) => {
                let (is_final, opcode) = (first & 0x80 != 0, first & 0x0f);
                self.is_data = opcode < 8;
                self.ends_message = is_final && self.is_data;
                let is_masked = byte & 0x80 != 0;
                match byte & 0x7f {
                    126 => State::Length { bytes_left: 2, length: 0, is_masked },
                    127 => State::Length { bytes_left: 8, length: 0, is_masked },
                    length => self.payload(u64::from(length), is_masked),
                }
            }
            State::Length { bytes_left, length, is_masked } => {
                let length = (length << 8) | u64::from(byte);
                match bytes_left {
                    0 | 1 => self.payload(length, is_masked),
                    more => State::Length { bytes_left: more - 1, length, is_masked },
                }
            }
            State::Payload(left) => State::Payload(left),
            State::Exceeded => State::Exceeded,
        };
    }

    /// The frame's header is over.
    const fn payload(&mut self, length: u64, is_masked: bool) -> State {
        if self.is_data {
            self.message_bytes = self.message_bytes.saturating_add(length);
            if self.message_bytes > self.message_bytes_max {
                return State::Exceeded;
            }
        }
        State::Payload(length.saturating_add(if is_masked { MASK_BYTES } else { 0 }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame as a client sends it.
    fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![first];
        match u16::try_from(payload.len()) {
            Ok(length @ 0..126) => bytes.push(0x80 | length as u8),
            Ok(length) => {
                bytes.push(0x80 | 126);
                bytes.extend_from_slice(&length.to_be_bytes());
            }
            Err(_) => {
                bytes.push(0x80 | 127);
                bytes.extend_from_slice(&(payload.len() as u64).to_be_bytes());
            }
        }
        bytes.extend_from_slice(&[1, 2, 3, 4]);
        bytes.extend_from_slice(payload);
        bytes
    }

    fn stream() -> Vec<u8> {
        let mut bytes = b"GET / HTTP/1.1\r\nupgrade: websocket\r\n\r\n".to_vec();
        bytes.extend(frame(0x81, b"one"));
        bytes.extend(frame(0x89, b"ping, not counted"));
        bytes.extend(frame(0x01, &[b'x'; 200]));
        bytes.extend(frame(0x00, b"continued"));
        bytes.extend(frame(0x80, b"and ended: two"));
        bytes.extend(frame(0x82, b""));
        bytes.extend(frame(0x81, &vec![b'y'; 70_000]));
        bytes.extend(frame(0x88, b"close"));
        bytes
    }

    #[test]
    fn messages_are_counted_however_the_bytes_are_cut() {
        let stream = stream();
        for piece in [1, 2, 3, 7, 1_000, stream.len()] {
            let mut counter = MessageCounter::new(100_000);
            let sizes = counted(&stream, piece, &mut counter);
            assert_eq!(vec![3, 223, 0, 70_000], sizes, "in pieces of {piece}");
        }
    }

    #[test]
    fn what_comes_in_is_known_at_the_header_of_its_last_frame() {
        let head = b"GET / HTTP/1.1\r\n\r\n".as_slice();
        let (whole, part) = (frame(0x81, &[0; 600]), frame(0x01, &[0; 50]));
        let (control, last) = (frame(0x89, b"ping"), frame(0x80, &[0; 700]));
        let mut counter = MessageCounter::new(1_000);
        let mut coming = |bytes: &[u8]| {
            counter.feed(bytes, |_| {});
            counter.coming()
        };
        assert_eq!([0, 600, 0], [coming(head), coming(&whole[..8]), coming(&whole[8..])]);
        assert_eq!([1_000, 1_000], [coming(&part[..2]), coming(&part[2..])]);
        assert_eq!([1_000, 750, 0], [coming(&control), coming(&last[..4]), coming(&last[4..])]);
    }

    fn counted(bytes: &[u8], piece: usize, counter: &mut MessageCounter) -> Vec<u64> {
        let mut sizes = Vec::new();
        bytes.chunks(piece).for_each(|bytes| counter.feed(bytes, |size| sizes.push(size)));
        sizes
    }

    #[test]
    fn a_head_ends_where_the_server_sees_its_end() {
        for head in [
            "\r\n\r\nGET / HTTP/1.1\r\na: b\r\n\r\n",
            "GET / HTTP/1.1\na: b\n\n",
            "\nGET / HTTP/1.1\n\r\n",
        ] {
            let stream = [head.as_bytes(), &frame(0x81, b"one")].concat();
            let mut counter = MessageCounter::new(1_000);
            assert_eq!(vec![3], counted(&stream, 5, &mut counter), "{head:?}");
        }
    }

    #[test]
    fn a_message_is_too_large_at_the_header_that_makes_it_so() {
        let head = b"GET / HTTP/1.1\r\n\r\n".as_slice();
        let parts = [head, &frame(0x01, &[0; 600]), &frame(0x89, &[0; 120])].concat();
        for (more, is_exceeded) in [(400, false), (401, true)] {
            let header = frame(0x80, &vec![0; more]);
            let stream = [parts.as_slice(), &header[..8]].concat();
            let mut counter = MessageCounter::new(1_000);
            assert_eq!(Vec::<u64>::new(), counted(&stream, 3, &mut counter));
            assert_eq!(is_exceeded, counter.is_exceeded(), "{more}");
        }
    }

    #[test]
    fn no_length_overflows() {
        let stream = [b"GET / HTTP/1.1\r\n\r\n\x01\xff".as_slice(), &[0xff; 8]].concat();
        let mut counter = MessageCounter::new(u64::MAX - 1);
        counted(&stream, 1, &mut counter);
        assert!(counter.is_exceeded());
    }
}

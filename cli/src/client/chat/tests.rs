//! What typed lines mean.

use super::{Wish, wish};

#[test]
fn a_line_is_said_or_asked_as_the_mode_has_it() {
    for (line, expected) in [
        ("hello there", Wish::Say("hello there")),
        ("  ", Wish::Nothing),
        ("/ask", Wish::Nothing),
        ("/ask  why? ", Wish::Ask("why?")),
        ("/say /ask", Wish::Say("/ask")),
        ("/quit", Wish::Quit),
        ("/help me", Wish::Help),
        ("/qiut", Wish::Unknown("/qiut")),
        ("//quit", Wish::Say("/quit")),
    ] {
        assert_eq!(expected, wish(line, false), "{line}");
    }
    assert_eq!(Wish::Ask("why?"), wish("why?", true));
    assert_eq!(Wish::Ask("/why"), wish("//why", true));
    assert_eq!(Wish::Say("hi"), wish("/say hi", true));
}

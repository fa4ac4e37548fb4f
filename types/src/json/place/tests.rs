//! Pointers name each step.

use super::JsonPlace;

#[test]
fn a_pointer_names_each_step_and_escapes_it() {
    let (abi, slash) = (JsonPlace::OUTERMOST.key("abi"), "a/b~c");
    let first = abi.index(10);
    assert_eq!(JsonPlace::OUTERMOST.pointer(), "");
    assert_eq!(first.key("name").pointer(), "/abi/10/name");
    assert_eq!(JsonPlace::OUTERMOST.key(slash).pointer(), "/a~1b~0c");
    assert_eq!(JsonPlace::OUTERMOST.key("").pointer(), "/");
}
